"""From sections to a page: what is shown, the navigation over it, and the styles and scripts that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from markupsafe import Markup

from traceanalyzer.records import dataclass
from traceanalyzer.report.assets import assets
from traceanalyzer.report.context import Context
from traceanalyzer.report.page_size import Made
from traceanalyzer.report.registry import travelling
from traceanalyzer.report.section import PageSection
from traceanalyzer.report.templating import environment
from traceanalyzer.report.timeline.timeline import made

SHELL = "page.html.j2"


@dataclass(frozen=True)
class Words:
    """What the page says around its sections: what it is ("report"), its schema, and the terms that it explains."""

    kind: str
    schema: str
    glossary: Mapping[str, str]


@dataclass
class Walk:
    """A page of these sections. What does not change with the timeline is made once for a length of tables: a page is made several
    times until it fits."""

    sections: Sequence[PageSection[Any]]
    words: Words
    _made: dict[tuple[str, int], Markup | None] = field(default_factory=dict)

    def page(self, context: Context, rows: int) -> Made:
        """The page that a context gives; `rows` are as many as its tables may have."""
        shown = {
            section.name: html for section in self.sections if (html := self._html(section, context, rows)) is not None
        }
        charts, timeline = context.charts, context.timeline
        text = (
            environment()
            .get_template(SHELL)
            .render(
                words=self.words,
                title=context.title,
                tool=context.tool,
                assets=assets(travelling(self.sections, shown), charts.code),
                navigation=[section for section in self.sections if section.name in shown and section.title],
                sections=shown.values(),
                timeline=timeline,
                charts=charts,
                page_data=context.page_data,
            )
        )
        return made(text, timeline)

    def _html(self, section: PageSection[Any], context: Context, rows: int) -> Markup | None:
        if section.by_slices:
            return self._rendered(section, context)
        if (section.name, rows) not in self._made:
            self._made[section.name, rows] = self._rendered(section, context)
        return self._made[section.name, rows]

    def _rendered(self, section: PageSection[Any], context: Context) -> Markup | None:
        values = section.view(context)
        if values is None:
            return None
        template = environment(section.files).get_template(section.template_name)
        return Markup(template.render(glossary=self.words.glossary, **values))
