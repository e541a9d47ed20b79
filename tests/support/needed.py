"""What some tests need and a machine may lack. On one's own machine such tests are skipped; in CI, which shall run them, they fail."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest


def skip_without(what: object, name: str) -> pytest.MarkDecorator:
    """Skips where `what` is not there, but never where the environment says CI."""
    return pytest.mark.skipif(not what and not os.environ.get("CI"), reason=f"{name} is not installed")


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def find_node() -> str | None:
    """Node: the machine's, or else the one that playwright brings."""
    found = find_spec("playwright")
    brought = Path(found.origin).parent / "driver" / "node" if found and found.origin else None
    return shutil.which("node") or (str(brought) if brought and brought.is_file() else None)
