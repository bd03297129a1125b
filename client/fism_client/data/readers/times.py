"""Dates and times as seconds since 1970 in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fism_common.vectors import Vector

_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?)?")
"""ISO 8601 with separators: 20251231 is a number, and 2025 may be a year or a number."""


def seconds_of(moment: datetime) -> float:
    """Return seconds since 1970; a moment without a time zone is in UTC."""
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def read_time(text: str) -> float | None:
    """Return the time in an ISO 8601 text; None for any other text."""
    if not _ISO.fullmatch(text):
        return None
    try:
        return seconds_of(datetime.fromisoformat(text))
    except ValueError:  # such as 30 February
        return None


def read_times(texts: Iterable[str | None]) -> Vector | None:
    """Return the times in texts, NaN for missing ones; None if one of them is not a time."""
    found = []
    for text in texts:
        time = np.nan if text is None else read_time(text)
        if time is None:
            return None
        found.append(time)
    return np.array(found)


def seconds_since_1970(times: NDArray[np.datetime64]) -> NDArray[Any]:
    """Return times as numbers, NaN for missing ones."""
    return np.where(np.isnat(times), np.nan, times.astype("datetime64[us]").astype(np.int64) / 1e6)
