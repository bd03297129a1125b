"""``python -m fism_server``."""

from fism_server.cli import app

app()
