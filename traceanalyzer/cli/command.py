"""What a command is: one module of this folder, or an entry point of another package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from traceanalyzer.errors import InputError
from traceanalyzer.extensions import Offer, declared_in, modules_in, offers
from traceanalyzer.records import dataclass
from traceanalyzer.terminal import tell

GROUP = "traceanalyzer.commands"
_HERE = "traceanalyzer.cli"


@dataclass(frozen=True)
class Command:
    """A command: a function that Typer reads, or a Typer of several. In the help they stand in the order of `order`, then of `name`."""

    name: str
    run: Callable[..., Any] | typer.Typer
    order: int = 100
    epilog: str | None = None

    def add_to(self, app: typer.Typer, kind: type[TyperCommand] | None = None) -> None:
        if isinstance(self.run, typer.Typer):
            app.add_typer(self.run, name=self.name)
        else:
            app.command(self.name, cls=kind, help=self.run.__doc__, epilog=self.epilog)(self.run)


def own_commands(arguments: Sequence[str] = ()) -> list[Command]:
    """The commands of this folder, in the order of the help. Where one of them is the first of the arguments it is all, and no other
    is imported."""
    module = f"{_HERE}.{arguments[0]}" if arguments else ""
    if module in modules_in(_HERE):
        found = getattr(import_module(module), "COMMAND", None)
        if found is not None and found.name == arguments[0]:
            return [found]
    return sorted(declared_in(_HERE, "COMMAND"), key=lambda one: (one.order, one.name))


def others_commands(own: Sequence[Command], arguments: Sequence[str]) -> list[Command]:
    """Those of other packages, under the names of their entry points, as far as the arguments may mean them: none is imported for a
    command of ours. One that cannot be loaded is told of and left out, unless it is what was typed. Raises InputError."""
    ours = {one.name for one in own}
    typed = next((one for one in arguments if not one.startswith("-")), None)
    if typed in ours:
        return []
    found: dict[str, Command] = {}
    for offer in offers(GROUP):
        try:
            if offer.name in ours or offer.name in found:
                raise InputError(
                    f"{GROUP}: '{offer.name}' of {offer.package} has the name of another command; uninstall one of them"
                )
            found[offer.name] = _loaded(offer)
        except InputError as error:
            if offer.name == typed:
                raise
            tell(f"left out: {error}")
    return list(found.values())


def _loaded(offer: Offer) -> Command:
    run = offer.load()
    if isinstance(run, Command):
        return run
    if not callable(run):
        raise InputError(
            f"{GROUP}: '{offer.name}' of {offer.package} is no function; update or uninstall {offer.package}"
        )
    return Command(offer.name, run)
