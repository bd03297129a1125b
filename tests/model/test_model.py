"""A model after a run: predictions, measures, files."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score, root_mean_squared_error

import fism
from fism_client.data.shard import Shard
from fism_common.data.columns import Column, Kind, Recipe, Standardise, Unknown
from fism_common.data.moments import Scaling
from fism_common.errors import DataError, MethodError
from fism_common.model import Fitted, write_model
from fism_common.problem.registry import Variant

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
COEF = np.array([0.5, -1.0, 2.0])


def written(folder: Path, loss: str = "logistic", recipe: Recipe | None = None, **parameters: float) -> fism.Model:
    """Return a model with these coefficients and an intercept of 0.25, as it is read from its files."""
    fitted = Fitted(np.array([*COEF, 0.25]), Variant(loss, parameters), recipe or Recipe(intercept=True), None)
    write_model(folder / "model", fitted, {"run": "r"})
    return fism.load(folder)


def test_model_is_found_by_its_folder_and_by_each_file(tmp_path: Path) -> None:
    """And told if it is not there."""
    written(tmp_path)
    for path in (tmp_path, tmp_path / "model.npz", tmp_path / "model.json"):
        np.testing.assert_array_equal(fism.load(path).coef, COEF)
    with pytest.raises(DataError, match=r"there is no model .*other: .*other\.json is missing"):
        fism.load(tmp_path / "other")


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 99}'])
def test_damaged_model_is_refused_by_name(damage: bytes, tmp_path: Path) -> None:
    """Whatever is wrong with it."""
    written(tmp_path)
    (tmp_path / "model.json").write_bytes(damage)
    with pytest.raises(DataError, match=r"the model .* (cannot be read|is damaged|has format 99)"):
        fism.load(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"PK", np.arange(3).tobytes()])
def test_damaged_vectors_are_refused_by_name(damage: bytes, tmp_path: Path) -> None:
    """Cut off, or of another kind."""
    written(tmp_path)
    (tmp_path / "model.npz").write_bytes(damage)
    with pytest.raises(DataError, match=r"the model .* cannot be read"):
        fism.load(tmp_path)


def test_scores_classes_and_probabilities(tmp_path: Path) -> None:
    """In the manner of scikit-learn, from dense and sparse rows."""
    model, scores = written(tmp_path), X @ COEF + 0.25
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-14)
    np.testing.assert_allclose(model.decision_function(csr_array(X)), scores, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(X), np.sign(scores))
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-14)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict_proba(1e6 * X[:1])[0], [0.0, 1.0] if scores[0] > 0 else [1.0, 0.0])


def test_measures_of_classes_are_those_of_scikit_learn(tmp_path: Path) -> None:
    """Mean loss, accuracy and AUC, also with equal scores."""
    model = written(tmp_path)
    rows = np.round(X)  # so that some scores are equal
    labels = np.where(RNG.random(40) < 0.5, 1.0, -1.0)
    shard = model.shard(rows)
    measured = model.evaluate(Shard(shard.rows, labels, shard.scale))
    assert measured["rows"] == 40
    assert measured["loss"] == pytest.approx(log_loss(labels, model.predict_proba(rows)), rel=1e-12)
    assert measured["auc"] == pytest.approx(roc_auc_score(labels, model.decision_function(rows)), rel=1e-12)
    assert measured["accuracy"] == pytest.approx(np.mean(model.decision_function(rows) * labels > 0))


@pytest.mark.parametrize(
    ("loss", "parameters"), [("squared", {}), ("absolute", {}), ("quantile", {"tau": 0.9}), ("huber", {})]
)
def test_measures_of_numbers_are_those_of_scikit_learn(loss: str, parameters: dict[str, float], tmp_path: Path) -> None:
    """Errors, and how many labels are not above what is predicted."""
    model = written(tmp_path, loss, None, **parameters)
    labels = X @ COEF + RNG.normal(size=40)
    shard = model.shard(X)
    measured = model.evaluate(Shard(shard.rows, labels, shard.scale))
    predicted = model.predict(X)
    assert measured["mean_absolute_error"] == pytest.approx(mean_absolute_error(labels, predicted))
    assert measured["root_mean_squared_error"] == pytest.approx(root_mean_squared_error(labels, predicted))
    assert measured["not_above"] == np.mean(labels <= predicted)
    with pytest.raises(MethodError, match="gives scores but no probabilities"):
        model.predict_proba(X)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared-hinge", "squared", "absolute", "huber", "quantile"])
def test_scikit_learn_gets_a_fitted_model(loss: str, tmp_path: Path) -> None:
    """That predicts the same."""
    model = written(tmp_path, loss)
    np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X), rtol=1e-12)


def test_place_has_no_scores(tmp_path: Path) -> None:
    """A model of ball-distance is evaluated, and predicts nothing."""
    model = written(tmp_path, "ball-distance", Recipe())
    with pytest.raises(MethodError, match="is a point and gives no scores"):
        model.predict(np.zeros((1, 4)))
    with pytest.raises(MethodError, match="scikit-learn has no linear model"):
        model.to_sklearn()
    shard = Shard.of(np.zeros((1, 4)), [0.0])
    assert model.evaluate(shard)["loss"] == pytest.approx(np.sqrt(np.sum(COEF**2) + 0.25**2))


def test_rows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """By number, or by name."""
    with pytest.raises(DataError, match="rows have 2 columns, but the model has 3: 0, 1, 2"):
        written(tmp_path).predict(X[:, :2])
    columns = tuple(Column(name, Kind.NUMBER) for name in ("a", "b", "c"))
    model = written(tmp_path, recipe=Recipe(features=columns, intercept=True))
    with pytest.raises(DataError, match="lacks columns that the model needs: 'c'"):
        model.predict({"a": [1.0], "b": [2.0]})
    np.testing.assert_allclose(model.predict({"c": [1.0], "b": [1.0], "a": [1.0]}), [1.0])


def test_columns_are_taken_as_people_have_them(tmp_path: Path) -> None:
    """Objects, masks, and what is missing; times in any unit, with and without a zone."""
    columns = (Column("n", Kind.NUMBER), Column("t", Kind.TIME), Column("w", Kind.TEXT))
    recipe = Recipe(features=columns, levels={"w": ("1", "x")}, missing=-1.0)
    fitted = Fitted(np.array([1.0, 10.0, 100.0, 1000.0]), Variant("squared", {}), recipe, None)
    write_model(tmp_path / "model", fitted, {})
    model = fism.load(tmp_path)
    moment = datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    for numbers, times, words in (
        ([1, None], np.array(["1970-01-01T00:00:02", "NaT"], "datetime64[s]"), ["x", 1]),
        (np.ma.masked_array([1.0, 5.0], [False, True]), [moment.replace(tzinfo=None), None], np.array(["x", "1"])),
        ([np.int64(1), None], [moment, None], ["x", np.int64(1)]),
        ([Decimal(1), np.float32("nan")], [moment, None], ["x", 1.0]),
        (np.array([1, np.nan], object), [moment.astimezone(timezone(timedelta(hours=5))), float("nan")], ["x", 1.0]),
    ):
        scores = model.predict({"n": numbers, "t": times, "w": words})
        np.testing.assert_array_equal(scores, [1 + 20 + 1000, -1 - 10 + 100])
    np.testing.assert_array_equal(model.predict({"n": [1], "t": [date(1970, 1, 2)], "w": ["x"]}), [1 + 864000 + 1000])
    np.testing.assert_array_equal(model.predict({"n": [1], "t": [None], "w": ["x"]}), [1 - 10 + 1000])
    with pytest.raises(DataError, match="row 2, column 'n' is 'many', where a number is expected"):
        model.predict({"n": [1, "many"], "t": [moment, moment], "w": ["x", "x"]})
    with pytest.raises(DataError, match="row 2, column 't' is 'soon', where a time such as"):
        model.predict({"n": [1, 2], "t": ["1970-01-01", "soon"], "w": ["x", "x"]})
    with pytest.raises(DataError, match="columns must be one-dimensional and of equal length"):
        model.predict({"n": 1, "t": moment, "w": "x"})
    with pytest.raises(DataError, match="column 't' is a number, but a time in the model"):
        model.predict({"n": [1.0], "t": [2.0], "w": ["x"]})


@pytest.mark.parametrize("values", [[True, False, None], np.array([True, False, False]), [np.True_, np.False_, None]])
def test_truths_are_levels(values: object, tmp_path: Path) -> None:
    """However Python has them."""
    recipe = Recipe(features=(Column("k", Kind.NUMBER),), levels={"k": ("true", "false")}, unknown=Unknown.OTHER)
    fitted = Fitted(np.array([1.0, -1.0, 0.0]), Variant("squared", {}), recipe, None)
    write_model(tmp_path / "model", fitted, {})
    assert fism.load(tmp_path).predict({"k": values})[:2].tolist() == [1.0, -1.0]


def test_names_with_points_stay_whole(tmp_path: Path) -> None:
    """Of two models beside each other neither takes the other's place."""
    fitted = Fitted(COEF, Variant("squared", {}), Recipe(), None)
    for name in ("site.v1", "site.v2"):
        write_model(tmp_path / name, fitted, {"name": name})
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("site.v1.json", "site.v1.npz", "site.v2.json", "site.v2.npz")
    ]
    assert fism.load(tmp_path / "site.v1.npz").card["name"] == "site.v1"


@pytest.mark.parametrize("standardise", [Standardise.FULL, Standardise.SCALE])
def test_original_units_give_the_same_scores(standardise: Standardise, tmp_path: Path) -> None:
    """From coefficients and the constant, without the model's own means."""
    rows = 5 + 3 * X
    scaling = Scaling(np.append(rows.mean(axis=0), 0.0), np.zeros(4), np.append(rows.std(axis=0), 1.0))
    recipe = Recipe(intercept=True, standardise=standardise)
    fitted = Fitted(np.array([*COEF, 0.25]), Variant("squared", {}), recipe, scaling)
    write_model(tmp_path / "model", fitted, {})
    model = fism.load(tmp_path)
    np.testing.assert_allclose(model.predict(rows), rows @ model.coef + model.intercept, rtol=1e-12)
    center = rows.mean(axis=0) if standardise is Standardise.FULL else 0.0
    np.testing.assert_allclose(model.predict(rows), (rows - center) / rows.std(axis=0) @ COEF + 0.25, rtol=1e-12)


def test_card_says_what_the_model_is(tmp_path: Path) -> None:
    """Names, coefficients, the public problem and where it is from; and nothing of H."""
    columns = tuple(Column(name, Kind.NUMBER) for name in ("a", "b", "c"))
    written(tmp_path, recipe=Recipe(features=columns, intercept=True))
    card = json.loads((tmp_path / "model.json").read_text())
    assert card["loss"] == {"kind": "logistic"}
    assert card["coefficients"] == [{"column": n, "coefficient": c} for n, c in zip("abc", COEF, strict=True)]
    assert (card["intercept"], card["run"], card["version"]) == (0.25, "r", fism.__version__)
    assert "outer" not in card
