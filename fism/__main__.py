"""``python -m fism``."""

from fism.cli.main import app

app()
