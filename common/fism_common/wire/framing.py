"""Long byte fields of protobuf messages, written and read with one copy instead of four.

A message on the wire is a sequence of fields: a varint that holds the field's number and its wire type, then the value;
for bytes and messages, their length and content. The bytes written here are standard protobuf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from google.protobuf.message import Message
    from numpy.typing import NDArray

_LENGTH = 2


def wrap(field: int, head: Message, long_fields: Mapping[int, NDArray[Any]]) -> bytes:
    """Return a message with one field, ``field``: the message ``head`` with ``long_fields`` added to it."""
    parts: list[Any] = [head.SerializeToString()]
    for number, content in long_fields.items():
        parts += [_varint(number << 3 | _LENGTH), _varint(content.nbytes), content.data]
    size = sum(part.nbytes if isinstance(part, memoryview) else len(part) for part in parts)
    return b"".join([_varint(field << 3 | _LENGTH), _varint(size), *parts])


def unwrap(message: memoryview, long_fields: Mapping[str, int]) -> tuple[bytes, dict[str, memoryview]]:
    """Return a message without its ``long_fields``, and the content of those that it has, by name.

    Raises DecodeError for bytes that are not a message.
    """
    names = {number: name for name, number in long_fields.items()}
    rest, found = [], {}
    for number, begin, content, end in fields(message):
        if number in names:
            found[names[number]] = message[content:end]
        else:
            rest.append(message[begin:end])
    return b"".join(rest), found


def fields(message: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """Yield every field: its number, where it begins, where its content begins, and where it ends."""
    at, size = 0, len(message)
    while at < size:
        begin = at
        key, at = _read_varint(message, at)
        match key & 7:
            case 0:
                content, at = at, _read_varint(message, at)[1]
            case 1:
                content, at = at, at + 8
            case 2:
                length, at = _read_varint(message, at)
                content, at = at, at + length
            case 5:
                content, at = at, at + 4
            case kind:
                raise DecodeError(f"unknown wire type {kind}")
        if at > size:
            raise DecodeError("a field extends beyond its message")
        yield key >> 3, begin, content, at


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:  # noqa: PLR2004  # seven bits per byte
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:  # noqa: PLR2004
            raise DecodeError("a varint is too long, or extends beyond its message")
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:  # noqa: PLR2004
            return value, at
