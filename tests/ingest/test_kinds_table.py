"""The list in docs/formats.md of the kinds of files that are read is what the registry finds.

Renew it with `python -m tests.ingest.test_kinds_table`.
"""

from __future__ import annotations

from pathlib import Path

from traceanalyzer.ingest.registry import registry

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
BEGIN, END = "<!-- kinds: begin -->\n", "<!-- kinds: end -->\n"
HEAD = ("kind", "a file of it is", "is often called", "is known by")
ROLES = {"trace": "trace", "beside": "evidence beside a trace", "series": "evidence beside traces"}


def table() -> str:
    """The kinds of this package, traces first; those of others are not its own to list."""
    own = [one for one in registry().kinds if type(one).__module__.startswith("traceanalyzer.")]
    rows = [
        (f"`{one.name}`, {ROLES[one.role]}", one.about, ", ".join(f"`…{suffix}`" for suffix in one.suffixes), one.told)
        for one in sorted(own, key=lambda one: (one.role != "trace", one.name))
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (HEAD, ["---"] * len(HEAD), *rows))


def test_the_list_of_kinds_is_of_today():
    assert PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0] == table()


def test_every_kind_says_what_it_is():
    assert all(cell.strip() for line in table().splitlines() for cell in line.strip("|").split("|"))


if __name__ == "__main__":
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1], encoding="utf-8")
