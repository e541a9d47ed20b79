"""A result in the formats that are asked for. Those that are made to be published tell of no person and no machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from traceanalyzer.model.tables import Tables
from traceanalyzer.render.output import Asked, output
from traceanalyzer.result.document import Result

if TYPE_CHECKING:
    from traceanalyzer.result.sections import Section


def rendered(
    result: Result,
    tables: Tables | None,
    formats: Iterable[str],
    fail_on: str | None = None,
    redact: bool = True,
    sections: Sequence[Section] = (),
) -> Iterator[bytes]:
    """The result in each of these formats, with the sections of other kinds of evidence where a format says those. `tables` tell which
    hosts' names to take out of what is published. Raises KeyError."""
    open_ = result, Asked(fail_on, sections=sections)
    public: tuple[Result, Asked] | None = None
    for name in formats:
        one = output("result", name)
        if one.published and redact and public is None:
            from traceanalyzer.redaction.data import places_of, redaction_of

            redaction = redaction_of(tables, places=places_of(result))
            public = redaction.result(result), Asked(fail_on, sections=redaction.sections(sections))
        yield one.render(*(public if public is not None and one.published else open_))
