"""The configuration of a run: its keys, and what each may be."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from fism_common.data.columns import OTHER, Missing, Recipe, Standardise, Unknown
from fism_common.data.source import Reading, Source
from fism_common.settings import Settings

Number = Annotated[float, Field(strict=False, allow_inf_nan=False)]
"""A TOML float or integer."""


class OnAbsence(StrEnum):
    """What to do when a client is absent for longer than ``limits.absence_seconds``, or is excluded."""

    WAIT = "wait"
    CONTINUE = "continue"
    STOP = "stop"


class Federation(Settings):
    """Who takes part, and where the run starts."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "federation"
    """The run's name; by default its folder's name begins with it."""
    clients: PositiveInt | Annotated[list[str], Field(min_length=1)]
    """How many clients, or their names, in federation order."""
    start: str = "zero"
    """x_1: "zero", "random" (uniform in the bounding box of the set), or the path of an .npy file."""
    seed: int = 0
    """The seed of a random start, and of the rows that clients of ``fism run`` hold out."""

    @model_validator(mode="after")
    def _names_are_different(self) -> Federation:
        if isinstance(self.clients, list) and len(set(self.clients)) != len(self.clients):
            raise ValueError("clients must not name the same client twice")
        return self


class Kind(Settings):
    """An object by its kind, with its parameters as further keys; a bare string is a kind without parameters."""

    model_config = ConfigDict(extra="allow")

    kind: str

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, given: object) -> object:
        return {"kind": given} if isinstance(given, str) else given

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters, as in the file."""
        return dict(self.__pydantic_extra__ or {})


def _of_file(source: object) -> object:
    return {"data": source} if isinstance(source, str) else source


class Inner(Settings):
    """The public problem, sent to every client."""

    loss: Kind
    """A kind, such as "logistic", or a table with parameters: { kind = "huber", delta = 1.0 }; "module:Name" for a
    custom loss that every client has."""
    constraint: Kind
    """The set X: { kind = "box", lo = -1.0, hi = 1.0 }; bounds and centres are numbers or .npy files."""
    columns: PositiveInt | None = None
    """The number of columns of the model; by default that of other vectors here, or of the first client."""


class DataRule(Settings):
    """How every client turns its columns into rows; public."""

    features: Annotated[list[str], Field(min_length=1)] | None = None
    """The columns and their order; by default those of the first client."""
    levels: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    """The levels of every categorical column: each level becomes a column of zeros and ones."""
    unknown: Annotated[Unknown, Field(strict=False)] = Unknown.REFUSE
    """What to do with a level that is not listed: refuse the client, or count it as "other"."""
    missing: Annotated[Missing, Field(strict=False)] | Number = Missing.REFUSE
    """What to do with a missing entry: "refuse" the client, or fill in the "mean" of the federation or a number."""
    intercept: bool = False
    """Whether the model has a constant, as its last column."""
    standardise: bool | Annotated[Literal["scale"], Field()] = False
    """Whether columns are centred and scaled, by their mean and spread over all clients; "scale" keeps zeros zero."""

    @model_validator(mode="after")
    def _fit(self) -> DataRule:
        for name, levels in self.levels.items():
            if len(set(levels)) != len(levels):
                raise ValueError(f"levels.{name} must not list a level twice")
            if self.features is not None and name not in self.features:
                raise ValueError(f"levels.{name} names a column that is not one of the features")
            if self.unknown is Unknown.OTHER and OTHER in levels:
                raise ValueError(f"levels.{name} lists {OTHER!r}, which is reserved for unlisted levels")
        if self.features is not None and len(set(self.features)) != len(self.features):
            raise ValueError("features must not name a column twice")
        return self

    def recipe(self) -> Recipe:
        """Return the public recipe, without columns."""
        ways = {False: Standardise.NO, True: Standardise.FULL, "scale": Standardise.SCALE}
        return Recipe(
            levels={name: tuple(levels) for name, levels in self.levels.items()},
            unknown=self.unknown,
            missing=self.missing,
            intercept=self.intercept,
            standardise=ways[self.standardise],
        )


class Outer(Kind):
    """The private objective H, with its parameters as keys; it never leaves the server."""

    kind: str
    """One of "squared-norm", "squared-distance" (anchor), "elastic-net" (l1, l2), "group-lasso" (groups, weight, l2),
    "quadratic" (Q, c), with its parameters as keys; or a custom one, "module:Name". Vectors may be .npy files."""


class Method(Kind):
    """The method that solves the problem."""

    kind: str = "fism"
    """"fism" is the paper's method."""


class Steps(Kind):
    """The steps of every round, with the parameters of the rule as keys."""

    kind: str = "power"
    """"power": gamma_k = gamma / k^a and lambda_k = lambda / k^b, with the keys gamma, a, lambda and b."""
    strict: bool = False
    """Whether to refuse steps that no theorem covers."""


class Participation(Kind):
    """Which clients take part in a round."""

    kind: str = "all"
    """"all": every client answers every round."""


class Aggregation(Kind):
    """How the clients' answers become sums."""

    kind: str = "open"
    """"open": the server sees every answer, checks it, and adds the answers up."""


class PassRule(Settings):
    """How a client goes through its rows."""

    order: Literal["fixed"] = "fixed"
    """The order of the rows: "fixed", as they are stored."""
    rows: Literal["all"] = "all"
    """Which rows a pass visits."""
    step: Literal["subgradient"] = "subgradient"
    """How a row moves x."""


class StopRule(Settings):
    """When the run ends."""

    rounds: PositiveInt
    """The last round."""
    tolerance: Annotated[PositiveFloat, Field(strict=False)] | None = None
    """Stop earlier, by the paper's rule: when x, F and H change by at most this in a round (relative)."""


Seconds = Annotated[PositiveFloat, Field(strict=False)]


class Limits(Settings):
    """Time limits, in seconds."""

    start_seconds: Seconds = 86400.0
    """How long to wait for all clients to join before the run is stopped."""
    round_seconds: Seconds = 600.0
    """How long a client may take for one answer; then it counts as lost."""
    absence_seconds: Seconds = 300.0
    """How long a lost client may take to return, before ``on_absence`` decides."""
    shutdown_seconds: Seconds = 10.0
    """How long the server waits for clients to hang up before it ends."""
    on_absence: Annotated[OnAbsence, Field(strict=False)] = OnAbsence.WAIT
    """Wait forever for a lost client, continue without it, or stop the run."""


class EvaluationRule(Settings):
    """How often clients evaluate the model on the rows that they hold out."""

    every: PositiveInt = 10
    """The number of rounds from one evaluation to the next."""


class Security(Settings):
    """Who may take part, and with which certificates."""

    certs: str | None = None
    """The folder of certificates; without it the server uses plain text, on this host only."""
    name: str = "server"
    """The name of the server's certificate."""
    allowed: Annotated[list[str], Field(min_length=1)] | None = None
    """Who may take part, when ``clients`` is a number."""


class Local(Reading):
    """The clients that ``fism run`` starts, one per shard in this order, and how they read their shards."""

    shards: Annotated[list[Annotated[Source, BeforeValidator(_of_file)]], Field(min_length=1)]
    """One per client: a file, or a table with the keys data, query and labels."""
    holdout: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    """The share of rows that each client keeps for evaluation."""


class RunConfig(Settings):
    """A whole run."""

    federation: Federation
    inner: Inner
    data: DataRule = DataRule()
    outer: Outer
    method: Method = Method()
    steps: Steps
    stop: StopRule
    participation: Participation = Participation()
    aggregation: Aggregation = Aggregation()
    pass_: Annotated[PassRule, Field(alias="pass")] = PassRule()
    limits: Limits = Limits()
    evaluation: EvaluationRule = EvaluationRule()
    security: Security = Security()
    local: Local | None = None
