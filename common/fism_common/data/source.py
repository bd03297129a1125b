"""Where a client's rows come from: the settings of commands and configuration files."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveInt, model_validator

from fism_common.settings import Settings

Scale = Annotated[float, Field(strict=False, gt=0, allow_inf_nan=False)]


class Reading(Settings):
    """How a file is read."""

    label: str | None = None
    """The column of labels, of a table."""
    positive: str | bool | int | float | None = None
    """The label that counts as 1; all others count as -1."""
    features: Annotated[list[str], Field(min_length=1)] | None = None
    """Columns of a table that are used; else all but the label and those to drop."""
    drop: list[str] = Field(default_factory=list)
    """Columns of a table that are not used."""
    scale: Scale = 1.0
    """Multiplies every entry of an array: 1 / 255 for pixels."""
    columns: PositiveInt | None = None
    """How many columns sparse rows have, if it is more than the last one in use."""
    zero_based: bool = False
    """Whether svmlight counts columns from 0."""

    @model_validator(mode="after")
    def _one_way_to_choose(self) -> Reading:
        if self.features is not None and self.drop:
            raise ValueError("give the features that are used, or those to drop, not both")
        if self.features is not None and len(set(self.features)) < len(self.features):
            raise ValueError("each of the features is given once")
        if self.features is not None and self.label in self.features:
            raise ValueError(f"the label {self.label!r} cannot be one of the features")
        return self


class Source(Settings):
    """Which file, or which query."""

    data: str | None = None
    """A file."""
    query: str | None = None
    """SQL, in which files are tables: SELECT ... FROM 'visits.parquet'."""
    labels: str | None = None
    """A file of labels, for arrays without them."""

    @model_validator(mode="after")
    def _one_of_them(self) -> Source:
        if (self.data is None) == (self.query is None):
            raise ValueError("give either data, a file, or query, in SQL")
        return self
