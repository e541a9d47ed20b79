"""Every format in which a result is written, by name. Those that are made to be published tell of no person and no machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from traceanalyzer.model.tables import Tables
from traceanalyzer.redaction.data import redacted
from traceanalyzer.render.comma_separated import render_csv
from traceanalyzer.render.github import render_github
from traceanalyzer.render.junit import render_junit
from traceanalyzer.render.markdown import render_markdown
from traceanalyzer.render.prometheus import render_prometheus
from traceanalyzer.render.sarif import render_sarif
from traceanalyzer.render.text import render_text
from traceanalyzer.result.document import Result


@dataclass(frozen=True)
class Format:
    """`render(result, fail_on)` gives UTF-8; the severity of a gate matters to few. `published`: it goes where others read it."""

    render: Callable[[Result, str | None], bytes]
    published: bool = True


FORMATS = {
    "text": Format(lambda result, _: render_text(result).encode(), published=False),
    "json": Format(lambda result, _: result.to_json(), published=False),
    "markdown": Format(lambda result, _: render_markdown(result).encode()),
    "sarif": Format(lambda result, _: render_sarif(result)),
    "junit": Format(render_junit),
    "github": Format(lambda result, fail_on: render_github(result, fail_on).encode()),
    "csv": Format(lambda result, _: render_csv(result).encode()),
    "prometheus": Format(lambda result, _: render_prometheus(result).encode()),
}


def rendered(
    result: Result, tables: Tables | None, formats: Iterable[str], fail_on: str | None = None, redact: bool = True
) -> Iterator[bytes]:
    """The result in each of these formats. `tables` tell which hosts' names to take out of what is published. Raises KeyError."""
    public: Result | None = None
    for name in formats:
        one = FORMATS[name]
        if one.published and redact and public is None:
            public, _ = redacted(result, tables)
        yield one.render(public if public is not None and one.published else result, fail_on)
