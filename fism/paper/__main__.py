"""``python -m fism.paper``."""

from fism.paper.cli import app

app(prog_name="fism-paper")
