"""What an output is: a way to write a result, a check or a comparison, declared once. Nothing heavy is imported to know of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Generic, Literal, TypeVar

from traceanalyzer.errors import InputError
from traceanalyzer.extensions import Offer, declared_in, offers
from traceanalyzer.records import dataclass

GROUP = "traceanalyzer.outputs"
Kind = Literal["result", "check", "comparison"]
FOLDERS: dict[Kind, str] = {
    "result": "traceanalyzer.render.outputs.result",
    "check": "traceanalyzer.render.outputs.check",
    "comparison": "traceanalyzer.render.outputs.comparison",
}
D = TypeVar("D")


@dataclass(frozen=True)
class Asked:
    """What else an output may take note of: the severity of a gate, a title, and the sections of other kinds of evidence
    (`result.sections.Section`)."""

    fail_on: str | None = None
    title: str | None = None
    sections: Sequence[Any] = ()


@dataclass(frozen=True)
class Output(Generic[D]):
    """A format in which a document of one `kind` is written: `name` is what `--format` calls it, `about` what it is for.

    `render(document, asked)` gives UTF-8, and imports what it takes when it is called. `published`: it goes where others read it, so it
    gets a document that tells of no person and no machine. In `--help` they stand in the order of `order`, then of `name`.
    """

    name: str
    about: str
    render: Callable[[D, Asked], bytes]
    kind: Kind = "result"
    published: bool = True
    order: int = 100


def own_outputs(kind: Kind) -> list[Output[Any]]:
    """Ours, in the order of the help."""
    return sorted(declared_in(FOLDERS[kind], "OUTPUT"), key=lambda one: (one.order, one.name))


def output_names(kind: Kind) -> list[str]:
    """What `--format` takes: the names of ours, and of what other packages offer under the name of their entry point. Of theirs nothing
    is imported: one that is of another kind, of which these say "check-" or "comparison-", is left out by that."""
    own = [one.name for one in own_outputs(kind)]
    return [*own, *(name for name in _offered_names(kind) if name not in own)]


def output(kind: Kind, name: str) -> Output[Any]:
    """The output of that name. Raises KeyError for an unknown one, and InputError where a package offers what is none."""
    for one in own_outputs(kind):
        if one.name == name:
            return one
    for offer in _offered():
        if offer.name == _entry_name(kind, name):
            found = offer.load()
            if not isinstance(found, Output) or (found.kind, found.name) != (kind, name):
                what = f"no Output '{name}' of a {kind}"
                raise InputError(
                    f"{GROUP}: '{offer.name}' of {offer.package} is {what}; update or uninstall {offer.package}"
                )
            return found
    raise KeyError(name)


def formats_help(kind: Kind, last: str = "") -> str:
    """What each of ours is for, as the help says it."""
    return ", ".join([*(f"{one.name} {one.about}" for one in own_outputs(kind)), *([last] if last else [])]) + "."


def _entry_name(kind: Kind, name: str) -> str:
    return name if kind == "result" else f"{kind}-{name}"


@cache
def _offered() -> tuple[Offer, ...]:
    """Of all kinds at once: each search reads a file of every package that is installed."""
    return tuple(offers(GROUP))


def _offered_names(kind: Kind) -> list[str]:
    names = [offer.name for offer in _offered()]
    if kind == "result":
        return [name for name in names if not name.startswith(("check-", "comparison-"))]
    return [name.removeprefix(f"{kind}-") for name in names if name.startswith(f"{kind}-")]
