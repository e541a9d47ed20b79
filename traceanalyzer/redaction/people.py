"""Names that only the trace itself tells: the hosts that it was recorded on, and whose folders its files lie in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath, PureWindowsPath

from traceanalyzer.redaction.assignments import HOST, USER

# PyTorch's own name for a trace: host_process.time.pt.trace.json. A host's name has no underscore; a worker's name, which a program
# may put there, mostly has.
_HOST_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]*)_(\d+)\.\d{10,}\.pt\.trace\.json")
_ROLE = re.compile(
    r"(?i)(?:worker|rank|trace|step|epoch|device|proc(?:ess)?|job|run|local|train(?:er)?|task|stage|dp|tp|pp)[.-]?\d*"
)
_FOLDER_OF = re.compile(r"[/\\](?:home\d*|Users|users)[/\\]+([^/\\]+)[/\\]")
# Accounts and words: whoever is called so tells nothing by it, and texts are full of them.
_NOBODY = frozenset((
    *("root", "user", "users", "host", "admin", "administrator", "ubuntu", "ec2-user", "runner", "jovyan", "nobody"),
    *("docker", "test", "train", "model", "data", "work", "home", "shared", "public", "guest", "local", "python"),
    *("cuda", "torch", "default", "project", "trace", "traces", "dev", "app", "gpu", "node", "worker", "build"),
    *("jenkins", "gitlab-runner", "vscode", "coder", "azureuser", "centos", "debian", "main"),
))  # fmt: skip
_LEAST = 3
"""Shorter names would be found in what they have nothing to do with."""


class People:
    """Known hosts and users, and what stands for each: `host`, or `host1`, `host2`, ... so that several stay apart.

    `places` are the inputs as the user named them, `pids` the processes of the trace, which tell whether a file is called after a host.
    """

    def __init__(self, hosts: Iterable[str] = (), places: Iterable[str] = (), pids: Iterable[int] = ()) -> None:
        places, self._pids = sorted(set(places)), frozenset(pids)
        named = {host for place in places if (host := self._host_in(_last(place)))}
        users = {found[1] for place in places for found in _FOLDER_OF.finditer(place)}
        found = _numbered(_telling(set(hosts) | named), HOST) | _numbered(
            [(user,) for user in sorted(users) if len(user) >= _LEAST and user.lower() not in _NOBODY], USER
        )
        self._shown = {_folded(name): shown for name, shown in found.items()}
        names = sorted(found, key=lambda name: (-len(name), name))
        self.hint = f"(?i:{'|'.join(map(_escaped, names))})" if names else ""
        """Every text that holds one of them matches this (RE2); empty where nobody is known."""
        every = "|".join(map(re.escape, names))
        self._pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{every})(?![A-Za-z0-9])", re.IGNORECASE)

    def without(self, text: str) -> str:
        """The text without these names. Within words they are none."""
        return self._pattern.sub(lambda found: self._shown[_folded(found[0])], text) if self._shown else text

    def file_name(self, place: str) -> str:
        """The name of an input without its folders, hosts and users; other names of people cannot be told in it."""
        name = _last(place)
        host = self._host_in(name)
        if host and _folded(host) not in self._shown:
            name = HOST + name[len(host) :]
        return self.without(name)

    def _host_in(self, name: str) -> str | None:
        """The host after which PyTorch called a trace."""
        if not (found := _HOST_NAMED.match(name)):
            return None
        return found[1] if int(found[2]) in self._pids or not _ROLE.fullmatch(found[1]) else None


def host_of_file(place: str, pids: Iterable[int]) -> str | None:
    """The host after which PyTorch called a trace, where one of these processes is named beside it, which nothing else is called by."""
    found = _HOST_NAMED.match(_last(place))
    return found[1] if found and int(found[2]) in pids else None


def file_name(place: str) -> str:
    """The name of an input, where nothing is known but where it lies."""
    return People(places=[place]).file_name(place)


def number_names(names: Iterable[str]) -> list[str]:
    """The same names, where one that was there before gets a number: `trace.json (2)`."""
    seen: dict[str, int] = {}
    shown: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        shown.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return shown


def _last(place: str) -> str:
    # Not the query of a URL, which may hold a signature.
    path = re.split(r"[?#]", place, maxsplit=1)[0] if "://" in place else place
    return PureWindowsPath(PurePosixPath(path).name).name


def _telling(hosts: Iterable[str]) -> list[tuple[str, ...]]:
    """The names of each host, its short one too, that are more than a plain word (`gpu`, `localhost`), which tells of nobody."""
    found: dict[str, tuple[str, ...]] = {}
    for host in sorted({host.lower().rstrip(".") for host in hosts}, key=lambda host: ("." in host, host)):
        short = host.partition(".")[0]
        names = tuple(name for name in dict.fromkeys((host, short)) if _tells(name))
        if short in found and short != host:
            if len(found[short]) == 1:
                found[short] = names  # the same host by both of its names
                continue
            names = (host,)  # of two with one short name
        if names:
            found[short if short not in found else host] = names
    return [found[key] for key in sorted(found)]


def _tells(name: str) -> bool:
    return len(name) > _LEAST and bool(re.search(r"[\d.-]", name)) and not re.fullmatch(r"[\d.]+", name)


def _numbered(groups: Sequence[tuple[str, ...]], what: str) -> dict[str, str]:
    """What stands for each name; the names of one group are one's."""
    several = len(groups) > 1
    return {name: f"{what}{at}" if several else what for at, names in enumerate(groups, 1) for name in names}


def _folded(name: str) -> str:
    """The same for all that a pattern takes for one whatever the case, as lower case is not (ς and σ, ſ and s, ı and İ and i)."""
    return name.casefold().replace("i\u0307", "i").replace("ı", "i")


def _escaped(name: str) -> str:
    """As RE2 reads it."""
    return "".join(sign if sign.isalnum() else f"\\x{{{ord(sign):x}}}" for sign in name)
