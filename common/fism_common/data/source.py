"""Where a client's rows come from: the settings of commands and configuration files."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, PositiveInt, model_validator

from fism_common.settings import Settings

__all__ = ["Reading", "Source"]

Scale = Annotated[float, Field(strict=False, gt=0, allow_inf_nan=False)]


class Reading(Settings):
    """How a file is read."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    label: str | None = None
    """The column of labels in a table."""
    positive: str | bool | int | float | None = None
    """The label that counts as 1; all others count as -1."""
    features: Annotated[list[str], Field(min_length=1)] | None = None
    """The columns of a table to use, A,B,C; by default all except the label and the dropped ones."""
    drop: list[str] = Field(default_factory=list)
    """The columns of a table to ignore, A,B,C."""
    scale: Scale = 1.0
    """Multiplies every entry of an array: 1 / 255 for pixels."""
    columns: PositiveInt | None = None
    """The number of columns of svmlight rows, if the file does not use the last ones."""
    zero_based: bool = False
    """Count the columns of svmlight from 0."""

    @model_validator(mode="after")
    def _one_way_to_choose(self) -> Reading:
        if self.features is not None and self.drop:
            raise ValueError("give either features or drop, not both")
        if self.features is not None and len(set(self.features)) < len(self.features):
            raise ValueError("features must not name a column twice")
        if self.features is not None and self.label in self.features:
            raise ValueError(f"the label {self.label!r} cannot be one of the features")
        return self


class Source(Settings):
    """Which file, or which query."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    data: str | None = None
    """The rows: a .csv, .parquet, .jsonl, .npz, .npy or .svm file, or IDX images."""
    query: str | None = None
    """Instead of data, SQL over such files: SELECT ... FROM 'visits.parquet' WHERE ..."""
    labels: str | None = None
    """A file of labels, for .npy and IDX."""

    @model_validator(mode="after")
    def _one_of_them(self) -> Source:
        if (self.data is None) == (self.query is None):
            raise ValueError("give either data (a file) or query (SQL)")
        return self
