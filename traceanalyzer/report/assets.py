"""What a page carries: its style, its scripts, and the policy that allows these and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from traceanalyzer.records import dataclass
from traceanalyzer.report.palette import SWATCHES, Swatch, colour_rules
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.templating import section_text, template_text

FIRST_STYLES, LAST_STYLES = ("report.css",), ("hatches.css", "stills.css")
FIRST_SCRIPTS, LAST_SCRIPTS = ("data.js", "dom.js", "format.js", "hatches.js", "address.js"), ("page.js",)
"""What every page has before and behind that of its sections."""


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


def assets(sections: Sequence[PageSection[Any]], *more_code: str) -> Assets:
    """Those of the page and of these sections, in their order. `more_code` are scripts that the page unpacks and runs itself."""
    scripts = [
        *map(template_text, FIRST_SCRIPTS),
        *(section_text(section, name) for section in sections for name in section.scripts),
        *map(template_text, LAST_SCRIPTS),
    ]
    styles = [
        *map(template_text, FIRST_STYLES),
        *(section_text(section, name) for section in sections for name in section.styles),
        *map(template_text, LAST_STYLES),
    ]
    style = Markup(colour_rules() + "".join(styles))
    return Assets(style, list(map(Markup, scripts)), _policy(style, [*scripts, *more_code]))


def _policy(style: str, scripts: Sequence[str]) -> str:
    """A content security policy that allows this style and these scripts, by their hashes, and nothing else.

    But for one: the empty style sheet, which plotly makes and fills rule by rule.
    """
    allowed = " ".join(_hash(script) for script in scripts if script)
    styles = f"{_hash(style)} {_hash('')}"
    return f"default-src 'none'; script-src {allowed}; style-src {styles}; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
