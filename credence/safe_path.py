"""Keeps the current directory out of the places from which Python imports modules.

`python -m` puts it first, so that a `torch.py` in it would be executed in place of the library.
"""

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]  # the folder of the package `credence`


def leave_current_directory() -> None:
    """Remove the current directory that `python -m` put first, unless this package is in it."""
    first = Path(sys.path[0] if sys.path else os.sep).resolve()
    if not sys.flags.safe_path and first == Path.cwd() != PACKAGE:
        del sys.path[0]


def keep_children_out() -> None:
    """Let no Python process that this one starts add it, as with `python -P`."""
    os.environ["PYTHONSAFEPATH"] = "1"
