"""A model's files: NAME.npz holds its vectors, NAME.json describes them."""

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
from fism_common.problem.registry import Variant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fism_common.vectors import Vector

_FORMAT = 2
_MOST_LISTED = 10_000
"""The most unnamed columns that the .json file lists; beyond it they are in the .npz file only."""


@dataclass(frozen=True)
class Fitted:
    """A solution, with everything needed to use it on new rows."""

    x: Vector
    loss: Variant
    recipe: Recipe
    scaling: Scaling | None

    def in_original_units(self) -> tuple[Vector, float]:
        """Return the coefficients for the columns before standardising, and the matching constant term.

        The constant is the score of a row of zeros. For columns far from 0 relative to their spread, such as times
        since 1970, it cancels against the other terms and digits are lost; ``fism.load`` avoids it.
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
    """Write a model as an .npz and a .json file; ``means`` are further vectors to store.

    Raises OSError if a file cannot be written.
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
        "loss": {"kind": fitted.loss.kind, **fitted.loss.numbers},
        "data": _recipe_table(fitted.recipe),
        "units": "the change of the score for one unit of the column, in the clients' own units",
        "intercept": constant,
        "coefficients": _listed(fitted, coefficients),
    }
    write_bytes(_with(stem, ".json"), json.dumps(card, indent=2, ensure_ascii=False).encode() + b"\n")


def read_model(path: Path) -> tuple[Fitted, dict[str, Any]]:
    """Return a model and the content of its .json file; ``path`` is one of its files, or a run's folder.

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
            raise DataError(f"the model {path} has format {card['format']}, and this version reads format {_FORMAT}")
        scaling = Scaling(*(vectors[name] for name in SCALING)) if "spread" in vectors else None
        numbers = {key: float(value) for key, value in card["loss"].items() if key != "kind"}
        loss = Variant(card["loss"]["kind"], numbers)
        return Fitted(vectors["x"], loss, _recipe_of(card["data"]), scaling), card
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the model {path} is damaged: {error!r}") from error


def stem_of(path: Path) -> Path:
    """Return the path of a model's two files, without the suffix."""
    return path.with_name(path.name.removesuffix(".npz").removesuffix(".json"))


def _with(stem: Path, suffix: str) -> Path:
    return stem.with_name(stem.name + suffix)


def _listed(fitted: Fitted, coefficients: Vector) -> list[dict[str, Any]] | None:
    """Return the columns with their coefficients; None if they are unnamed and too many to list."""
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
