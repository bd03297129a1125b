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

from fism_client.config import ClientConfig
from fism_client.options import options_of
from fism_common.console import command

File = Annotated[Path, typer.Argument(help="The data file.")]
ModelPath = Annotated[Path, typer.Argument(help="A run's folder, or a model's .npz or .json file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_ARRAYS = ("scale", "columns", "zero_based")
_LABELLED = ("labels", "label", "positive", *_ARRAYS)
_ALL = ("labels", "label", "positive", "features", "drop", *_ARRAYS)


@options_of(ClientConfig, _ALL)
def inspect(given: dict[str, Any], data: File, as_json: AsJson = False) -> None:
    """Show what a client reads from a file: rows, columns, kinds, density, memory, storage."""
    with command():
        from fism_client.data.loading import brings_labels, load
        from fism_client.inspection import describe

        labelled = bool({"label", "labels"} & set(given)) or brings_labels(data)
        found = describe(load(*_source(data, given), Path.cwd(), labelled=labelled))
        if not labelled:
            found["labels"] = "none: give a table's label column with --label, an array's label file with --labels"
        if as_json:
            print(json.dumps(found, indent=2))  # noqa: T201  # --json output
        else:
            _show(found)


@options_of(ClientConfig, _LABELLED)
def shard(
    given: dict[str, Any],
    data: File,
    out: Annotated[Path, typer.Option(help="The folder for the shards, new or empty.")] = Path("shards"),
    parts: Annotated[int, typer.Option(min=1, help="How many shards.")] = 2,
    sizes: Annotated[str | None, typer.Option(help="Relative sizes, such as 1,2,5; equal by default.")] = None,
    by: Annotated[str | None, typer.Option(help="Make one shard per value of this column.")] = None,
    dirichlet: Annotated[
        float | None,
        typer.Option(help="Split each label in random proportions; a smaller value makes shards differ more."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random split.")] = 0,
) -> None:
    """Split one file into shards, for experiments: a table into tables, any other file into .npz files."""
    with command():
        from fism.sharding import shard as split
        from fism_common.errors import ConfigError

        ways = [name for name, value in (("--sizes", sizes), ("--by", by), ("--dirichlet", dirichlet)) if value]
        if len(ways) > 1:
            raise ConfigError(f"{' and '.join(ways)} cannot be combined; give one of them")
        try:
            shares = [float(share) for share in sizes.split(",")] if sizes else []
        except ValueError as error:
            raise ConfigError(f"--sizes takes numbers such as 1,2,5: {error}") from None
        if not all(0 < share < float("inf") for share in shares) or (dirichlet is not None and dirichlet <= 0):
            raise ConfigError("shares must be above 0")
        written = split(
            *_source(data, given),
            out,
            parts=len(shares) or parts,
            sizes=shares,
            by=by,
            alpha=dirichlet,
            seed=seed,
        )
        for file, rows in written:
            print(f"{file}  {rows} rows")  # noqa: T201  # the answer


@options_of(ClientConfig, _ARRAYS)
def predict(
    given: dict[str, Any],
    model: ModelPath,
    data: File,
    out: Annotated[Path | None, typer.Option(help="Write this CSV file instead of printing.")] = None,
) -> None:
    """Print a model's score and prediction for every row, and the probability if the model gives one."""
    with command():
        from fism.model import load
        from fism_common.errors import ConfigError
        from fism_common.files import write_bytes

        found = load(model)
        outputs = found.outputs(found.read(*_source(data, given), Path.cwd()))
        rows = zip(*(map(repr, values.tolist()) for values in outputs.values()), strict=True)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([outputs, *rows])
        if out is None:
            with contextlib.suppress(BrokenPipeError):  # the reader, such as head, has closed the pipe
                sys.stdout.write(text.getvalue())
                sys.stdout.flush()
            return
        try:
            write_bytes(out, text.getvalue().encode())
        except OSError as error:
            raise ConfigError(f"cannot write {out}: {error.strerror}") from error


@options_of(ClientConfig, _LABELLED)
def evaluate(given: dict[str, Any], model: ModelPath, data: File, as_json: AsJson = False) -> None:
    """Evaluate a model on labelled rows: the loss, and accuracy and AUC or prediction errors."""
    with command():
        from fism.model import load

        found = load(model)
        measured = found.evaluate(found.read(*_source(data, given), Path.cwd(), labelled=True))
        if as_json:
            print(json.dumps(measured, indent=2))  # noqa: T201  # --json output
        else:
            _show({name.replace("_", " "): value for name, value in measured.items()})


@options_of(ClientConfig, [name for name in ClientConfig.model_fields if name not in {"save", "patience"}])
def doctor(
    given: dict[str, Any],
    config: Annotated[Path | None, typer.Argument(help="A client's TOML file.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Send plain text to another host.")] = False,
) -> None:
    """Check everything a client needs before a run, and say how to fix what is missing."""
    with command():
        from fism_client.config import load_participant, tls_of
        from fism_client.doctor import examine
        from fism_common.errors import StoppedError
        from fism_common.settings import read

        folder = Path.cwd() if config is None else config.parent
        settings = read(ClientConfig, config, options=given)
        failed = 0
        for finding in examine(
            settings.server,
            settings.name,
            lambda: tls_of(settings, folder, insecure=insecure)[0],
            lambda: load_participant(settings, folder),
        ):
            failed += not finding.well
            mark = "ok  " if finding.well else "FAIL"
            text = finding.text.replace("\n", "\n" + 20 * " ")
            print(f"{mark}  {finding.what:<13} {text}", flush=True)  # noqa: T201  # the answer
        if failed:
            raise StoppedError(f"{failed} checks failed; fix them before this client takes part")


def _source(data: Path, given: dict[str, Any]) -> tuple[Any, Any]:
    """Return where the data is and how to read it, from the command-line options."""
    from fism_common.data.source import Reading, Source
    from fism_common.settings import check

    keys = given | {"data": str(data)}
    source = {key: keys.pop(key) for key in Source.model_fields if key in keys}
    return check(Source, source, "the options"), check(Reading, keys, "the options")


def _show(found: dict[str, Any]) -> None:
    """Print one line per entry; tables last."""
    for name, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {count}" for key, count in value.items())  # noqa: PLW2901
        elif name == "bytes":
            name, value = "memory", f"{value / 2**20:.1f} MiB"  # noqa: PLW2901
        elif isinstance(value, float):
            value = f"{value:.6g}"  # noqa: PLW2901
        if not isinstance(value, list):
            print(f"{name:<24} {value}")  # noqa: T201  # the answer
    for column in found.get("table", []):
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
