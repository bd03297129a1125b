"""The commands for data and models: ``fism inspect``, ``shard``, ``predict``, ``evaluate`` and ``doctor``."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fism_client import options
from fism_common.console import command

File = Annotated[Path, typer.Argument(help="A file of rows.")]
ModelPath = Annotated[Path, typer.Argument(help="A run's folder, or a model's .npz or .json file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def inspect(
    data: File,
    labels: options.Labels = None,
    label: options.Label = None,
    positive: options.Positive = None,
    features: options.Features = None,
    drop: options.Drop = None,
    scale: options.Scale = None,
    columns: options.Columns = None,
    zero_based: options.ZeroBased = None,
    as_json: AsJson = False,
) -> None:
    """Show what a client would use of a file: rows, columns, kinds, density, memory, storage."""
    with command():
        from fism_client.data.loading import brings_labels, load
        from fism_client.inspection import describe

        source, reading = _read(str(data), labels, label, positive, features, drop, scale, columns, zero_based)
        labelled = label is not None or labels is not None or brings_labels(data)
        told = describe(load(source, reading, Path.cwd(), labelled=labelled))
        if not labelled:
            told["labels"] = "none: name a table's column with --label, an array's file with --labels"
        if as_json:
            print(json.dumps(told, indent=2))  # noqa: T201  # asked for
        else:
            _show(told)


def shard(
    data: File,
    out: Annotated[Path, typer.Option(help="The folder of the shards, new or empty.")] = Path("shards"),
    parts: Annotated[int, typer.Option(min=1, help="How many.")] = 2,
    sizes: Annotated[str | None, typer.Option(help="Their shares of all rows, 1,2,5; else equal.")] = None,
    by: Annotated[str | None, typer.Option(help="A column: a shard for each of its values.")] = None,
    dirichlet: Annotated[
        float | None,
        typer.Option(help="Deal out each label by shares of its own; the smaller, the more shards differ."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides who gets which rows.")] = 0,
    labels: options.Labels = None,
    label: options.Label = None,
    positive: options.Positive = None,
    scale: options.Scale = None,
    columns: options.Columns = None,
    zero_based: options.ZeroBased = None,
) -> None:
    """Split one file into shards, for trials: a table into tables, any other into .npz files."""
    with command():
        from fism.sharding import shard as split
        from fism_common.errors import ConfigError

        given = [name for name, value in (("--sizes", sizes), ("--by", by), ("--dirichlet", dirichlet)) if value]
        if len(given) > 1:
            raise ConfigError(f"{' and '.join(given)} are different ways to split; give one")
        try:
            shares = [float(share) for share in sizes.split(",")] if sizes else []
        except ValueError as error:
            raise ConfigError(f"--sizes wants numbers such as 1,2,5: {error}") from None
        if not all(0 < share < float("inf") for share in shares) or (dirichlet is not None and dirichlet <= 0):
            raise ConfigError("shares must be above 0")
        source, reading = _read(str(data), labels, label, positive, None, None, scale, columns, zero_based)
        written = split(
            data, source, reading, out, parts=len(shares) or parts, sizes=shares, by=by, alpha=dirichlet, seed=seed
        )
        for file, rows in written:
            print(f"{file}  {rows} rows")  # noqa: T201  # the answer


def predict(
    model: ModelPath,
    data: File,
    out: Annotated[Path | None, typer.Option(help="Write a CSV file; else it is printed.")] = None,
    scale: options.Scale = None,
    columns: options.Columns = None,
    zero_based: options.ZeroBased = None,
) -> None:
    """Print what a model says of every row: score, prediction, and probability if it has one."""
    with command():
        from fism.model import load
        from fism_common.errors import ConfigError
        from fism_common.files import write_bytes

        source, reading = _read(str(data), None, None, None, None, None, scale, columns, zero_based)
        found = load(model)
        outputs = found.outputs(found.read(source, reading, Path.cwd()))
        rows = zip(*(map(repr, values.tolist()) for values in outputs.values()), strict=True)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([outputs, *rows])
        if out is None:
            with contextlib.suppress(BrokenPipeError):  # whoever reads has read enough
                sys.stdout.write(text.getvalue())
                sys.stdout.flush()
            return
        try:
            write_bytes(out, text.getvalue().encode())
        except OSError as error:
            raise ConfigError(f"cannot write {out}: {error.strerror}") from error


def evaluate(
    model: ModelPath,
    data: File,
    labels: options.Labels = None,
    label: options.Label = None,
    positive: options.Positive = None,
    scale: options.Scale = None,
    columns: options.Columns = None,
    zero_based: options.ZeroBased = None,
    as_json: AsJson = False,
) -> None:
    """Print how well a model does on labelled rows: loss, and accuracy and AUC, or errors."""
    with command():
        from fism.model import load

        source, reading = _read(str(data), labels, label, positive, None, None, scale, columns, zero_based)
        found = load(model)
        measured = found.evaluate(found.read(source, reading, Path.cwd(), labelled=True))
        if as_json:
            print(json.dumps(measured, indent=2))  # noqa: T201  # asked for
        else:
            _show({name.replace("_", " "): value for name, value in measured.items()})


def doctor(
    config: Annotated[Path | None, typer.Argument(help="A client's TOML file.")] = None,
    server: Annotated[str | None, typer.Option(help="HOST:PORT of the server.")] = None,
    name: Annotated[str | None, typer.Option(help="This client's name in the federation.")] = None,
    certs: Annotated[str | None, typer.Option(help="The folder of its certificates, for TLS.")] = None,
    insecure: Annotated[bool, typer.Option(help="Speak plain text with another host.")] = False,
    data: options.Data = None,
    query: options.Query = None,
    labels: options.Labels = None,
    label: options.Label = None,
    positive: options.Positive = None,
    features: options.Features = None,
    drop: options.Drop = None,
    scale: options.Scale = None,
    columns: options.Columns = None,
    zero_based: options.ZeroBased = None,
    shards: options.Shards = None,
    holdout: options.Holdout = None,
    seed: options.Seed = None,
    loss: options.OwnLoss = None,
) -> None:
    """Look at all that a client needs before a run, and say what to do about what is missing."""
    with command():
        from fism_client.cli import ClientConfig, participant, tls_of
        from fism_client.doctor import examine
        from fism_common.errors import StoppedError
        from fism_common.settings import read

        given = options.given(data, query, labels, label, positive, features, drop, scale, columns, zero_based)
        given |= {"server": server, "name": name, "certs": certs}
        given |= {"shards": shards, "holdout": holdout, "seed": seed, "loss": loss}
        folder = Path.cwd() if config is None else config.parent
        settings = read(ClientConfig, config, options=given)
        ill = 0
        for finding in examine(
            settings.server,
            settings.name,
            lambda: tls_of(settings, folder, insecure=insecure),
            lambda: participant(settings, folder),
        ):
            ill += not finding.well
            mark = "ok  " if finding.well else "FAIL"
            text = finding.text.replace("\n", "\n" + 20 * " ")
            print(f"{mark}  {finding.what:<13} {text}", flush=True)  # noqa: T201  # the answer
        if ill:
            raise StoppedError(f"{ill} things to put right before this client can take part")


def _read(*given: Any) -> tuple[Any, Any]:  # noqa: ANN401  # options as typer has them
    """Return where data is and how it is read, from options in their order."""
    from fism_common.data.source import Reading, Source
    from fism_common.settings import check

    data, *rest = given
    keys = options.given(data, None, *rest)
    source = check(Source, {key: keys.pop(key) for key in ("data", "labels") if key in keys}, "the options")
    return source, check(Reading, keys, "the options")


def _show(told: dict[str, Any]) -> None:
    """Print what is known, a line each; tables last."""
    for name, value in told.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {count}" for key, count in value.items())  # noqa: PLW2901
        elif name == "bytes":
            name, value = "memory", f"{value / 2**20:.1f} MiB"  # noqa: PLW2901
        elif isinstance(value, float):
            value = f"{value:.6g}"  # noqa: PLW2901
        if not isinstance(value, list):
            print(f"{name:<24} {value}")  # noqa: T201  # the answer
    for column in told.get("table", []):
        rest = {key: value for key, value in column.items() if key not in {"name", "kind", "missing"}}
        levels = rest.pop("levels", None)
        text = (
            ", ".join(f"{level}: {count}" for level, count in levels.items())
            if levels is not None
            else f"{rest['least']:.6g} to {rest['most']:.6g}, mean {rest['mean']:.6g}"
            if rest
            else ""
        )
        missing = f"  {column['missing']} missing" if column["missing"] else ""
        print(f"  {column['name']:<22} {column['kind']:<8} {text}{missing}")  # noqa: T201
