"""A model that a run has written, for use on new rows in the manner of scikit-learn."""

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
from fism_common.problem.losses import CLASSIFYING, LOSSES, named_loss
from fism_common.problem.sets import Ball
from fism_common.vectors import norm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fism_client.data.loading import Data
    from fism_common.data.source import Reading, Source
    from fism_common.model import Fitted
    from fism_common.problem.losses import Loss
    from fism_common.vectors import Vector

_SKLEARN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "logistic": ("LogisticRegression", "sklearn.linear_model", {}),
    "hinge": ("LinearSVC", "sklearn.svm", {"loss": "hinge"}),
    "squared-hinge": ("LinearSVC", "sklearn.svm", {}),
    "squared": ("LinearRegression", "sklearn.linear_model", {}),
    "absolute": ("QuantileRegressor", "sklearn.linear_model", {"quantile": 0.5}),
    "huber": ("HuberRegressor", "sklearn.linear_model", {}),
    "quantile": ("QuantileRegressor", "sklearn.linear_model", {}),
}


def load(path: str | Path) -> Model:
    """Return the model in a run's folder, or one of whose two files this is; raise DataError if there is none."""
    return Model(*read_model(Path(path)))


class Model:
    """A linear model: a score for each row, and what follows from it.

    Rows are given as tables (a mapping of columns by name, such as a pandas DataFrame) where the model's columns have
    names, or as arrays, dense or sparse, with the columns ``names``, in the units in which clients have them.
    """

    def __init__(self, fitted: Fitted, card: dict[str, Any]) -> None:
        """Take a model as it was written, and what is told of it."""
        self._fitted, self.card = fitted, card
        self.coef, self.intercept = fitted.in_original_units()

    @property
    def names(self) -> list[str]:
        """The columns that coefficients are for; numbers where they have no names."""
        entries = self._fitted.recipe.entries()
        return [entry.name for entry in entries[: self.coef.size]] or [str(i) for i in range(self.coef.size)]

    @property
    def classes(self) -> bool:
        """Whether it tells two classes apart, -1 and 1."""
        name = self._fitted.loss.name
        return name in LOSSES and LOSSES[name].kind in CLASSIFYING

    def decision_function(self, rows: ArrayLike | SparseMatrix | Mapping[str, Any]) -> Vector:
        """Return the score of every row."""
        return self.scores(self.shard(rows))

    def predict(self, rows: ArrayLike | SparseMatrix | Mapping[str, Any]) -> Vector:
        """Return the class of every row, -1 or 1, or the number that is predicted for it."""
        return self._predictions(self.decision_function(rows))

    def predict_proba(self, rows: ArrayLike | SparseMatrix | Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the probabilities of both classes, -1 first, for every row."""
        return self._probabilities(self.decision_function(rows))

    def shard(self, rows: ArrayLike | SparseMatrix | Mapping[str, Any]) -> Shard:
        """Return rows as the model was fitted on them."""
        recipe = self._fitted.recipe
        if isinstance(rows, Mapping) or hasattr(rows, "columns"):
            return self.prepare(_table(rows))
        shard = Shard.of(rows, np.zeros(_count(rows)), where="rows", missing=True)
        if shard.columns != self.coef.size:
            raise DataError(f"rows have {shard.columns} columns, and the model {self.coef.size}: {self._some_names()}")
        return self._standardised(Matrix("rows", shard).encode(replace(recipe, features=())))

    def prepare(self, data: Data) -> Shard:
        """Return loaded data as the model was fitted on it."""
        recipe = self._fitted.recipe
        if recipe.features:
            given = {column.name: column.kind for column in data.schema}
            missing = [column.name for column in recipe.features if column.name not in given]
            if missing:
                raise DataError(f"{data.where} lacks columns of the model: {', '.join(map(repr, missing))}")
            for column in recipe.features:
                kind = given[column.name]
                # Which of its texts is not what the model has, encoding tells; what is empty may be of any kind.
                fits = kind in {column.kind, Kind.TEXT} or _is_empty(data, column.name)
                if column.name not in recipe.levels and not fits:
                    raise DataError(
                        f"{data.where}: column {column.name!r} is a {kind}, and in the model a {column.kind}"
                    )
        elif data.schema:
            raise DataError(f"{data.where} has columns with names, and the model was fitted on columns without")
        elif data.width != self.coef.size:
            raise DataError(f"{data.where} has {data.width} columns, and the model {self.coef.size}")
        return self._standardised(data.encode(recipe))

    def read(self, source: Source, reading: Reading, folder: Path, *, labelled: bool = False) -> Shard:
        """Return the rows of a file as the model was fitted on them."""
        names = [column.name for column in self._fitted.recipe.features]
        if names and reading.label in names:
            raise DataError(f"the label {reading.label!r} is a column that the model predicts from; name another one")
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
        """Return the scores of rows as the model was fitted on them."""
        if self._fitted.loss.name == "ball-distance":
            raise MethodError("a model of ball-distance is a place, and gives no score; evaluate it")
        return shard.scores(self._fitted.x)

    def outputs(self, shard: Shard) -> dict[str, Vector]:
        """Return for every row the score, the prediction, and the probability of 1 if there is one."""
        scores = self.scores(shard)
        found = {"score": scores, "prediction": self._predictions(scores)}
        if self._fitted.loss.name == "logistic":
            found["probability"] = self._probabilities(scores)[:, 1]
        return found

    def evaluate(self, shard: Shard) -> dict[str, float]:
        """Return how the model does on labelled rows: the mean loss, and accuracy and AUC, or errors."""
        from fism.evaluation import error_measures, mean_loss, of_classes  # noqa: PLC0415  # loads the kernels

        found: dict[str, float] = {"rows": shard.count}
        loss = self._loss()
        if loss is not None:
            found["loss"] = mean_loss(shard, loss, self._fitted.x, Ball(norm(self._fitted.x) + 1.0))
        if self._fitted.loss.name == "ball-distance":
            return found
        scores = self.scores(shard)
        return found | (of_classes(scores, shard.labels) if self.classes else error_measures(scores, shard.labels))

    def to_sklearn(self) -> Any:  # noqa: ANN401  # one of several classes, none of which is typed
        """Return a fitted linear model of scikit-learn that predicts the same from arrays of the columns ``names``."""
        name = self._fitted.loss.name
        if name not in _SKLEARN:
            raise MethodError(f"scikit-learn has no linear model for the loss {name!r}")
        from importlib import import_module  # noqa: PLC0415

        kind, module, parameters = _SKLEARN[name]
        try:
            made = getattr(import_module(module), kind)(**parameters)
        except ImportError as error:
            raise MethodError(f"this needs scikit-learn: pip install 'fism[examples]' ({error})") from error
        if name == "quantile":
            made.set_params(quantile=self._fitted.loss.parameters.get("tau", 0.5))
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
        if self._fitted.loss.name != "logistic":
            raise MethodError(
                f"the loss {self._fitted.loss.name!r} gives scores, and no probabilities; 'logistic' does"
            )
        with np.errstate(over="ignore"):  # exp of a large score is inf, and its probability 0
            one = 1.0 / (1.0 + np.exp(-scores))
        return np.column_stack([1.0 - one, one])

    def _standardised(self, shard: Shard) -> Shard:
        fitted = self._fitted
        return shard if fitted.scaling is None else standardised(shard, fitted.recipe, fitted.scaling)

    def _loss(self) -> Loss | None:
        told = self._fitted.loss
        return named_loss(told.name, **told.parameters) if told.name in LOSSES else None

    def _some_names(self) -> str:
        most = 12
        return ", ".join(self.names[:most]) + (", ..." if self.coef.size > most else "")


def _count(rows: ArrayLike | SparseMatrix) -> int:
    shape = rows.tocsr().shape if isinstance(rows, SparseMatrix) else np.shape(rows)
    return int(shape[0]) if shape else 0


def _table(rows: Any) -> Table:  # noqa: ANN401  # a mapping, or what looks like one
    """Return columns by name as a table."""
    given = {str(name): _listed(rows[name]) for name in (rows.columns if hasattr(rows, "columns") else rows)}
    shapes = {np.shape(values) for values in given.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise DataError(f"columns must be lists of one length, not of the shapes {sorted(shapes)}")
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


def _listed(values: Any) -> NDArray[Any]:  # noqa: ANN401  # of whatever kind, or of several
    """Return the values of a column, those that are missing as None; of a list, which NumPy would make of one kind."""
    if isinstance(values, np.ma.MaskedArray):
        there = ~np.ma.getmaskarray(values)
        values = [value if here else None for value, here in zip(values.data.tolist(), there, strict=True)]
    return np.asarray(values, object if isinstance(values, (list, tuple)) else None)


def _column(values: NDArray[Any]) -> tuple[NDArray[Any], Kind]:
    """Return a column's values as tables have them, and its kind."""
    if values.dtype.kind == "M":
        return seconds_since_1970(values), Kind.TIME
    if values.dtype.kind in "buif":
        return values, Kind.NUMBER
    there = [None if _is_missing(value) else value for value in values.tolist()]
    known = [value for value in there if value is not None]
    if all(isinstance(value, (Real, Decimal, np.bool_)) for value in known):
        return np.array([np.nan if value is None else float(value) for value in there]), Kind.NUMBER
    if all(isinstance(value, date) for value in known):
        return np.array([np.nan if value is None else _seconds(value) for value in there]), Kind.TIME
    return np.array([None if value is None else text_of(value) for value in there], object), Kind.TEXT


def _is_empty(data: Data, name: str) -> bool:
    """Whether all of a table's column is missing."""
    return isinstance(data, Table) and data.kinds[name] is not Kind.TEXT and bool(np.isnan(data.columns[name]).all())


def _is_missing(value: object) -> bool:
    """Whether a value stands for none: None, NaN, or what pandas has for it."""
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def _seconds(day: date) -> float:
    """Return seconds since 1970; a day begins at midnight in UTC."""
    return seconds_of(day if isinstance(day, datetime) else datetime(day.year, day.month, day.day, tzinfo=UTC))
