"""What every page carries: its style, its scripts, and the policy that allows these and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from traceanalyzer.report.palette import SWATCHES, Swatch, colour_rules
from traceanalyzer.report.templating import template_text

STYLES = ("report.css", "timeline.css", "charts.css", "tables.css", "trees.css", "hatches.css", "stills.css")
SCRIPTS = (
    "data.js",
    "dom.js",
    "format.js",
    "hatches.js",
    "address.js",
    "timeline-data.js",
    "timeline-layout.js",
    "timeline-columns.js",
    "timeline-paint.js",
    "timeline-links.js",
    "timeline-search.js",
    "timeline-names.js",
    "timeline-hit.js",
    "timeline-details.js",
    "timeline-minimap.js",
    "timeline-selection.js",
    "timeline-input.js",
    "timeline-keys.js",
    "timeline.js",
    "timeline-start.js",
    "perfetto.js",
    "trees-data.js",
    "trees-paint.js",
    "trees-words.js",
    "trees.js",
    "charts.js",
    "tables-data.js",
    "tables.js",
    "page.js",
)


@dataclass(frozen=True)
class Assets:
    """The texts of the style and the scripts, as they stand in the page, and its content security policy."""

    style: Markup
    scripts: list[Markup]
    policy: str

    @property
    def hatched(self) -> list[Swatch]:
        """The kinds of time that have a hatching."""
        return [swatch for swatch in SWATCHES if swatch.hatch]


def assets(*more_code: str, styles: Sequence[str] = STYLES) -> Assets:
    """`more_code` are scripts that the page unpacks and runs itself."""
    scripts = [Markup(template_text(name)) for name in SCRIPTS]
    style = Markup(colour_rules() + "".join(template_text(name) for name in styles))
    return Assets(style, scripts, _policy(style, [*scripts, *more_code]))


def _policy(style: str, scripts: Sequence[str]) -> str:
    """A content security policy that allows this style and these scripts, by their hashes, and nothing else.

    But for one: the empty style sheet, which plotly makes and fills rule by rule.
    """
    allowed = " ".join(_hash(script) for script in scripts if script)
    styles = f"{_hash(style)} {_hash('')}"
    return f"default-src 'none'; script-src {allowed}; style-src {styles}; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
