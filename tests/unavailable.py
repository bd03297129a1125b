"""What a machine may not have."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def unavailable(reason: str) -> NoReturn:
    """Skip the test for want of something; where FISM_NO_SKIP is set, as in CI, fail it."""
    if os.environ.get("FISM_NO_SKIP"):
        pytest.fail(reason)
    pytest.skip(reason)
