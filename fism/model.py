"""A model written by a run, for predictions on new rows with an API like scikit-learn's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_client.data.labels import text_of
from fism_client.data.loading import is_svmlight
from fism_client.data.loading import load as load_data
from fism_client.data.matrix import Matrix
from fism_client.data.readers.times import seconds_of, seconds_since_1970
from fism_client.data.shard import Shard, SparseMatrix
from fism_client.data.standardise import standardised
from fism_client.data.table import Table
from fism_common.data.columns import Kind
from fism_common.errors import DataError, MethodError
from fism_common.model import read_model
from fism_common.problem.losses import LOSSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fism_client.data.loading import Data
    from fism_common.data.source import Reading, Source
    from fism_common.model import Fitted
    from fism_common.problem.losses import Loss
    from fism_common.vectors import Vector

__all__ = ["Model", "load"]


def load(path: str | Path) -> Model:
    """Return the model in a run's folder, or from one of its two files; raise DataError if there is none."""
    return Model(*read_model(Path(path)))


class Model:
    """A linear model: a score for each row, and predictions from the scores.

    Give rows as a table (a mapping of columns by name, such as a pandas DataFrame) if the model's columns have names,
    or as a dense or sparse array with the columns ``names``. Values are in the clients' original units.

    It has more than twelve methods: the usual ones of scikit-learn, and those that the commands need.
    """

    def __init__(self, fitted: Fitted, card: dict[str, Any]) -> None:
        """Take the fitted parameters and the model card."""
        self._fitted, self.card = fitted, card
        self.coef, self.intercept = fitted.in_original_units()

    @property
    def names(self) -> list[str]:
        """The columns of the coefficients, by name, or by number if they have no names."""
        entries = self._fitted.recipe.entries()
        return [entry.name for entry in entries[: self.coef.size]] or [str(i) for i in range(self.coef.size)]

    @property
    def classes(self) -> bool:
        """Whether it is a classifier, with classes -1 and 1."""
        kind = self._fitted.loss.kind
        return kind in LOSSES and LOSSES[kind].classifies

    def decision_function(self, rows: ArrayLike | SparseMatrix | Mapping[str, Any]) -> Vector:
        """Return the score of every row."""
        return self.scores(self.shard(rows))

    def predict(self, rows: ArrayLike | SparseMatrix | Mapping[str, Any]) -> Vector:
        """Return the predicted class of every row, -1 or 1, or its predicted number."""
        return self._predictions(self.decision_function(rows))

    def predict_proba(self, rows: ArrayLike | SparseMatrix | Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the probabilities of both classes, -1 first, for every row."""
        return self._probabilities(self.decision_function(rows))

    def shard(self, rows: ArrayLike | SparseMatrix | Mapping[str, Any]) -> Shard:
        """Return rows encoded and scaled as in training."""
        recipe = self._fitted.recipe
        if isinstance(rows, Mapping) or hasattr(rows, "columns"):
            return self.prepare(_table(rows))
        shard = Shard.of(rows, np.zeros(_count(rows)), where="rows", missing=True)
        if shard.columns != self.coef.size:
            raise DataError(
                f"rows have {shard.columns} columns, but the model has {self.coef.size}: {self._some_names()}"
            )
        return self._standardised(Matrix("rows", shard).encode(replace(recipe, features=())))

    def prepare(self, data: Data) -> Shard:
        """Return loaded data encoded and scaled as in training."""
        recipe = self._fitted.recipe
        if recipe.features:
            given = {column.name: column.kind for column in data.schema}
            missing = [column.name for column in recipe.features if column.name not in given]
            if missing:
                raise DataError(f"{data.where} lacks columns that the model needs: {', '.join(map(repr, missing))}")
            for column in recipe.features:
                kind = given[column.name]
                # Encoding reports texts that the model cannot use; an empty column may be of any kind.
                fits = kind in {column.kind, Kind.TEXT} or _is_empty(data, column.name)
                if column.name not in recipe.levels and not fits:
                    raise DataError(
                        f"{data.where}: column {column.name!r} is a {kind}, but a {column.kind} in the model"
                    )
        elif data.schema:
            raise DataError(f"{data.where} has named columns, but the model was fitted on columns without names")
        elif data.width != self.coef.size:
            raise DataError(f"{data.where} has {data.width} columns, but the model has {self.coef.size}")
        return self._standardised(data.encode(recipe))

    def read(self, source: Source, reading: Reading, folder: Path, *, labelled: bool = False) -> Shard:
        """Return the rows of a file, encoded and scaled as in training."""
        names = [column.name for column in self._fitted.recipe.features]
        if names and reading.label in names:
            raise DataError(f"the label {reading.label!r} is one of the model's input columns; choose another label")
        if names and reading.features is None and source.query is None:
            reading = reading.model_copy(update={"features": names, "drop": []})
        elif not names and reading.columns is None and is_svmlight(Path(source.data or "")):
            reading = reading.model_copy(update={"columns": self.coef.size})
        data = load_data(source, reading, folder, labelled=labelled)
        loss = self._loss()
        if labelled and loss is not None:
            loss.check_labels(data.labels, data.where, data.first_row)
        return self.prepare(data)

    def scores(self, shard: Shard) -> Vector:
        """Return the scores of rows that are encoded and scaled as in training."""
        if self._fitted.loss.kind == "ball-distance":
            raise MethodError("a ball-distance model is a point and gives no scores; use evaluate")
        return shard.scores(self._fitted.x)

    def outputs(self, shard: Shard) -> dict[str, Vector]:
        """Return the score and prediction of every row, and the probability of class 1 if the loss gives one."""
        scores = self.scores(shard)
        found = {"score": scores, "prediction": self._predictions(scores)}
        if self._fitted.loss.kind == "logistic":
            found["probability"] = self._probabilities(scores)[:, 1]
        return found

    def evaluate(self, shard: Shard) -> dict[str, float]:
        """Return measures on labelled rows: the mean loss, and accuracy and AUC or prediction errors."""
        from fism.evaluation import error_measures, mean_loss, of_classes  # noqa: PLC0415  # loads the kernels

        found: dict[str, float] = {"rows": shard.count}
        loss = self._loss()
        if loss is not None:
            found["loss"] = mean_loss(shard, loss, self._fitted.x)
        if self._fitted.loss.kind == "ball-distance":
            return found
        scores = self.scores(shard)
        return found | (of_classes(scores, shard.labels) if self.classes else error_measures(scores, shard.labels))

    def to_sklearn(self) -> Any:  # noqa: ANN401  # one of several classes, none of which is typed
        """Return a fitted scikit-learn model that makes the same predictions from arrays with the columns ``names``."""
        loss = self._loss()
        if loss is None or loss.sklearn is None:
            raise MethodError(f"scikit-learn has no linear model for the loss {self._fitted.loss.kind!r}")
        from importlib import import_module  # noqa: PLC0415

        module, name, parameters = loss.sklearn
        given = {key: getattr(loss, str(value), value) for key, value in parameters.items()}
        try:
            made = getattr(import_module(module), name)(**given)
        except ImportError as error:
            raise MethodError(f"this needs scikit-learn: pip install 'fism[examples]' ({error})") from error
        made.n_features_in_ = self.coef.size
        if self.classes:
            made.classes_ = np.array([-1, 1])
            made.coef_, made.intercept_ = self.coef[None, :].copy(), np.array([self.intercept])
        else:
            made.coef_, made.intercept_ = self.coef.copy(), self.intercept
        return made

    def _predictions(self, scores: Vector) -> Vector:
        return np.where(scores > 0, 1.0, -1.0) if self.classes else scores

    def _probabilities(self, scores: Vector) -> NDArray[np.float64]:
        if self._fitted.loss.kind != "logistic":
            raise MethodError(
                f"the loss {self._fitted.loss.kind!r} gives scores but no probabilities; 'logistic' gives both"
            )
        with np.errstate(over="ignore"):  # exp may overflow to inf; the probability is then 0
            one = 1.0 / (1.0 + np.exp(-scores))
        return np.column_stack([1.0 - one, one])

    def _standardised(self, shard: Shard) -> Shard:
        fitted = self._fitted
        return shard if fitted.scaling is None else standardised(shard, fitted.recipe, fitted.scaling)

    def _loss(self) -> Loss | None:
        loss = self._fitted.loss
        return LOSSES.from_variant(loss, {}) if loss.kind in LOSSES else None

    def _some_names(self) -> str:
        most = 12
        return ", ".join(self.names[:most]) + (", ..." if self.coef.size > most else "")


def _count(rows: ArrayLike | SparseMatrix) -> int:
    shape = rows.tocsr().shape if isinstance(rows, SparseMatrix) else np.shape(rows)
    return int(shape[0]) if shape else 0


def _table(rows: Any) -> Table:  # noqa: ANN401  # a mapping, or an object like one
    """Return a mapping of columns as a table."""
    given = {str(name): _listed(rows[name]) for name in (rows.columns if hasattr(rows, "columns") else rows)}
    shapes = {np.shape(values) for values in given.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise DataError(f"columns must be one-dimensional and of equal length, not of the shapes {sorted(shapes)}")
    columns = {name: _column(values) for name, values in given.items()}

    def verbatim(names: Sequence[str]) -> list[NDArray[Any]]:
        return [
            np.array([None if _is_missing(value) else text_of(value) for value in given[name].tolist()], object)
            for name in names
        ]

    return Table(
        "rows",
        {name: values for name, (values, _) in columns.items()},
        {name: kind for name, (_, kind) in columns.items()},
        np.zeros(next(iter(shapes))[0]),
        verbatim,
    )


def _listed(values: Any) -> NDArray[Any]:  # noqa: ANN401  # of any type, or mixed
    """Return a column as an array, masked values as None; lists keep their Python types, which NumPy would unify."""
    if isinstance(values, np.ma.MaskedArray):
        present = ~np.ma.getmaskarray(values)
        values = [value if here else None for value, here in zip(values.data.tolist(), present, strict=True)]
    return np.asarray(values, object if isinstance(values, (list, tuple)) else None)


def _column(values: NDArray[Any]) -> tuple[NDArray[Any], Kind]:
    """Return a column's values as a table stores them, and its kind."""
    if values.dtype.kind == "M":
        return seconds_since_1970(values), Kind.TIME
    if values.dtype.kind in "buif":
        return values, Kind.NUMBER
    found = [None if _is_missing(value) else value for value in values.tolist()]
    known = [value for value in found if value is not None]
    if all(isinstance(value, (Real, Decimal, np.bool_)) for value in known):
        return np.array([np.nan if value is None else float(value) for value in found]), Kind.NUMBER
    if all(isinstance(value, date) for value in known):
        return np.array([np.nan if value is None else _seconds(value) for value in found]), Kind.TIME
    return np.array([None if value is None else text_of(value) for value in found], object), Kind.TEXT


def _is_empty(data: Data, name: str) -> bool:
    """Whether a column of a table has no values at all."""
    return isinstance(data, Table) and data.kinds[name] is not Kind.TEXT and bool(np.isnan(data.columns[name]).all())


def _is_missing(value: object) -> bool:
    """Whether a value is missing: None, NaN, or pandas' NA or NaT."""
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def _seconds(day: date) -> float:
    """Return seconds since 1970; a day begins at midnight in UTC."""
    return seconds_of(day if isinstance(day, datetime) else datetime(day.year, day.month, day.day, tzinfo=UTC))
