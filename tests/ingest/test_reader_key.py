"""A part in a store is taken for what a fresh read would give only while all that reading depends on is the same."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import traceanalyzer
from tests.support.kineto import KinetoTrace
from tests.support.strangers import install_package
from traceanalyzer.ingest import reader_key as keys
from traceanalyzer.ingest.reader_key import modules_of_readers, reader_key

PACKAGE = Path(traceanalyzer.__file__).parent
INGEST = """
import sys
from traceanalyzer.ingest.storing import ingest_to_store
print(ingest_to_store([sys.argv[1]], sys.argv[2], "1.0").there_already)
"""


@pytest.fixture(autouse=True)
def _fresh():
    reader_key.cache_clear()
    yield
    reader_key.cache_clear()


def names(package: Path) -> set[str]:
    return {Path(name).as_posix() for name in modules_of_readers(package)}


_OF_SHAPES = {"formulas.py", "inputs.py", "matrices.py", "convolutions.py", "attention.py"}


def test_all_that_reading_imports_is_part_of_the_key() -> None:
    found = names(PACKAGE)
    assert {path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "ingest").rglob("*.py")} <= found
    assert {
        "model/markers.py",
        "model/mpi_names.py",
        "intervals.py",
        "names/functors.py",
        "files.py",
        "evidence/contract.py",
    } <= found
    assert not {name for name in found if name.startswith(("report/", "render/", "cli/", "engine/", "analysis/"))}
    # A kind of evidence may declare a table as one of derive's, and reads nothing by what makes that.
    derived = {Path(name).name for name in found if name.startswith("derive/")}
    # What computes beside that is of numbers alone.
    assert derived <= {"__init__.py", "columns.py", "tables.py", "trends.py", *_OF_SHAPES}


def test_what_a_process_has_imported_by_then_is_in_it() -> None:
    """Whatever a read really loads of the package is among the modules that the text tells."""
    code = (
        "import sys, pathlib, traceanalyzer\n"
        "from traceanalyzer.ingest.formats.kineto.importer import KinetoImporter\n"
        "from traceanalyzer.ingest.formats.nsys.importer import NsysImporter\n"
        "from traceanalyzer.ingest import storing\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('traceanalyzer.')), sep='\\n')"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=PACKAGE.parent
    )
    assert {Path(name).relative_to(PACKAGE).as_posix() for name in loaded.stdout.split()} <= names(PACKAGE)


def test_a_changed_constant_of_the_model_is_read_again(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "traceanalyzer", ignore=shutil.ignore_patterns("__pycache__"))
    made = KinetoTrace()
    for step in range(6):
        made.op(step * 100, step * 100 + 40, launch=(step * 100 - 20, step * 100 - 10))
    made.write(tmp_path / "t.json")

    def there_already() -> int:
        command = [sys.executable, "-B", "-c", INGEST, str(tmp_path / "t.json"), str(tmp_path / "store")]
        return int(subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout)

    assert [there_already(), there_already()] == [0, 1]
    markers = tmp_path / "traceanalyzer" / "model" / "markers.py"
    text = markers.read_text()
    assert "step|iter|iteration" in text
    markers.write_text(text.replace("step|iter|iteration", "step|iteration"))
    assert [there_already(), there_already()] == [0, 1]
    page = tmp_path / "traceanalyzer" / "report" / "html.py"
    page.write_text(page.read_text() + "# what is made of tables later does not count\n")
    assert there_already() == 1


def test_readers_of_other_packages_are_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = reader_key("1.0")
    package = tmp_path / "acme_kinds"
    files = {
        "acme_kinds/__init__.py": "raise RuntimeError('never imported for this')",
        "acme_kinds/snapshots.py": "LIMIT = 1",
    }
    install_package(tmp_path, "acme_kinds", files, {"traceanalyzer.evidence": "snapshots = acme_kinds.snapshots:KIND"})
    monkeypatch.syspath_prepend(str(tmp_path))
    reader_key.cache_clear()
    with_it = reader_key("1.0")
    (package / "snapshots.py").write_text("LIMIT = 2")
    reader_key.cache_clear()
    assert len({before, with_it, reader_key("1.0")}) == 3


def test_the_libraries_that_decode_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = reader_key("1.0")
    assert before == reader_key("1.0") and before != reader_key("1.1")
    monkeypatch.setattr(keys, "_version", lambda library: f"{library} of tomorrow")
    reader_key.cache_clear()
    assert reader_key("1.0") != before


def test_it_is_fast() -> None:
    began = time.process_time()
    modules_of_readers(PACKAGE)
    assert time.process_time() - began < 0.5
