"""``python -m fism_client``."""

from fism_client.cli import app

app()
