"""The configuration of a run: its keys, and what each may be."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from fism_common.data.columns import OTHER, Missing, Recipe, Standardise, Unknown
from fism_common.data.source import Reading, Source
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
    """Of the run: its folder, unless told otherwise, begins with it."""
    clients: PositiveInt | Annotated[list[str], Field(min_length=1)]
    """How many, or their names, which is then the federation order."""
    start: str = "zero"
    """x_1: "zero", "random" (uniform in the bounding box of the set), or the path of an .npy file."""
    seed: int = 0
    """Of a random start, and of the rows that clients of ``fism run`` hold out."""

    @model_validator(mode="after")
    def _names_are_different(self) -> Federation:
        if isinstance(self.clients, list) and len(set(self.clients)) != len(self.clients):
            raise ValueError("clients must not name the same client twice")
        return self


class BoxBounds(Settings):
    """A box whose bounds may be vectors."""

    lo: Number | Entries
    """The least that an entry may be."""
    hi: Number | Entries
    """The most."""


class BallAround(Settings):
    """A ball with a centre."""

    radius: Number
    """Above 0."""
    center: Entries | None = None
    """Its centre; else 0."""


class Constraint(Settings):
    """Exactly one set."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"), validate_by_name=True)

    box: Annotated[list[Number], Field(min_length=2, max_length=2)] | BoxBounds | None = None
    """Bounds: [lo, hi], or a table of lo and hi, each a number or a vector."""
    ball: Number | BallAround | None = None
    """A radius, or a table of radius and center."""
    simplex: Number | None = None
    """What the entries, none below 0, sum to."""
    l1_ball: Number | None = None
    """What the entries' absolute values sum to at most."""

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
    """Its parameters."""


class Inner(Settings):
    """The public problem, told to every client."""

    loss: Annotated[LossByName, BeforeValidator(lambda loss: {"name": loss} if isinstance(loss, str) else loss)]
    """A name, or a table with parameters: { name = "huber", delta = 1.0 }; "module:Name" for one that clients have."""
    constraint: Constraint
    """The set X: exactly one of its keys."""
    columns: PositiveInt | None = None
    """Of the model; else other vectors here decide, or the first client."""


class DataRule(Settings):
    """How every client makes rows of its columns; public."""

    features: Annotated[list[str], Field(min_length=1)] | None = None
    """The columns and their order; else they are those of the first client."""
    levels: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    """Of the columns that are categories: each level becomes a column of zeros and ones."""
    unknown: Annotated[Unknown, Field(strict=False)] = Unknown.REFUSE
    """What to do with a level that is not listed: refuse the client, or count it as "other"."""
    missing: Annotated[Missing, Field(strict=False)] | Number = Missing.REFUSE
    """What a missing entry becomes: nothing, the client is refused; the mean of the federation; or a number."""
    intercept: bool = False
    """Whether the model has a constant, as its last column."""
    standardise: bool | Annotated[Literal["scale"], Field()] = False
    """Whether columns are centred and scaled, by what all clients have; "scale" keeps zeros zero."""

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
    """One of "squared-norm", "squared-distance" (anchor), "elastic-net" (l1, l2), "group-lasso" (groups, weight, l2),
    "quadratic" (Q, c), with its keys beside it; or "module:Name" of your own. Vectors may be .npy files."""


class Steps(Settings):
    """gamma_k = gamma / k^a, lambda_k = lambda / k^b."""

    gamma: Number
    """The first step."""
    a: Number
    """How fast steps fall."""
    lam: Annotated[Number, Field(alias="lambda")]
    """The first weight of H."""
    b: Number
    """How fast that weight falls."""
    strict: bool = False
    """Whether steps that no theorem covers are refused."""


class StopRule(Settings):
    """When the run ends."""

    rounds: PositiveInt
    """The last round."""
    tolerance: Annotated[PositiveFloat, Field(strict=False)] | None = None
    """End before, when x, F and H change less than this in a round."""


class Limits(Settings):
    """Time limits in seconds."""

    round: Annotated[PositiveFloat, Field(strict=False)] = 600.0
    """A client that takes longer for one reply counts as lost."""
    absence: Annotated[PositiveFloat, Field(strict=False)] = 300.0
    """How long a lost client may take to return, before ``absent`` decides."""
    grace: Annotated[PositiveFloat, Field(strict=False)] = 10.0
    """For everybody to end in good order."""
    absent: Annotated[Absent, Field(strict=False)] = Absent.WAIT
    """Wait for it for ever, continue without it, or stop the run."""


class EvaluationRule(Settings):
    """How often clients evaluate the model on the rows that they hold out."""

    every: PositiveInt = 10
    """Rounds from one to the next."""


class Security(Settings):
    """Who may take part, and by which certificates."""

    certs: str | None = None
    """The folder of certificates; without it plain text, on this host only."""
    name: str = "server"
    """Which of them is the server's."""
    allowed: Annotated[list[str], Field(min_length=1)] | None = None
    """Who may take part, when ``clients`` is a number."""


class Local(Reading):
    """What ``fism run`` starts: one client per shard, in this order; and how all of them read theirs."""

    shards: Annotated[list[Annotated[Source, BeforeValidator(_of_file)]], Field(min_length=1)]
    """One per client: a file, or a table of data, query and labels."""
    holdout: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    """The share of rows that each client keeps for evaluation."""


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
