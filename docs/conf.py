"""The documentation site: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fism_common import __version__

project = "FISM"
release = version = __version__
extensions = ["myst_parser", "generated"]  # the latter is beside this file
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "FISM"
html_copy_source = html_show_sphinx = html_show_copyright = False
highlight_language = "none"
smartquotes = False  # --option is two hyphens
