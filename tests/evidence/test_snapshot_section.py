"""What a memory snapshot adds to the report: nothing that findings say, every title with its file, one lane for one thing."""

from __future__ import annotations

import lzma
import pickle
from pathlib import Path

import traceanalyzer as ta
from tests.support.places import CORPUS, needs_corpus
from traceanalyzer.analysis import Analysis, analyze_parts
from traceanalyzer.analysis.parts import parts_of
from traceanalyzer.config import Config
from traceanalyzer.render.text import render_text
from traceanalyzer.report.html import render_html
from traceanalyzer.result.sections import Grid, Section, Words

MEMORY = CORPUS / "evidence" / "memory"
pytestmark = needs_corpus


def snapshot(name: str) -> Path:
    return MEMORY / f"{name}.snapshot.pickle.xz"


def trace(name: str) -> Path:
    return MEMORY / f"{name}.pt.trace.json.gz"


def analysis(*paths: Path, config: Config | None = None) -> Analysis:
    return analyze_parts(parts_of(ta.load(list(paths))), config)


def section_of(found: Analysis) -> Section:
    (section,) = (one for one in found.sections if one.name.startswith("memory"))
    return section


def later(folder: Path, name: str, seconds: int) -> Path:
    """A snapshot as if it was taken later."""
    content = pickle.loads(lzma.decompress(snapshot(name).read_bytes()))  # our own
    for entry in content["device_traces"][0]:
        entry["time_us"] += seconds * 1_000_000
    path = folder / "later.pickle"
    path.write_bytes(pickle.dumps(content))
    return path


def test_nothing_is_said_twice():
    found = analysis(snapshot("leak_activations.slow"))
    assert not [block for block in section_of(found).blocks if isinstance(block, Words)]
    text = render_text(found.result, found.sections)
    assert " ".join(text.split()).count("48 MiB (19%) are activations") == 1


def test_it_says_who_holds_the_peak_where_no_finding_does():
    found = analysis(snapshot("leak_activations.slow"), config=Config(disable={"MEM006": "the test"}))
    assert "48 MiB (19%) are activations" in section_of(found).blocks[0].text


def test_columns_without_anything_are_left_out():
    grids = [
        block for block in section_of(analysis(snapshot("leak_activations.slow"))).blocks if isinstance(block, Grid)
    ]
    assert "As large as blocks of" not in dict(grids[0].columns)
    grids = [block for block in section_of(analysis(snapshot("logits_upcast.slow"))).blocks if isinstance(block, Grid)]
    assert "As large as blocks of" in dict(grids[0].columns)


def test_of_several_files_each_title_names_its_own():
    found = analysis(snapshot("leak_activations.slow"), snapshot("healthy.slow"))
    titles = [block.title for block in section_of(found).blocks if isinstance(block, Grid)]
    assert titles == [
        f"Who holds the memory in use at the peak ({one}.slow.snapshot.pickle.xz)"
        for one in ("leak_activations", "healthy")
    ]


def test_a_snapshot_of_another_time_is_told_apart_from_the_traces_gpu(tmp_path):
    found = analysis(trace("leak_activations.fixed"), later(tmp_path, "leak_activations.slow", 3600))
    (grown,) = [one for one in found.result.findings if one.rule == "MEM005"]
    assert "on GPU 0 of later.pickle rises" in grown.message
    assert "beside  " not in render_text(found.result)
    assert all("(later.pickle)" in block.title for block in section_of(found).blocks if not isinstance(block, Words))


def test_what_the_trace_tells_too_has_one_lane():
    assert section_of(analysis(trace("healthy.slow"), snapshot("healthy.slow"))).lanes == ()


def test_a_page_of_a_snapshot_alone_does_not_ask_for_a_trace():
    found = analysis(snapshot("healthy.slow"))
    page = render_html(found.result, found.tables, sections=found.sections).decode()
    assert "What to record" not in page and "holds no GPU work" not in page
    assert "<title>healthy.slow.snapshot.pickle.xz" in page
    assert "healthy.slow.snapshot.pickle.xz (memory snapshot)" in page


def test_a_leak_gets_no_advice_about_activations():
    advice = {one.rule: one.recommend for one in analysis(snapshot("leak_activations.slow")).result.findings}
    assert advice["MEM005"] and not advice["MEM006"]


def test_a_snapshot_without_a_history_has_no_peak_to_compare(tmp_path):
    content = pickle.loads(lzma.decompress(snapshot("healthy.slow").read_bytes()))  # our own
    content["device_traces"] = [[]]
    path = tmp_path / "now.pickle"
    path.write_bytes(pickle.dumps(content))
    found = analysis(path)
    assert dict(found.figures) == {}
    assert "reserved memory follows it (0 B)" not in found.result.verdict.headline
    assert "Who holds the memory in use at the snapshot" in [
        getattr(one, "title", "") for one in section_of(found).blocks
    ]
