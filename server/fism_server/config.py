"""The configuration of a run: its keys, and what each may be."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from fism_common.columns import OTHER, Missing, Recipe, Standardise, Unknown
from fism_common.settings import Entries, Settings
from fism_common.source import Reading, Source

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


def _of_file(source: object) -> object:
    return {"data": source} if isinstance(source, str) else source


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


class DataRule(Settings):
    """How every client makes rows of its columns; public."""

    features: Annotated[list[str], Field(min_length=1)] | None = None
    """The columns and their order; else they are those of the first client."""
    levels: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    unknown: Annotated[Unknown, Field(strict=False)] = Unknown.REFUSE
    missing: Annotated[Missing, Field(strict=False)] | Number = Missing.REFUSE
    intercept: bool = False
    standardise: bool | Annotated[Literal["scale"], Field()] = False

    @model_validator(mode="after")
    def _fit(self) -> DataRule:
        for name, levels in self.levels.items():
            if len(set(levels)) != len(levels):
                raise ValueError(f"levels.{name} must not list a level twice")
            if self.features is not None and name not in self.features:
                raise ValueError(f"levels.{name} is of a column that is not one of the features")
            if self.unknown is Unknown.OTHER and OTHER in levels:
                raise ValueError(f"levels.{name} lists {OTHER!r}, which is for those that are not listed")
        if self.features is not None and len(set(self.features)) != len(self.features):
            raise ValueError("features must not name a column twice")
        return self

    def recipe(self) -> Recipe:
        """Return it as it is told to clients, but for the columns."""
        ways = {False: Standardise.NO, True: Standardise.FULL, "scale": Standardise.SCALE}
        return Recipe(
            levels={name: tuple(levels) for name, levels in self.levels.items()},
            unknown=self.unknown,
            missing=self.missing,
            intercept=self.intercept,
            standardise=ways[self.standardise],
        )


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


class Local(Reading):
    """What ``fism run`` starts: one client per shard, in this order; and how all of them read theirs."""

    shards: Annotated[list[Annotated[Source, BeforeValidator(_of_file)]], Field(min_length=1)]
    holdout: Annotated[Number, Field(ge=0, lt=1)] = 0.0


class RunConfig(Settings):
    """A whole run."""

    federation: Federation
    inner: Inner
    data: DataRule = DataRule()
    outer: Outer
    steps: Steps
    stop: StopRule
    limits: Limits = Limits()
    evaluation: EvaluationRule = EvaluationRule()
    security: Security = Security()
    local: Local | None = None
