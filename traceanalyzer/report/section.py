"""What a section of a page is: declared once, in a module of its own or in a package of somebody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources.abc import Traversable
from typing import Any, Generic, Literal, TypeVar

from traceanalyzer.records import dataclass

C = TypeVar("C")
Page = Literal["report", "comparison", "trend"]


@dataclass(frozen=True, kw_only=True)
class PageSection(Generic[C]):
    """A section of a page.

    `name` is its anchor, and unique on its page; `title` is what the navigation calls it, and without one it is not in there. Sections
    stand in the order of `order`, then of `name`. `view` makes the plain values that `template` shows, from all that is known of the
    page (a `ReportContext`, `ComparisonContext` or `TrendContext`); None where there is nothing to show. `styles` and `scripts`
    travel with every page that shows it, behind those of the sections that it `needs`. These files lie in `files`, the page's own
    templates unless a package brings its own.

    Scripts share one scope: one from elsewhere keeps its names within a block. `by_slices`: the values change with how many slices the
    timeline has, so they are made again where the page has room for more.
    """

    name: str
    view: Callable[[C], Mapping[str, Any] | None]
    order: int
    page: Page = "report"
    title: str = ""
    template: str = ""
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    by_slices: bool = False
    files: Traversable | None = None

    @property
    def template_name(self) -> str:
        """The section's template, that of its name unless it says otherwise."""
        return self.template or f"{self.name}.html.j2"
