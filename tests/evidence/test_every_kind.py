"""All kinds of evidence together: a folder with a trace and a file of each, and what damage of each ends in.

A kind that has no fixture in `tests.support.evidence_folder` fails here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.test_cli import run
from tests.support.evidence_folder import FILES, assemble, content_of, files_of
from traceanalyzer.exit_codes import ERROR
from traceanalyzer.model.kinds import EVIDENCE, kinds_of

KINDS = sorted(kind.name for kind in kinds_of(EVIDENCE) if type(kind).__module__.startswith("traceanalyzer."))
# Exit codes: nothing worth fixing at that level, something found, damaged or could not judge.
ENDS_WELL = (0, 1, 3)
CUTS = 8
"""So many times each file is cut, at as many equal parts of it, and a few bytes further."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assemble(tmp_path_factory.mktemp("all") / "run", *FILES)


def test_there_is_a_file_of_every_kind():
    assert sorted(FILES) == KINDS


class TestFolder:
    def test_one_report_has_each_section_where_a_reader_expects_it(self, folder, tmp_path, capsysbinary):
        page, again = tmp_path / "a.html", tmp_path / "b.html"
        for place in (page, again):
            code, _, err = run(capsysbinary, "report", folder, "-o", place)
            assert code == 0, err
        text = page.read_text()
        sections = re.findall(r'<section[^>]*\bid="([\w-]+)"', text)
        own = [name for name in sections if name.replace("-", "_") in FILES]
        assert own == [kind.replace("_", "-") for kind in FILES]
        assert sections.index("timeline") < sections.index(own[0])
        assert page.read_bytes() == again.read_bytes()
        assert not re.search(r"node0|/root|/home/\w+/|/work/", text)

    def test_what_is_told_is_the_same_from_a_store(self, folder, tmp_path, capsysbinary):
        code, direct, err = run(capsysbinary, "analyze", folder, "-f", "json")
        assert code == 0, err
        store = tmp_path / "run.store"
        for _ in range(2):  # the second time nothing is read anew
            assert run(capsysbinary, "ingest", folder, "-o", store)[0] == 0
            code, stored, err = run(capsysbinary, "analyze", store, "-f", "json")
            assert (code, err) == (0, "")
            assert json.loads(stored) == json.loads(direct)
        found = json.loads(direct)
        assert {one["kind"] for one in found["evidence"]} == set(FILES)
        assert [rule for rule in found["rules"] if rule["outcome"] == "error"] == []
        assert [one for one in found["health"] if one["severity"] == "high"] == []

    def test_the_traces_own_sentence_comes_first(self, folder, capsysbinary):
        _, out, _ = run(capsysbinary, "analyze", folder, "-f", "json")
        _, alone, _ = run(capsysbinary, "analyze", folder / "without_shapes.pt.trace.json.gz", "-f", "json")
        assert json.loads(out)["verdict"]["headline"].startswith(json.loads(alone)["verdict"]["headline"].rstrip("."))


def damaged(data: bytes) -> dict[str, bytes]:
    """The content cut, emptied, with NaN in the place of numbers, and with bytes that are no text."""
    found = {f"cut{part}": data[: len(data) * part // CUTS + part] for part in range(CUTS)}
    numbers = [
        found.span() for found in re.finditer(rb"(?<![\w.])\d+\.\d+(?![\w.])|(?<=: )\d+(?=[,}\s])", data[: 1 << 16])
    ]
    for name, part in (("first", 0), ("middle", len(numbers) // 2), ("last", -1)) if numbers else ():
        start, end = numbers[part]
        found[f"nan {name}"] = data[:start] + b"NaN" + data[end:]
    middle = len(data) // 2
    return found | {
        "empty": b"",
        "twice": data + data,
        "zeros": data[:middle] + bytes(64) + data[middle:],
        "bytes": data[:middle] + b"\xff\xfe\x80" + data[middle:],
        "line ends": data.replace(b"\n", b"\r\n"),
    }


@pytest.mark.parametrize("file", [path for kind in FILES for path in files_of(kind)], ids=lambda path: path.name)
def test_damage_ends_in_one_line_or_is_said(file, tmp_path, capsysbinary):
    path = tmp_path / file.name.removesuffix(".gz").removesuffix(".xz")
    said = {}
    for name, data in damaged(content_of(file)).items():
        path.write_bytes(data)
        code, out, err = run(capsysbinary, "analyze", path, "-f", "json")
        if code == ERROR:
            assert err.count("\n") == 1 and path.name in err and "fault in traceanalyzer" not in err, (name, err)
            continue
        assert code in ENDS_WELL and err == "", (name, code, err)
        found = json.loads(out)
        assert [rule for rule in found["rules"] if rule["outcome"] == "error"] == [], name
        said[name] = found["health"]
        assert path.read_bytes() == data
    assert "empty" not in said
    # A log may be cut where a line ends, which nothing tells.
    assert sum(not said.get(f"cut{part}", "refused") for part in range(CUTS)) <= CUTS // 2, said
