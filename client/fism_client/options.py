"""The options of all commands that read data; each is also a key of a client's configuration file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Data = Annotated[
    str | None,
    typer.Option(help="The rows: a file .csv, .parquet, .jsonl, .npz, .npy, .svm, or of IDX images."),
]
Query = Annotated[str | None, typer.Option(help="Or SQL over such files: SELECT ... FROM 'visits.parquet' WHERE ...")]
Labels = Annotated[str | None, typer.Option(help="A file of labels, for .npy and IDX.")]
Label = Annotated[str | None, typer.Option(help="The column of labels, of a table.")]
Positive = Annotated[str | None, typer.Option(help="The label that counts as 1; all others count as -1.")]
Features = Annotated[str | None, typer.Option(help="The columns to use, A,B,C; else all but the label.")]
Drop = Annotated[str | None, typer.Option(help="Columns not to use, A,B,C.")]
Scale = Annotated[float | None, typer.Option(help="Multiplies all entries of an array.")]
Columns = Annotated[int | None, typer.Option(help="How many columns svmlight has, if it is more than the last in use.")]
ZeroBased = Annotated[bool | None, typer.Option("--zero-based", help="svmlight counts columns from 0.")]

Shards = Annotated[int | None, typer.Option(help="Count as so many virtual clients, on as many threads.")]
Holdout = Annotated[float | None, typer.Option(help="Share of rows to hold out for evaluation.")]
Seed = Annotated[int | None, typer.Option(help="Decides which rows are held out.")]
OwnLoss = Annotated[str | None, typer.Option(help="A loss of your own, module:Name, that the federation names.")]


def given(  # noqa: PLR0913, PLR0917  # one for each option
    data: str | None = None,
    query: str | None = None,
    labels: str | None = None,
    label: str | None = None,
    positive: str | None = None,
    features: str | None = None,
    drop: str | None = None,
    scale: float | None = None,
    columns: int | None = None,
    zero_based: bool | None = None,  # noqa: FBT001
) -> dict[str, Any]:
    """Return the options that were given, as keys of a configuration."""
    found = {
        "data": data,
        "query": query,
        "labels": labels,
        "label": label,
        "positive": positive,
        "features": None if features is None else features.split(","),
        "drop": None if drop is None else drop.split(","),
        "scale": scale,
        "columns": columns,
        "zero_based": zero_based,
    }
    return {name: value for name, value in found.items() if value is not None}
