"""Joining on the wire: requests, terms, status."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError, Message

from fism_common.data.columns import Column, Kind, Missing, Recipe, Standardise, Unknown
from fism_common.errors import ContractError, MismatchError
from fism_common.joining import JoinRequest, Status, Terms
from fism_common.problem.registry import Variant
from fism_common.wire.pb import federation_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence

M = TypeVar("M", bound=Message)
_LONGEST_NAME = 200


def write_join_request(request: JoinRequest) -> bytes:
    """Return a request as a message."""
    return pb.JoinRequest(
        protocol=request.protocol,
        name=request.name,
        rows=request.rows,
        columns=request.columns,
        virtual_clients=request.virtual_clients,
        token=request.token,
        schema=_column_messages(request.schema),
        version=request.version,
        dry_run=request.dry_run,
    ).SerializeToString()


def read_join_request(raw: bytes) -> JoinRequest:
    """Return the request in a message; raise ContractError for invalid bytes, MismatchError for bad columns."""
    message = _read(pb.JoinRequest, raw)
    return JoinRequest(
        protocol=message.protocol,
        name=message.name,
        rows=message.rows,
        columns=message.columns,
        virtual_clients=message.virtual_clients,
        token=message.token,
        schema=_columns(message.schema),
        version=message.version,
        dry_run=message.dry_run,
    )


def write_terms(terms: Terms) -> bytes:
    """Return terms as a message."""
    return pb.JoinReply(
        run_id=terms.run_id,
        token=terms.token,
        loss=_variant_message(terms.loss),
        constraint=_variant_message(terms.constraint),
        round=terms.round,
        recipe=_recipe_message(terms.recipe),
        version=terms.version,
    ).SerializeToString()


def read_terms(raw: bytes) -> Terms:
    """Return the terms in a message; raise ContractError or MismatchError for terms that this client does not know."""
    message = _read(pb.JoinReply, raw)
    return Terms(
        run_id=message.run_id,
        token=message.token,
        loss=_variant(message.loss),
        constraint=_variant(message.constraint),
        round=message.round,
        recipe=_recipe(message.recipe),
        version=message.version,
    )


def write_status_request(token: bytes) -> bytes:
    """Return a request for the status."""
    return pb.StatusRequest(token=token).SerializeToString()


def read_status_request(raw: bytes) -> bytes:
    """Return the token in a request for the status."""
    return _read(pb.StatusRequest, raw).token


def write_status(status: Status) -> bytes:
    """Return a status as a message."""
    return pb.StatusReply(
        run_id=status.run_id,
        round=status.round,
        clients_present=status.present,
        clients_expected=status.expected,
    ).SerializeToString()


def read_status(raw: bytes) -> Status:
    """Return the status in a message."""
    message = _read(pb.StatusReply, raw)
    return Status(message.run_id, message.round, message.clients_present, message.clients_expected)


def _read(kind: type[M], raw: bytes) -> M:
    try:
        return kind.FromString(raw)
    except DecodeError as error:
        raise ContractError(f"bytes that are not a message of the protocol: {error}") from error


def _variant_message(variant: Variant) -> pb.Variant:
    return pb.Variant(kind=variant.kind, numbers=dict(variant.numbers), vectors=variant.vectors)


def _variant(message: pb.Variant) -> Variant:
    return Variant(message.kind, dict(message.numbers), tuple(message.vectors))


def _column_messages(columns: Sequence[Column]) -> list[pb.Column]:
    return [pb.Column(name=column.name, kind=str(column.kind)) for column in columns]


def _columns(messages: Sequence[pb.Column]) -> tuple[Column, ...]:
    names = [message.name for message in messages]
    if len(set(names)) != len(names):
        raise MismatchError("columns must have different names")
    if not all(name and name.isprintable() and len(name) <= _LONGEST_NAME for name in names):
        raise MismatchError(f"a column's name has 1 to {_LONGEST_NAME} printable characters")
    try:
        return tuple(Column(message.name, Kind(message.kind)) for message in messages)
    except ValueError as error:
        raise MismatchError(f"{error}; there are {', '.join(Kind)}") from None


def _recipe_message(recipe: Recipe) -> pb.Recipe:
    filled = None if isinstance(recipe.missing, Missing) else recipe.missing
    return pb.Recipe(
        features=_column_messages(recipe.features),
        levels={name: pb.Levels(level=levels) for name, levels in recipe.levels.items()},
        unknown=str(recipe.unknown),
        missing="" if filled is not None else str(recipe.missing),
        fill=filled,
        intercept=recipe.intercept,
        standardise=str(recipe.standardise),
    )


def _recipe(message: pb.Recipe) -> Recipe:
    try:
        return Recipe(
            features=_columns(message.features),
            levels={name: tuple(levels.level) for name, levels in message.levels.items()},
            unknown=Unknown(message.unknown or Unknown.REFUSE),
            missing=message.fill if message.HasField("fill") else Missing(message.missing or Missing.REFUSE),
            intercept=message.intercept,
            standardise=Standardise(message.standardise),
        )
    except ValueError as error:
        raise MismatchError(
            f"the server prepares rows in a way that this client does not know: {error}; install the server's version"
        ) from None
