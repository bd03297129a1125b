"""The parser for svmlight lines."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fism_client.kernels.options import PARSING, READING

WIDTH = 40
"""Bytes of the longest number that is accepted; a double needs 24."""
_LARGEST = 2**31 - 2
_EXACT = 2**53
_DIGITS = 18
"""This many digits always fit a 64-bit integer."""
_POWERS = 10.0 ** np.arange(23)
"""The powers that a double holds exactly: a product or quotient with one is rounded only once, so it is correct."""
_NEWLINE, _SPACE, _TAB, _RETURN, _HASH, _COLON = 10, 32, 9, 13, 35, 58
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _E, _SMALL_E = 43, 45, 46, 48, 57, 69, 101
_FOUND, _HARD, _NONE = 0, 1, 2
_FAR = 10_000
"""Larger exponents give the same result."""

NO_LABEL, NO_PAIR, NO_INDEX, NOT_ASCENDING, TOO_LARGE, TOO_LONG, FROM_ZERO, NO_NUMBER = range(1, 9)


class Room(NamedTuple):
    """The parser's output buffers."""

    labels: NDArray[np.float64]
    lengths: NDArray[np.int64]
    values: NDArray[np.float64]
    indices: NDArray[np.int32]
    hard_texts: NDArray[np.uint8]
    """Numbers that need more than one rounding: a slower parser reads them."""
    hard_places: NDArray[np.int64]
    """Their places in values; labels have the places -1, -2, ..."""


@njit(**PARSING)
def parse(text: NDArray[np.uint8], room: Room, first: int) -> tuple[int, int, int, int, int]:
    """Parse whole lines; return an error code or 0, its position, and the counts of rows, entries and hard numbers.

    ``first`` is the first column's number, 0 or 1.
    """
    p, end, rows, entries, hard = 0, text.size, 0, 0, 0
    while p < end:
        p = _skip(text, p, end)
        if not _is_over(text, p, end):
            before = entries
            error, p, hard = _take(text, p, end, room, hard, -1 - rows)
            if error != 0:
                return (NO_LABEL if error == NO_NUMBER else error), p, rows, entries, hard
            error, p, entries, hard = _pairs(text, p, end, room, entries, hard, first)
            if error != 0:
                return error, p, rows, entries, hard
            room.lengths[rows] = entries - before
            rows += 1
        while p < end and text[p] != _NEWLINE:
            p += 1
        p += 1
    return 0, 0, rows, entries, hard


@njit(**READING)
def _pairs(
    text: NDArray[np.uint8], p: int, end: int, room: Room, entries: int, hard: int, first: int
) -> tuple[int, int, int, int]:
    """Parse a line's pairs; return an error code or 0, how far it got, and the counts of entries and hard numbers."""
    last = -1
    p = _skip(text, p, end)
    while not _is_over(text, p, end):
        begin, index = p, 0
        while p < end and _ZERO <= text[p] <= _NINE and index <= _LARGEST:
            index = 10 * index + (text[p] - _ZERO)
            p += 1
        error = _index_error(text, begin, p, end, index, last, first)
        if error != 0:
            return error, begin, entries, hard
        last = index
        room.indices[entries] = index - first
        error, p, hard = _take(text, p + 1, end, room, hard, entries)
        if error != 0:
            return error, p, entries, hard
        entries += 1
        p = _skip(text, p, end)
    return 0, p, entries, hard


@njit(**READING)
def _index_error(text: NDArray[np.uint8], begin: int, p: int, end: int, index: int, last: int, first: int) -> int:
    """Return the error code for a column number that ends at p; 0 if it is valid."""
    if index > _LARGEST:
        return TOO_LARGE
    if p == begin:
        return NO_INDEX
    if p == end or text[p] != _COLON:
        return NO_PAIR
    if index < first:
        return FROM_ZERO
    return NOT_ASCENDING if index <= last else 0


@njit(**READING)
def _take(text: NDArray[np.uint8], p: int, end: int, room: Room, hard: int, place: int) -> tuple[int, int, int]:
    """Store the number that starts at p; return an error code or 0, where it ends, and the count of hard numbers."""
    state, value, after = _number(text, p, end)
    if state == _NONE or not (_is_over(text, after, end) or _is_blank(text[after])):
        return NO_NUMBER, p, hard
    if state == _HARD:
        if after - p > WIDTH:
            return TOO_LONG, p, hard
        for i in range(WIDTH):
            room.hard_texts[hard, i] = text[p + i] if p + i < after else 0
        room.hard_places[hard] = place
        return 0, after, hard + 1
    if place < 0:
        room.labels[-1 - place] = value
    else:
        room.values[place] = value
    return 0, after, hard


@njit(**READING)
def _skip(text: NDArray[np.uint8], p: int, end: int) -> int:
    """Return the position of the next byte that is not blank."""
    while p < end and _is_blank(text[p]):
        p += 1
    return p


@njit(**READING)
def _is_blank(byte: int) -> bool:
    return byte == _SPACE or byte == _TAB or byte == _RETURN  # noqa: PLR1714  # numba has no sets of constants


@njit(**READING)
def _is_over(text: NDArray[np.uint8], p: int, end: int) -> bool:
    """Whether the line ends or a comment starts here."""
    return p == end or text[p] == _NEWLINE or text[p] == _HASH


@njit(**READING)
def _number(text: NDArray[np.uint8], p: int, end: int) -> tuple[int, float, int]:
    """Return whether there is a number at p, its value unless it is hard, and where it ends."""
    negative = p < end and text[p] == _MINUS
    if p < end and (text[p] == _MINUS or text[p] == _PLUS):
        p += 1
    begin, mantissa, digits, power = p, 0, 0, 0
    p, mantissa, digits = _digits(text, p, end, mantissa, digits)
    seen = p - begin
    if p < end and text[p] == _POINT:
        begin = p + 1
        p, mantissa, digits = _digits(text, begin, end, mantissa, digits)
        power -= p - begin
        seen += p - begin
    if seen == 0:
        return _NONE, 0.0, p
    if p < end and (text[p] == _E or text[p] == _SMALL_E):
        down = p + 1 < end and text[p + 1] == _MINUS
        begin = p + 2 if p + 1 < end and (text[p + 1] == _MINUS or text[p + 1] == _PLUS) else p + 1
        p, exponent, _ = _digits(text, begin, end, 0, 0)
        if p == begin:
            return _NONE, 0.0, p
        exponent = min(exponent, _FAR)
        power += -exponent if down else exponent
    if digits > _DIGITS or mantissa > _EXACT or power >= _POWERS.size or -power >= _POWERS.size:
        return _HARD, 0.0, p
    value = mantissa * _POWERS[power] if power >= 0 else mantissa / _POWERS[-power]
    return _FOUND, -value if negative else value, p


@njit(**READING)
def _digits(text: NDArray[np.uint8], p: int, end: int, number: int, digits: int) -> tuple[int, int, int]:
    """Append digits to a number; return where they end, the number, and its digit count without leading zeros.

    Digits that do not fit are only counted.
    """
    while p < end and _ZERO <= text[p] <= _NINE:
        if digits < _DIGITS:
            number = 10 * number + (text[p] - _ZERO)
        if number > 0:
            digits += 1
        p += 1
    return p, number, digits
