"""Generate the gRPC stubs from proto/, or with --check fail where the checked-in ones differ."""

from __future__ import annotations

import difflib
import sys
import sysconfig
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
STUBS = Path("common/fism_common/wire/pb")


def generate(target: Path) -> None:
    """Write the stubs under ``target``, in the folder of their import package."""
    scripts = Path(sysconfig.get_path("scripts"))
    # The mapping makes the stubs import fism_common.wire.pb; without it, fism.v1: our front door.
    status = protoc.main(
        [
            "protoc",
            f"-I{files('grpc_tools') / '_proto'}",
            f"-Ifism_common/wire/pb={ROOT / 'proto/fism/v1'}",
            f"--plugin=protoc-gen-mypy={scripts / 'protoc-gen-mypy'}",
            f"--plugin=protoc-gen-mypy_grpc={scripts / 'protoc-gen-mypy_grpc'}",
            f"--python_out={target}",
            f"--grpc_python_out={target}",
            f"--mypy_out=quiet:{target}",
            f"--mypy_grpc_out=quiet:{target}",
            "fism_common/wire/pb/federation.proto",
        ]
    )
    if status != 0:
        sys.exit("protoc failed: see its message above")


def texts(folder: Path) -> dict[str, list[str]]:
    """Return the lines of every stub in ``folder``."""
    return {path.name: path.read_text().splitlines(keepends=True) for path in sorted(folder.glob("*_pb2*"))}


def check() -> None:
    """Exit with a diff if what is checked in is not what would be generated."""
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
