"""The command ``fism``."""

from fism.cli.main import app as app
