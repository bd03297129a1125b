"""``python -m fism``."""

from fism.cli import app

app()
