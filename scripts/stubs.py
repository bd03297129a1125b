"""Generate the gRPC stubs from proto/, or with --check fail where the checked-in ones differ.

Stubs refuse a runtime that is older than the tools that made them. They are therefore made with the oldest tools that
still work, in an environment of their own, so that fism installs beside other packages.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUBS = Path("common/fism_common/wire/pb")
TOOLS = ("grpcio-tools==1.72.2", "protobuf==6.30.2", "mypy-protobuf==3.7.0", "setuptools<81")
"""The lower bounds of grpcio and protobuf in pyproject.toml follow from the first two."""


def generate(target: Path) -> None:
    """Write the stubs under ``target``, in the folder of their import package."""
    uv = Path(sys.executable).with_name("uv")
    environment = [part for tool in TOOLS for part in ("--with", tool)]
    command = [str(uv), "run", "--quiet", "--isolated", "--no-project", "--python", sys.executable, *environment]
    # The mapping makes the stubs import fism_common.wire.pb; without it, fism.v1: our public package.
    subprocess.run(
        [
            *command,
            *("python", "-m", "grpc_tools.protoc"),
            f"-Ifism_common/wire/pb={ROOT / 'proto/fism/v1'}",
            f"--python_out={target}",
            f"--grpc_python_out={target}",
            f"--mypy_out=quiet:{target}",
            f"--mypy_grpc_out=quiet:{target}",
            "fism_common/wire/pb/federation.proto",
        ],
        check=True,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},  # the plugin's own stubs are older still
    )


def texts(folder: Path) -> dict[str, list[str]]:
    """Return the lines of every stub in ``folder``."""
    return {path.name: path.read_text().splitlines(keepends=True) for path in sorted(folder.glob("*_pb2*"))}


def check() -> None:
    """Print a diff and exit with an error if the checked-in stubs are stale."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        fresh, kept = texts(Path(scratch) / "fism_common/wire/pb"), texts(ROOT / STUBS)
    differences = [
        line
        for name in sorted(fresh | kept)
        for line in difflib.unified_diff(kept.get(name, []), fresh.get(name, []), f"kept/{name}", f"fresh/{name}")
    ]
    if differences:
        sys.stdout.writelines(differences)
        sys.exit("the stubs are stale: run make stubs")
    print(f"{len(kept)} stubs are fresh")


if __name__ == "__main__":
    check() if "--check" in sys.argv[1:] else generate(ROOT / "common")
