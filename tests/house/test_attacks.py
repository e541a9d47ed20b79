"""The attacks of the shared corpus: each once lost files, gave figures of another run, or took the machine, and ends well now."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest

from tests.support.places import CORPUS, FIXTURES

ATTACKS = CORPUS / "attacks"
MEMORY = 1 << 30
# A process that is started counts what the one that starts it has, so a small one does it.
MEASURED = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "traceanalyzer", *sys.argv[1:]], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(done.returncode)
"""
"""What a small hostile file may take at most, in bytes; an ordinary trace of its size takes a fifth of it."""

pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not ATTACKS.is_dir(), reason="needs the shared corpus")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TA", f"{sys.executable} -m traceanalyzer")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    trace = gzip.decompress((FIXTURES / "kineto" / "dataloader.slow.pt.trace.json.gz").read_bytes())
    (tmp_path / "trace.json").write_bytes(trace)
    return tmp_path


def script(name, *args):
    command = [sys.executable if name.endswith(".py") else "sh", ATTACKS / name, *args]
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    assert "Traceback" not in done.stdout
    return done.stdout


def tool(*args):
    """Exit code, standard error and peak memory in bytes of one run of the command."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, args)], check=False, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr, int(done.stdout)


def test_dots_behind_a_folder_that_is_not_there(folder):
    said = script("dotdot_wipes_folder.sh", folder / "trace.json")
    parts = said.split("--- ")[1:]
    assert len(parts) == 5
    assert "is an input" in parts[0]
    for part in parts[1:3] + parts[4:]:
        assert "chapter1.txt" in part, part
    assert "keep.txt" in parts[3]


def test_a_flipped_bit_in_the_name_of_a_table(folder):
    said = script("manifest_key_flip.sh", folder / "trace.json")
    assert "damaged store" in said and "bound by" not in said


def test_a_table_of_another_store(folder):
    said = script("torn_read.sh")
    assert "damaged store" in said and '"busy_ns"' not in said


def test_small_faults(folder):
    codes = {
        line.partition(": rc=")[0]: int(line.partition(": rc=")[2].split()[0])
        for line in script("small_faults.sh", folder / "trace.json").splitlines()
    }
    assert len(codes) == 10
    right = {name: 0 if name.startswith("stderr closed") else 2 for name in codes}
    readable = "5,000 digits in a member's name (fault)"  # both members are traces: they may be read
    assert {**codes, readable: 2} == right and codes[readable] in (0, 2)


def test_a_rule_whose_texts_double(folder):
    said = script("concat_bomb.yaml.sh")
    assert "no problems" not in said and "\x1b" not in said
    memory = [int(line.split()[0]) for line in said.splitlines() if line.endswith(" KB")]
    assert all(kilobytes * 1024 < MEMORY for kilobytes in memory)


def test_redaction():
    assert "LEAK" not in script("redaction_leaks.py")


@pytest.mark.parametrize("verb", ["doctor", "analyze"])
def test_a_journal_that_names_a_file_to_delete(folder, verb):
    victim = folder / "victim"
    victim.write_text("precious")
    export = FIXTURES / "nsys" / "h2d_pageable.slow.sqlite"
    script("super_journal_delete.py", export, folder / "out", victim)
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    code, said, _ = tool(verb, folder / "out")
    assert code == 2 and "journal" in said
    assert victim.read_text() == "precious"
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before


def test_views_that_never_end_or_take_all_memory(folder):
    script("sqlite_bombs.py", FIXTURES / "nsys" / "h2d_pageable.slow.sqlite", folder / "out")
    for name in ("hang", "memory"):
        code, said, memory = tool("analyze", folder / "out" / f"{name}.sqlite")
        assert code == 2 and "view" in said and memory < MEMORY
    code, _, memory = tool("analyze", folder / "out" / "digits.sqlite")
    assert code in (0, 2) and memory < MEMORY


@pytest.mark.parametrize("verb", ["ingest", "analyze"])
def test_long_names(folder, verb):
    script("long_distinct_names.py", folder / "names.json.gz")
    code, said, memory = tool(verb, folder / "names.json.gz", "-o", folder / "out")
    assert code == 0 and memory < MEMORY, said


def test_many_gpus_with_many_steps(folder):
    script("devices_times_steps.py", folder / "many.json", "8000", "10")
    code, said, memory = tool("analyze", folder / "many.json")
    assert code == 0 and memory < MEMORY, said


def test_metadata_of_empty_lists(folder):
    script("metadata_bomb.py", folder / "metadata.json.gz")
    code, said, memory = tool("analyze", folder / "metadata.json.gz")
    assert code in (0, 2) and memory < MEMORY, said


def test_a_category_that_is_not_known(folder):
    script("unknown_gpu_category.py", folder / "p2p.json")
    command = [sys.executable, "-m", "traceanalyzer", "analyze", "p2p.json", "-f", "json"]
    result = json.loads(subprocess.run(command, check=False, capture_output=True).stdout)
    (gpu,) = result["devices"]
    assert gpu["memcpy_ns"] == 200 * 60_000 and gpu["gpu_op_count"] == 400
    assert any("gpu_memcpy_p2p" in one["message"] for one in result["health"])
