"""A model's files: NAME.npz with its vectors, and NAME.json with what they mean."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_common import __version__
from fism_common.data.columns import Column, Kind, Missing, Recipe, Standardise, Unknown
from fism_common.data.moments import SCALING, Scaling
from fism_common.errors import DataError
from fism_common.files import BROKEN_ARRAYS, write_bytes, write_npz
from fism_common.wire.terms import NamedLoss

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fism_common.vectors import Vector

_FORMAT = 1
_MOST_LISTED = 10_000
"""Columns without names beyond so many are in the .npz file alone."""


@dataclass(frozen=True)
class Fitted:
    """A solution, and all that is needed to use it on new rows."""

    x: Vector
    loss: NamedLoss
    recipe: Recipe
    scaling: Scaling | None

    def in_original_units(self) -> tuple[Vector, float]:
        """Return the coefficients for columns as they were before standardising, and the constant that goes with them.

        The constant is what is added for a row of zeros. Where columns are far from 0 in terms of their spread, as
        times since 1970 are, it cancels against the rest, and digits are lost; ``fism.load`` does without it.
        """
        slopes = self.x[:-1] if self.recipe.intercept else self.x
        constant = float(self.x[-1]) if self.recipe.intercept else 0.0
        scaling, n = self.scaling, slopes.size
        if scaling is None or self.recipe.standardise is Standardise.NO:
            return slopes.copy(), constant
        slopes = slopes / scaling.spread[:n]
        if self.recipe.standardise is Standardise.FULL:
            constant -= math.fsum([*(slopes * scaling.mean[:n]), *(slopes * scaling.rest[:n])])
        return slopes, constant


def write_model(stem: Path, fitted: Fitted, provenance: Mapping[str, Any], **means: Vector) -> None:
    """Write a model beside each other as .npz and .json; ``means`` are other vectors to keep.

    Raises OSError where it cannot be written.
    """
    coefficients, constant = fitted.in_original_units()
    vectors = {"x": fitted.x, **means, "coefficients": coefficients, "intercept": np.array(constant)}
    if fitted.scaling is not None:
        vectors |= {name: getattr(fitted.scaling, name) for name in SCALING}
    write_npz(_with(stem, ".npz"), **vectors)
    card = {
        "format": _FORMAT,
        **provenance,
        "version": __version__,
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "loss": {"name": fitted.loss.name, "parameters": dict(fitted.loss.parameters)},
        "data": _recipe_table(fitted.recipe),
        "units": "the change of the score for one unit of the column, as clients have it",
        "intercept": constant,
        "coefficients": _listed(fitted, coefficients),
    }
    write_bytes(_with(stem, ".json"), json.dumps(card, indent=2, ensure_ascii=False).encode() + b"\n")


def read_model(path: Path) -> tuple[Fitted, dict[str, Any]]:
    """Return a model, and what is told of it; ``path`` is one of its files, or a run's folder.

    Raises DataError that names the file.
    """
    stem = path / "model" if path.is_dir() else stem_of(path)
    try:
        card = json.loads(_with(stem, ".json").read_bytes())
        with np.load(_with(stem, ".npz"), allow_pickle=False) as file:
            vectors = {name: file[name] for name in file.files}
    except FileNotFoundError as error:
        raise DataError(f"there is no model {path}: {error.filename} is missing") from None
    except BROKEN_ARRAYS as error:
        raise DataError(f"the model {path} cannot be read: {error}") from error
    try:
        if card["format"] != _FORMAT:
            raise DataError(f"the model {path} is of format {card['format']}, and this version reads {_FORMAT}")
        scaling = Scaling(*(vectors[name] for name in SCALING)) if "spread" in vectors else None
        loss = NamedLoss(card["loss"]["name"], card["loss"]["parameters"])
        return Fitted(vectors["x"], loss, _recipe_of(card["data"]), scaling), card
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the model {path} is not as it was written: {error!r}") from error


def stem_of(path: Path) -> Path:
    """Return what the names of a model's two files begin with."""
    return path.with_name(path.name.removesuffix(".npz").removesuffix(".json"))


def _with(stem: Path, suffix: str) -> Path:
    return stem.with_name(stem.name + suffix)


def _listed(fitted: Fitted, coefficients: Vector) -> list[dict[str, Any]] | None:
    """Return the columns with their coefficients; None where they are too many to read, and have no names."""
    entries = fitted.recipe.entries()
    if not entries and coefficients.size > _MOST_LISTED:
        return None
    listed = []
    for i, value in enumerate(coefficients):
        one: dict[str, Any] = {"column": entries[i].name if entries else i, "coefficient": float(value)}
        if fitted.scaling is not None:
            scaling = fitted.scaling
            one |= {
                "mean": float(scaling.mean[i]),
                "spread": float(scaling.spread[i]),
                "standardised": float(fitted.x[i]),
            }
        listed.append(one)
    return listed


def _recipe_table(recipe: Recipe) -> dict[str, Any]:
    return {
        "features": [[column.name, str(column.kind)] for column in recipe.features],
        "levels": {name: list(levels) for name, levels in recipe.levels.items()},
        "unknown": str(recipe.unknown),
        "missing": recipe.missing if isinstance(recipe.missing, float) else str(recipe.missing),
        "intercept": recipe.intercept,
        "standardise": str(recipe.standardise),
    }


def _recipe_of(table: dict[str, Any]) -> Recipe:
    missing = table["missing"]
    return Recipe(
        features=tuple(Column(name, Kind(kind)) for name, kind in table["features"]),
        levels={name: tuple(levels) for name, levels in table["levels"].items()},
        unknown=Unknown(table["unknown"]),
        missing=Missing(missing) if isinstance(missing, str) else float(missing),
        intercept=bool(table["intercept"]),
        standardise=Standardise(table["standardise"]),
    )
