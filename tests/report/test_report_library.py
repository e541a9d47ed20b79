"""The charting library that travels with the package: what was built, with all notices, and what the charts need of it."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.metadata import version
from pathlib import Path

import plotly.offline

from traceanalyzer.report.charts.library import library
from traceanalyzer.resources import data_folder

ROOT = Path(__file__).parents[2]
FACTS = json.loads((data_folder("templates") / "vendored" / "plotly.json").read_text("utf-8"))


def test_it_is_what_was_built_and_nothing_else() -> None:
    assert hashlib.sha256(library().encode()).hexdigest() == FACTS["sha256"]
    lock = json.loads((ROOT / "ci" / "plotly" / "package-lock.json").read_text("utf-8"))
    assert lock["packages"]["node_modules/plotly.js"]["version"] == FACTS["version"]
    assert f'version="{FACTS["version"]}"' in library()


def test_the_notices_of_all_that_is_in_it_come_with_it() -> None:
    notices = library().partition("*/")[0]
    assert notices.startswith("/*!\n") and re.search(r"^plotly\.js " + re.escape(FACTS["version"]) + "$", notices, re.M)
    for package in notices.split("\n--------\n"):
        assert re.search(r"[Cc]opyright|Licence: \S+\nAuthor: \S", package), package


def test_it_is_a_fourth_of_the_whole() -> None:
    assert len(library()) < len(plotly.offline.get_plotlyjs()) / 4


def test_figures_are_checked_against_the_schema_of_the_same_library() -> None:
    """The Python package, by which tests check every figure, is of a plotly.js that knows the same words."""
    of_package = re.search(r"plotly\.js v(\d+)\.", plotly.offline.get_plotlyjs()[:200])
    assert of_package and version("plotly")
    assert abs(int(of_package[1]) - int(FACTS["version"].partition(".")[0])) <= 2
