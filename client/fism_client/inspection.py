"""Describes data as a client would use it: ``fism inspect``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_client.data.labels import text_of
from fism_client.data.shard import SparseRows
from fism_client.data.table import Table
from fism_common.data.columns import Kind, Missing, Recipe

if TYPE_CHECKING:
    from fism_client.data.loading import Data
    from fism_client.data.shard import Shard

_MOST_LEVELS = 20


def describe(data: Data) -> dict[str, Any]:
    """Return rows, columns, kinds, density, memory and storage; for a table, also a summary of each column."""
    labels, counts = np.unique(data.labels, return_counts=True)
    few = labels.size <= _MOST_LEVELS
    facts: dict[str, Any] = {
        "rows": data.count,
        "columns": data.width,
        "labels": {text_of(float(label)): int(count) for label, count in zip(labels, counts, strict=True)}
        if few
        else f"{labels[0]:g} to {labels[-1]:g}",
    }
    if isinstance(data, Table):
        facts["table"] = [_column(name, data) for name in data.columns]
        numbers = tuple(column for column in data.schema if column.kind is not Kind.TEXT)
        texts = [column.name for column in data.schema if column.kind is Kind.TEXT]
        if numbers:
            facts |= storage(data.encode(Recipe(features=numbers, missing=Missing.MEAN)))
        if texts:
            facts["not in storage"] = f"{', '.join(texts)}: one byte per row for each level that the federation lists"
    else:
        facts |= storage(data.shard)
    return facts


def storage(shard: Shard) -> dict[str, Any]:
    """Return how a shard's entries are stored."""
    rows = shard.rows
    if isinstance(rows, SparseRows):
        size = sum(part.nbytes for part in rows[:3])
        return {
            "storage": f"compressed sparse rows of {rows.data.dtype}",
            "density": rows.data.size / (shard.count * rows.columns),
            "bytes": size + shard.labels.nbytes,
        }
    density = float(np.count_nonzero(rows)) / rows.size
    return {"storage": f"dense {rows.dtype}", "density": density, "bytes": rows.nbytes + shard.labels.nbytes}


def _column(name: str, data: Table) -> dict[str, Any]:
    values, kind = data.columns[name], data.kinds[name]
    if kind is Kind.TEXT:
        present = [value for value in values if value is not None]
        levels = Counter(present)
        return {
            "name": name,
            "kind": str(kind),
            "missing": len(values) - len(present),
            "levels": dict(sorted(levels.most_common(_MOST_LEVELS), key=lambda one: (-one[1], one[0]))),
            "of": len(levels),
        }
    missing = int(np.isnan(values).sum())
    found = values[~np.isnan(values)]
    spread = (
        {"least": float(found.min()), "mean": float(found.mean()), "most": float(found.max())} if found.size else {}
    )
    return {"name": name, "kind": str(kind), "missing": missing, **spread}
