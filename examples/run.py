"""Run an example: prepare its tables in a new folder, run the federation on this host, and show the result.

Usage: run.py NAME [FOLDER]
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
NAMES = ("words", "depots", "deliveries", "prior", "adult", "digits")


def run(name: str, folder: Path) -> None:
    """Run one example in a folder, which keeps its files."""
    sys.path.insert(0, str(HERE))
    example = importlib.import_module(f"{name}.example")
    folder.mkdir(parents=True, exist_ok=True)
    example.prepare(folder)
    config = folder / f"{name}.toml"
    shutil.copy(HERE / name / config.name, config)
    print(f"$ fism run {config.name} --out run\n", flush=True)
    subprocess.run([sys.executable, "-m", "fism", "run", config, "--out", folder / "run"], check=True)
    example.show(folder)


def main() -> None:
    """Run the example named on the command line."""
    if len(sys.argv) not in {2, 3} or sys.argv[1] not in NAMES:
        sys.exit(f"usage: run.py NAME [FOLDER]; the examples are {', '.join(NAMES)}")
    if len(sys.argv) == 3:
        run(sys.argv[1], Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as scratch:
        run(sys.argv[1], Path(scratch))


if __name__ == "__main__":
    main()
