"""The configuration of a run: its keys, and what each may be."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from fism_common.settings import Entries, Settings

Number = Annotated[float, Field(strict=False, allow_inf_nan=False)]
"""A TOML float or integer."""


class Absent(StrEnum):
    """What to do when a client stays away longer than ``limits.absence``, or is put out."""

    WAIT = "wait"
    CONTINUE = "continue"
    STOP = "stop"


class Federation(Settings):
    """Who takes part, and where the run starts."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "federation"
    clients: PositiveInt | Annotated[list[str], Field(min_length=1)]
    start: str = "zero"
    seed: int = 0

    @model_validator(mode="after")
    def _names_are_different(self) -> Federation:
        if isinstance(self.clients, list) and len(set(self.clients)) != len(self.clients):
            raise ValueError("clients must not name the same client twice")
        return self


class BoxBounds(Settings):
    """A box whose bounds may be vectors."""

    lo: Number | Entries
    hi: Number | Entries


class BallAround(Settings):
    """A ball with a centre."""

    radius: Number
    center: Entries | None = None


class Constraint(Settings):
    """Exactly one set."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"), validate_by_name=True)

    box: Annotated[list[Number], Field(min_length=2, max_length=2)] | BoxBounds | None = None
    ball: Number | BallAround | None = None
    simplex: Number | None = None
    l1_ball: Number | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Constraint:
        if len(self.model_fields_set) != 1:
            raise ValueError("give exactly one of box, ball, simplex and l1-ball")
        return self


class LossByName(Settings):
    """A loss with its parameters."""

    model_config = ConfigDict(extra="allow")

    name: str
    __pydantic_extra__: dict[str, Number]


class Inner(Settings):
    """The public problem, told to every client."""

    loss: Annotated[LossByName, BeforeValidator(lambda loss: {"name": loss} if isinstance(loss, str) else loss)]
    constraint: Constraint
    columns: PositiveInt | None = None


class Outer(Settings):
    """The private objective; which keys it has depends on which it is."""

    model_config = ConfigDict(extra="allow")

    objective: str


class Steps(Settings):
    """gamma_k = gamma / k^a, lambda_k = lambda / k^b."""

    gamma: Number
    a: Number
    lam: Annotated[Number, Field(alias="lambda")]
    b: Number
    strict: bool = False


class StopRule(Settings):
    """When the run ends."""

    rounds: PositiveInt
    tolerance: Annotated[PositiveFloat, Field(strict=False)] | None = None


class Limits(Settings):
    """Time limits in seconds."""

    round: Annotated[PositiveFloat, Field(strict=False)] = 600.0
    absence: Annotated[PositiveFloat, Field(strict=False)] = 300.0
    grace: Annotated[PositiveFloat, Field(strict=False)] = 10.0
    absent: Annotated[Absent, Field(strict=False)] = Absent.WAIT


class EvaluationRule(Settings):
    """How often clients evaluate the model on the rows that they hold out."""

    every: PositiveInt = 10


class Security(Settings):
    """Who may take part, and by which certificates."""

    certs: str | None = None
    name: str = "server"
    allowed: Annotated[list[str], Field(min_length=1)] | None = None


class Local(Settings):
    """What ``fism run`` starts: one client per shard file, in this order."""

    shards: Annotated[list[str], Field(min_length=1)]
    holdout: Annotated[Number, Field(ge=0, lt=1)] = 0.0


class RunConfig(Settings):
    """A whole run."""

    federation: Federation
    inner: Inner
    outer: Outer
    steps: Steps
    stop: StopRule
    limits: Limits = Limits()
    evaluation: EvaluationRule = EvaluationRule()
    security: Security = Security()
    local: Local | None = None
