"""Every section of a page, by folder and from other packages, in its order; and those whose styles and scripts it carries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from traceanalyzer.errors import InputError
from traceanalyzer.extensions import declared_in, offers
from traceanalyzer.report.section import Page, PageSection

GROUP = "traceanalyzer.sections"
FOLDERS: dict[Page, str] = {
    "report": "traceanalyzer.report.sections.trace",
    "comparison": "traceanalyzer.report.sections.comparison",
    "trend": "traceanalyzer.report.sections.trend",
}


def sections_of(page: Page, more: Iterable[PageSection[Any]] = ()) -> list[PageSection[Any]]:
    """The sections of that page in their order, with these `more`. Raises InputError for two of one name, or what is no section."""
    found: dict[str, PageSection[Any]] = {}
    for section in (*declared_in(FOLDERS[page], "SECTION"), *_offered(page), *more):
        if section.name in found:
            raise InputError(
                f"two sections of the {page} are called '{section.name}'; uninstall the package that adds the second"
            )
        found[section.name] = section
    for section in found.values():
        for name in section.needs:
            if name not in found:
                raise InputError(f"the section '{section.name}' of the {page} needs '{name}', which there is not")
    return sorted(found.values(), key=lambda section: (section.order, section.name))


def _offered(page: Page) -> Iterator[PageSection[Any]]:
    for offer in offers(GROUP):
        section = offer.load()
        if not isinstance(section, PageSection):
            raise InputError(
                f"{GROUP}: '{offer.name}' of {offer.package} is no PageSection; update or uninstall {offer.package}"
            )
        if section.page == page:
            yield section


def travelling(sections: Sequence[PageSection[Any]], shown: Collection[str]) -> list[PageSection[Any]]:
    """The sections whose styles and scripts a page carries that shows some: these, and before each of them what it needs."""
    by_name = {section.name: section for section in sections}
    found: dict[str, PageSection[Any]] = {}

    def add(section: PageSection[Any]) -> None:
        if section.name not in found:
            for name in section.needs:
                add(by_name[name])
            found.setdefault(section.name, section)

    for section in sections:
        if section.name in shown:
            add(section)
    return list(found.values())
