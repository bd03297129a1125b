"""Write the tables in docs/ that derive from the code, or with --check fail where one is stale."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from fism_client.session import states as client
from fism_common.problem.losses import LOSSES
from fism_common.problem.sets import SETS
from fism_server.federation import conversation as server
from fism_server.problem.axes import AGGREGATION, METHODS, PARTICIPATION, combinations
from fism_server.problem.outer import OUTERS

DOCS = Path(__file__).resolve().parents[1] / "docs"
_TABLE = re.compile(r"<!-- table: (?P<name>[a-z-]+) -->\n.*?<!-- end of table -->", re.DOTALL)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *cells])


def losses() -> str:
    """Return every loss with its formula, and its slope at the kink."""
    rows = []
    for kind in LOSSES:
        formula, _, kink = (inspect.getdoc(LOSSES[kind]) or "").removesuffix(".").partition("; ")
        rows.append([f"`{kind}`", _constructor(LOSSES[kind]), formula, kink or "smooth"])
    return markdown(["kind", "class", "f", "at the kink"], rows)


def sets() -> str:
    """Return every constraint set."""
    return markdown(
        ["kind", "class", "X"], [[f"`{kind}`", _constructor(SETS[kind]), _doc(SETS[kind])] for kind in SETS]
    )


def objectives() -> str:
    """Return every outer objective with its formula."""
    rows = [[f"`{kind}`", _constructor(OUTERS[kind]), OUTERS[kind].formula, OUTERS[kind].prefers] for kind in OUTERS]
    return markdown(["kind", "class", "H", "prefers"], rows)


def axes() -> str:
    """Return which combinations of the three axes a server runs."""
    rows = [
        [f"`{one.method}`", f"`{one.participation}`", f"`{one.aggregation}`", one.refusal or "yes"]
        for one in combinations()
    ]
    return markdown(["method", "participation", "aggregation", "run by a server?"], rows)


def kinds() -> str:
    """Return every kind on every axis."""
    axes = (("method", METHODS), ("participation", PARTICIPATION), ("aggregation", AGGREGATION))
    rows = [[axis, f"`{kind}`", text] for axis, given in axes for kind, text in given.items()]
    return markdown(["axis", "kind", "what it does"], rows)


def server_protocol() -> str:
    """Return the states of a stream at the server."""
    return markdown(["stream is", "client sends", "then it is", "effect"], list(_states(server.TRANSITIONS)))


def client_protocol() -> str:
    """Return the states of a client."""
    return markdown(["client is", "it gets", "then it is", "effect"], list(_states(client.TRANSITIONS)))


def _states(table: object) -> Iterator[list[str]]:
    before: StrEnum | None = None
    assert isinstance(table, dict)
    for (stage, incoming), transition in table.items():
        yield ["" if stage is before else str(stage), str(incoming), str(transition.stage), transition.effect]
        before = stage


def _constructor(kind: type) -> str:
    names = ", ".join(inspect.signature(kind).parameters)
    return f"`{kind.__name__}({names})`"


def _doc(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0].removesuffix(".")


TABLES: dict[str, Callable[[], str]] = {
    "losses": losses,
    "sets": sets,
    "objectives": objectives,
    "axes": axes,
    "kinds": kinds,
    "server-protocol": server_protocol,
    "client-protocol": client_protocol,
}


def fresh(text: str) -> str:
    """Return a page with its tables made anew."""

    def table(found: re.Match[str]) -> str:
        name = found["name"]
        return f"<!-- table: {name} -->\n{TABLES[name]()}\n<!-- end of table -->"

    return _TABLE.sub(table, text)


def main() -> None:
    """Write the tables, or check them."""
    stale = [page for page in sorted(DOCS.glob("*.md")) if fresh(page.read_text()) != page.read_text()]
    if "--check" in sys.argv[1:]:
        if stale:
            sys.exit(f"stale tables in {', '.join(page.name for page in stale)}: run make tables")
        print("the tables in docs/ are fresh")
        return
    for page in stale:
        page.write_text(fresh(page.read_text()))
        print(f"wrote {page.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
