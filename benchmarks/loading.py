"""Loading a file into a shard: time against DuckDB's fetch and scikit-learn's loader, and peak memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fism_client.data.readers.duck import connect
from timing import Ratio

ROWS, COLUMNS = 1_000_000, 50
LETTERS, WORDS = 50_000, 100

BEGIN = """
import resource, sys, time
def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
path = sys.argv[1]
"""
FETCH = (
    BEGIN
    + """
import duckdb
with duckdb.connect() as database:
    database.execute("SET enable_progress_bar = false")
    before, began = peak(), time.perf_counter()
    database.read_csv(path).fetchnumpy()
    print(time.perf_counter() - began)
"""
)
TABLE = (
    BEGIN
    + """
from pathlib import Path
import duckdb
import fism_client.compute.answerer
from fism_client.data.loading import load
from fism_common.data.columns import Recipe
from fism_common.data.source import Reading, Source
before, began = peak(), time.perf_counter()
data = load(Source(data=path), Reading(label="y"), Path())
shard = data.encode(Recipe(features=data.schema))
print(time.perf_counter() - began, (peak() - before) / (shard.rows.nbytes + shard.labels.nbytes))
"""
)
SCIKIT_LEARN = (
    BEGIN
    + """
from sklearn.datasets import load_svmlight_file
began = time.perf_counter()
load_svmlight_file(path)
print(time.perf_counter() - began)
"""
)
SVMLIGHT = (
    BEGIN
    + """
import tempfile
from pathlib import Path
import fism_client.compute.answerer
from fism_client.data.readers.svmlight import read_svmlight
from fism_common.data.source import Reading
with tempfile.NamedTemporaryFile("w", suffix=".svm") as file:
    file.write("1 1:1\\n")
    file.flush()
    read_svmlight(Path(file.name), Reading())  # loads the kernel
before, began = peak(), time.perf_counter()
shard = read_svmlight(Path(path), Reading())
size = sum(part.nbytes for part in shard.rows[:3]) + shard.labels.nbytes
print(time.perf_counter() - began, (peak() - before) / size)
"""
)


def run(code: str, path: Path) -> list[float]:
    """Return the numbers that ``code`` prints in a new process."""
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    return [float(number) for number in done.stdout.split()]


def loading() -> Iterator[Ratio]:
    """Yield the ratios of the best times of three alternating runs, and the largest ratios of memory."""
    with tempfile.TemporaryDirectory() as scratch:
        for path, theirs, ours, what, target, most in (
            (
                write_csv(Path(scratch)),
                FETCH,
                TABLE,
                f"CSV of {ROWS:,} x {COLUMNS}: over DuckDB's fetchnumpy",
                1.5,
                True,
            ),
            (
                write_svmlight(Path(scratch)),
                SCIKIT_LEARN,
                SVMLIGHT,
                f"svmlight with {LETTERS * WORDS:,} nonzeros: times faster than scikit-learn",
                1.0,
                False,
            ),
        ):
            found = [(run(theirs, path), run(ours, path)) for _ in range(3)]
            other, own = (min(pair[i][0] for pair in found) for i in (0, 1))
            yield Ratio(
                f"{what} ({own:.2f} and {other:.2f} s)", own / other if most else other / own, target, most=most
            )
            yield Ratio(
                "the same: peak memory over the shard's own size", max(pair[1][1] for pair in found), 3.0, most=True
            )
            path.unlink()


def write_csv(folder: Path) -> Path:
    """Write a CSV file of numbers with all their digits."""
    path = folder / "big.csv"
    columns = ", ".join(f"2 * random() - 1 AS f{i}" for i in range(COLUMNS - 1))
    with connect() as database:
        query = f"SELECT {columns}, round(random()) AS y FROM range({ROWS})"  # noqa: S608  # our own
        database.execute(f"COPY ({query}) TO '{path}' (HEADER)")
    return path


def write_svmlight(folder: Path) -> Path:
    """Write an svmlight file with sixteen digits per number."""
    rng = np.random.default_rng(0)
    path = folder / "big.svm"
    with path.open("w") as file:
        for i in range(LETTERS):
            columns = np.cumsum(rng.integers(1, 100, WORDS))
            values = rng.normal(size=WORDS)
            pairs = " ".join(f"{column}:{value:.16g}" for column, value in zip(columns, values, strict=True))
            file.write(f"{1 if i % 2 else -1} {pairs}\n")
    return path
