"""The house: docs/rooms.md and the table of rooms in docs/architecture.md are made of the docstrings, and no room grows out of hand.

Renew both with `python -m tests.house.test_rooms`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "traceanalyzer"
ARCHITECTURE, ROOMS = ROOT / "docs" / "architecture.md", ROOT / "docs" / "rooms.md"
START, END = "<!-- rooms -->\n", "<!-- end of rooms -->\n"
MOST_OF_THE_LINES = 0.22
MOST_MODULES = 20
INTRO = """# Every module

Made of the docstrings (`make generated`). What the rooms have to do with each other: [architecture.md](architecture.md).
"""


def folders() -> Iterator[Path]:
    """The package and every folder in it that holds modules, each before those in it."""
    yield from sorted({path.parent for path in PACKAGE.rglob("*.py")})


def modules(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.py"))


def about(path: Path) -> str:
    """The first sentence or line of a module's docstring, as one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def line_count(room: Path) -> int:
    paths = room.rglob("*.py") if room.is_dir() else [room]
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def rooms() -> list[Path]:
    """What lies in the package: folders, and modules that are no part of one."""
    return [path for path in sorted(PACKAGE.iterdir()) if path.suffix == ".py" or (path / "__init__.py").exists()]


def floors() -> list[list[str]]:
    """The layers that import-linter checks, from the ground up."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(one["layers"] for one in settings["contracts"] if one["type"] == "layers")
    return [[name.strip().removeprefix("traceanalyzer.") for name in layer.split("|")] for layer in reversed(layers)]


def rooms_table() -> str:
    rows = ["| floor | room | job |", "| --- | --- | --- |"]
    for floor, names in reversed(list(enumerate(floors()))):
        for name in names:
            room = PACKAGE / name
            if not room.is_dir():
                rows.append(f"| {floor} | `{name}` | {about(room.with_suffix('.py'))} |")
                continue
            inner = [path for path in sorted(room.iterdir()) if (path / "__init__.py").exists()]
            rows.append(f"| {floor} | **`{name}/`** | {about(room / '__init__.py')} |")
            rows += [f"| | `{name}/{path.name}/` | {about(path / '__init__.py')} |" for path in inner]
    return "\n".join(rows) + "\n"


def rooms_page() -> str:
    parts = [INTRO]
    for folder in folders():
        name = folder.relative_to(ROOT).as_posix()
        parts.append(f"\n## `{name}/`\n\n{about(folder / '__init__.py')}\n")
        own = [path for path in modules(folder) if path.stem != "__init__"]
        if own:
            parts.append("\n" + "".join(f"- `{path.stem}`: {about(path)}\n" for path in own))
    return "".join(parts)


def with_table(page: str) -> str:
    return re.sub(f"(?s)(?<={re.escape(START)}).*?(?={re.escape(END)})", lambda _: rooms_table(), page)


def test_the_table_of_rooms_is_of_today() -> None:
    page = ARCHITECTURE.read_text(encoding="utf-8")
    assert START in page
    assert with_table(page) == page, "renew it with `python -m tests.house.test_rooms`"


def test_the_list_of_modules_is_of_today() -> None:
    assert ROOMS.read_text(encoding="utf-8") == rooms_page(), "renew it with `python -m tests.house.test_rooms`"


@pytest.mark.parametrize("folder", list(folders()), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_folder_is_small_and_says_what_it_is(folder: Path) -> None:
    found = modules(folder)
    assert len(found) <= MOST_MODULES
    assert not [path.name for path in found if not about(path)]


def test_no_room_is_most_of_the_house() -> None:
    """Each kind of evidence is a room of its own: nothing else knows it, and it knows no other kind."""
    total = line_count(PACKAGE)
    kinds = [path for path in sorted((PACKAGE / "evidence").iterdir()) if (path / "__init__.py").exists()]
    apart = [*(room for room in rooms() if room.name != "evidence"), *kinds]
    large = {room.name: share for room in apart if (share := line_count(room) / total) > MOST_OF_THE_LINES}
    assert not large


def test_every_room_is_on_a_floor() -> None:
    named = {name for layer in floors() for name in layer}
    own = {"__init__", "__main__"}
    assert {room.stem for room in rooms()} - own == named


if __name__ == "__main__":
    ARCHITECTURE.write_text(with_table(ARCHITECTURE.read_text(encoding="utf-8")), encoding="utf-8")
    ROOMS.write_text(rooms_page(), encoding="utf-8")
