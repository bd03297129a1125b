"""Check the pinned versions for known vulnerabilities; fail if there are any."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PINNED = Path(__file__).parents[1] / "constraints.txt"


def main() -> None:
    """Print the findings, or that the vulnerability database cannot be reached."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(PINNED), "--no-deps", "--disable-pip"]
    command += ["--format", "json", "--progress-spinner", "off", "--timeout", "10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        found = []
    audited = [one for one in found if "skip_reason" not in one]
    vulnerable = [(one["name"], one["version"], flaw["id"]) for one in audited for flaw in one["vulns"]]
    for name, version, flaw in vulnerable:
        print(f"{name} {version}: {flaw}")
    if vulnerable:
        sys.exit(f"{len(vulnerable)} known vulnerabilities; pin newer versions with make constraints")
    if not audited:
        print("not audited: the vulnerability database cannot be reached")
        return
    print(f"{len(audited)} of {len(found)} pinned versions audited, no known vulnerabilities")


if __name__ == "__main__":
    main()
