"""The events of a federation, and the actions that the connection layer must carry out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fism_server.federation.roster import Member


class EventKind(StrEnum):
    """The kinds of events that are logged and archived."""

    LOST = "lost"
    """A client's connection ended without a message, or its answer did not come in time."""
    LEFT = "left"
    """A client left on purpose."""
    RETURNED = "returned"
    """A client that was absent has a new stream."""
    LATE = "late"
    """An answer to an attempt that was abandoned in the meantime: not used, and no violation."""
    REJECTED = "rejected"
    """A message that was not used: a violation."""
    EXCLUDED = "excluded"
    """A client committed too many violations, or missed too many deadlines in one round."""
    DROPPED = "dropped"
    """The run continues without a client."""
    REFUSED = "refused"
    """A call from a caller that was not admitted."""
    STOPPED = "stopped"
    """The run ended before it was finished."""
    RESUMED = "resumed"
    """The run continues from its archive."""


@dataclass(slots=True)
class Ask:
    """Send the current question to a member."""

    member: Member


@dataclass(slots=True)
class Reject:
    """Tell a member that its message was not used."""

    member: Member
    reason: str


@dataclass(slots=True)
class Exclude:
    """Tell a member that it is excluded, then end its stream."""

    member: Member
    reason: str


@dataclass(slots=True)
class Disconnect:
    """End a member's stream."""

    member: Member


@dataclass(slots=True)
class Note:
    """Log and archive an event."""

    kind: EventKind
    member: str
    text: str


Action: TypeAlias = Ask | Reject | Exclude | Disconnect | Note
