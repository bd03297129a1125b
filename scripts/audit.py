"""Look up the pinned versions in the database of known weaknesses; fail if one is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PINNED = Path(__file__).parents[1] / "constraints.txt"


def main() -> None:
    """Print what was found; say so if the database cannot be reached."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(PINNED), "--no-deps", "--disable-pip"]
    command += ["--format", "json", "--progress-spinner", "off", "--timeout", "10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        found = []
    audited = [one for one in found if "skip_reason" not in one]
    weak = [(one["name"], one["version"], weakness["id"]) for one in audited for weakness in one["vulns"]]
    for name, version, weakness in weak:
        print(f"{name} {version}: {weakness}")
    if weak:
        sys.exit(f"{len(weak)} known weaknesses; pin newer versions with make constraints")
    if not audited:
        print("not audited: the database of known weaknesses cannot be reached")
        return
    print(f"{len(audited)} of {len(found)} pinned versions audited, no known weakness")


if __name__ == "__main__":
    main()
