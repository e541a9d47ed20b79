"""What `doctor` says: as data on captures and on small traces made for it, and a few lines of its text."""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.test_cli import refused, run
from tests.nsys.nsys_export import kernel, make_export, memcpy, nvtx, runtime
from tests.support.kineto import KinetoTrace
from tests.support.places import CORPUS, FIXTURES, needs_corpus
from traceanalyzer.analysis.evidence import rules_about
from traceanalyzer.catalog.declarations import needs
from traceanalyzer.doctor import diagnose
from traceanalyzer.engine.rules.library import load_rules
from traceanalyzer.errors import ConfigError, InputError
from traceanalyzer.ingest.registry import registry
from traceanalyzer.render.doctor import render_diagnosis
from traceanalyzer.result.recording.diagnosis import Duplicate, GpuWork, Obstacle, Recording
from traceanalyzer.result.recording.recording_advice import REMEDIES
from traceanalyzer.result.recording.ways import GIVES, Way, Ways

RULES = rules_about(load_rules(), (), alone=False)
"""In claim order, in which `doctor` names them."""
GPU_RULES = [rule.id for rule in RULES if rule.family != "health"]


def family(*names: str) -> list[str]:
    """The rules in these folders."""
    return [rule.id for rule in RULES if rule.family in names]


def examined(path: Path) -> Recording:
    (recording,) = diagnose([path]).recordings
    return recording


def settings(recording: Recording) -> list[str]:
    return [setting.name for setting in recording.next_time.settings]


def code(recording: Recording) -> str:
    return "\n".join(snippet.text for snippet in recording.next_time.snippets)


def complete() -> KinetoTrace:
    """A trace of two steps that lacks nothing."""
    made = KinetoTrace()
    for step in range(2):
        t = step * 1000
        made.range(f"ProfilerStep#{step}", t, t + 900)
        made.range("train.py(3): step", t + 1, t + 800, category="python_function")
        shapes = {"External id": step + 1, "Input Dims": [[8, 8]], "Input type": ["float"]}
        made.add(cat="cpu_op", name="aten::mm", ts=t + 10, dur=200, args=shapes)
        made.op(t + 100, t + 700, launch=(t + 20, t + 30), **{"External id": step + 1})
        held = {"Addr": 1, "Bytes": 64, "Total Allocated": 64, "Total Reserved": 128, "Device Type": 1, "Device Id": 0}
        made.add(ph="i", s="t", cat="cpu_instant_event", name="[memory]", ts=t + 15, args=held)
    return made


def test_a_capture_of_pytorch_without_stacks():
    path = FIXTURES / "kineto" / "launch_storm.slow.pt.trace.json.gz"
    found = examined(path)
    assert (found.file.bytes, found.file.container, found.file.format) == (path.stat().st_size, "gzip", "kineto")
    assert found.file.producer == "PyTorch profiler (Kineto, CUPTI 130001)"
    assert (found.file.rank, found.file.world_size) == (None, None)
    assert found.file.first_event_utc == "2026-11-27T20:46:15Z"
    assert found.file.span_ns == 66_737_388
    held = found.contents
    assert held.gpus == [GpuWork(0, "NVIDIA H100 80GB HBM3", 4400, 0, 0, 0, 0, 0)]
    assert (held.launch_recorded, held.queued_before, held.linked_to_operator) == (4400, 0, 4400)
    assert held.api_calls == {"launch": 4400, "sync": 1}
    assert held.host_ranges == {"annotation": 4, "operator": 6000}
    assert (held.shapes, held.memory_events, held.counters, held.framework) == (6000, 0, {}, "pytorch")
    assert (held.steps, held.step_method, held.first_step) == (4, "annotation", "ProfilerStep#3")
    assert found.health == [] and found.could_not_judge is None
    assert found.rules.obstacles[:4] == [
        Obstacle("not_applicable", needs()["mpi_waits"].reason, ["MPI001", "MPI002"], [], False),
        Obstacle("not_applicable", needs()["copies"].reason, family("copies"), [], True),
        Obstacle("not_applicable", needs()["communication"].reason, family("communication"), [], True),
        Obstacle("not_applicable", needs()["other_threads"].reason, ["HST004"], ["python_stacks"], False),
    ]
    lost = sum(len(obstacle.rules) for obstacle in found.rules.obstacles)
    assert (found.rules.total, found.rules.judged) == (len(RULES), len(RULES) - lost)
    assert settings(found) == ["python_stacks", "memory"]
    lines = code(found).splitlines()
    assert [line.strip() for line in lines if "missing" in line] == [
        "with_stack=True,  # missing so far",
        "profile_memory=True,  # missing so far",
    ]


def test_a_capture_with_stacks_needs_none():
    found = examined(FIXTURES / "kineto" / "gc_stack.slow.pt.trace.json.gz")
    assert found.contents.host_ranges["python"] == 4894
    assert settings(found) == ["memory"]


def test_graphs_recorded_as_a_whole_ask_for_their_kernels():
    found = examined(FIXTURES / "nsys" / "launch_storm.fixed.graph-level.sqlite")
    assert (found.file.container, found.file.producer) == ("plain", "Nsight Systems 2025.3.2.0")
    assert (found.contents.graphs, found.contents.graph_kernels) == (4, 0)
    assert [note.code for note in found.health if note.severity != "info"] == ["TRC008"]
    graph, counters = found.next_time.settings
    assert (graph.name, graph.option) == ("graph_kernels", "--cuda-graph-trace=node")
    assert set(graph.needed_by) == {*family("copies", "communication", "kernels"), "STP003"}
    assert {"CPY001", "COM001", "KRN001"} < set(graph.needed_by)
    assert (counters.name, counters.needed_by) == ("counters", ["MET001", "MET002", "MET003"])
    assert code(found) == (
        "nsys profile \\\n    --trace=cuda,nvtx \\\n    --sample=none \\\n    --cpuctxsw=none \\\n    --cuda-graph-trace=node \\\n"
        "    --cuda-memory-usage=true \\\n    --gpu-metrics-devices=cuda-visible \\\n    -o run \\\n    python main.py\n"
        "nsys export --type sqlite --output run.sqlite run.nsys-rep"
    )


def test_graphs_recorded_by_kernel_keep_their_setting():
    found = examined(FIXTURES / "nsys" / "launch_storm.fixed.graph-node.sqlite")
    assert (found.contents.graphs, found.contents.graph_kernels) == (0, 4400)
    assert settings(found) == ["operators", "counters"]
    assert "--cuda-graph-trace=node" in code(found)


def test_without_gpu_work_the_gpu_is_all_that_is_needed(tmp_path):
    made = KinetoTrace().range("aten::add", 0, 10, category="cpu_op").range("aten::mul", 20, 30, category="cpu_op")
    found = examined(made.write(tmp_path / "cpu.json"))
    assert found.could_not_judge == "Could not judge: the trace holds no GPU work."
    assert (found.contents.gpus, found.file.first_event_utc, found.file.span_ns) == ([], None, 30_000)
    assert found.rules.obstacles == [Obstacle("not_applicable", needs()["gpu_ops"].reason, GPU_RULES, ["gpu"], False)]
    assert (found.rules.total, found.rules.judged) == (len(RULES), len(RULES) - len(GPU_RULES))
    gpu = found.next_time.settings[0]
    assert (gpu.name, gpu.option, gpu.needed_by) == ("gpu", "ProfilerActivity.CUDA in activities", GPU_RULES)
    assert "ProfilerActivity.CUDA],  # missing so far" in code(found)


def test_launches_without_kernels_hide_the_gpu(tmp_path):
    found = examined(KinetoTrace().call("cudaLaunchKernel", 0, 10, correlation=1).write(tmp_path / "t.json"))
    assert [(note.code, note.severity) for note in found.health] == [("TRC002", "high")]
    assert found.could_not_judge.startswith("Could not judge: the trace has kernel launches but no GPU activity")
    assert settings(found)[0] == "gpu"


def test_a_bare_list_of_events_is_told_by_its_names(tmp_path):
    made = KinetoTrace().op(100, 200, launch=(10, 20), name="void at::native::add<float>(int)")
    path = tmp_path / "list.json"
    path.write_text(json.dumps(made.events))
    found = examined(path)
    assert (found.file.producer, found.file.first_event_utc) == ("Chrome trace", None)
    assert found.contents.gpus == [GpuWork(0, None, 1, 0, 0, 0, 0, 0)]
    assert settings(found) == ["operators", "steps", "python_stacks", "memory"]


def test_a_chrome_trace_of_unknown_origin_may_use_either_profiler(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('[{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}}]')
    found = examined(path)
    assert (settings(found), found.file.span_ns) == (["gpu"], None)
    assert [snippet.title for snippet in found.next_time.snippets] == ["With torch.profiler", "With Nsight Systems"]
    assert "missing" not in code(found)


def test_nothing_is_missing(tmp_path):
    found = examined(complete().write(tmp_path / "t.json"))
    assert (found.next_time.settings, found.next_time.snippets) == ([], [])
    assert (found.contents.shapes, found.contents.memory_events, found.contents.steps) == (2, 2, 2)
    assert render_diagnosis(diagnose([tmp_path / "t.json"])).endswith("\n\nNext time: nothing is missing\n")


def test_work_queued_before_recording_is_told_from_lost_records(tmp_path):
    made = KinetoTrace().op(0, 10).op(20, 30).op(5, 9, stream=20).op(100, 200, launch=(50, 60)).op(300, 310)
    held = examined(made.write(tmp_path / "t.json")).contents
    assert (held.gpu_operations, held.launch_recorded, held.queued_before, held.migrations) == (5, 1, 3, 0)
    text = render_diagnosis(diagnose([tmp_path / "t.json"]))
    assert "launch records      1 of 5 GPU operations (20%); 3 were queued before recording began" in text


def test_migrations_of_unified_memory_are_started_by_no_call(tmp_path):
    tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel()],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [memcpy(kind=11, src=4, dst=4, correlationId=0)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [runtime()],
    }
    held = examined(make_export(tmp_path / "t.sqlite", tables)).contents
    assert (held.gpu_operations, held.launch_recorded, held.migrations, held.queued_before) == (2, 1, 1, 0)


def test_steps_in_nsys_are_marked_in_the_program_and_bound_the_recording(tmp_path):
    tables = {"CUPTI_ACTIVITY_KIND_KERNEL": [kernel()], "CUPTI_ACTIVITY_KIND_RUNTIME": [runtime()]}
    bare = examined(make_export(tmp_path / "bare.sqlite", tables))
    assert settings(bare) == ["osrt", "steps", "samples", "switches", "memory", "counters"]
    assert "nvtxRangePushA(name);  // missing so far" in bare.next_time.snippets[0].text
    assert "--capture-range=cudaProfilerApi" in bare.next_time.snippets[1].text
    marked = examined(make_export(tmp_path / "marked.sqlite", {**tables, "NVTX_EVENTS": [nvtx(1, 900, "step_0")]}))
    assert (settings(marked), marked.contents.first_step) == (
        ["osrt", "samples", "switches", "memory", "counters"],
        "step_0",
    )
    assert "--capture-range" not in code(marked)


def test_communication_asks_for_ranks_and_collectives(tmp_path):
    made = complete().op(1800, 1850, launch=(1750, 1760), name="ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    found = examined(made.write(tmp_path / "t.json"))
    assert (found.contents.communication, found.contents.collectives) == (1, 0)
    assert settings(found) == ["rank", "collectives"]


def test_a_cut_file_says_so_and_what_to_do(tmp_path):
    path = tmp_path / "cut.json"
    path.write_text(complete().text()[:-40])
    found = examined(path)
    assert "TRC001" in [note.code for note in found.health]
    assert "whole_file" in settings(found)


def test_what_a_cut_file_lacks_may_be_in_the_part_that_is_lost(tmp_path):
    made = KinetoTrace().range("aten::add", 0, 10, category="cpu_op").op(100, 200, launch=(10, 20))
    path = tmp_path / "cut.json"
    path.write_text(made.text()[: made.text().index('{"ph": "X", "pid": 0') + 30])
    found = examined(path)
    assert found.rules.obstacles == [
        Obstacle("not_applicable", needs()["gpu_ops"].reason, GPU_RULES, ["whole_file", "gpu"], False)
    ]
    assert [(s.name, s.needed_by) for s in found.next_time.settings[:2]] == [
        ("whole_file", GPU_RULES),
        ("gpu", GPU_RULES),
    ]


def test_absolute_times_tell_when_even_without_a_base(tmp_path):
    second = 1_600_000_000
    made = KinetoTrace().op(second * 1e6, second * 1e6 + 10)
    assert examined(made.write(tmp_path / "t.json")).file.first_event_utc == "2020-09-13T12:26:40Z"


def test_a_base_that_is_no_date_is_no_date(tmp_path):
    made = KinetoTrace().op(1, 2)
    made.metadata["baseTimeNanoseconds"] = 1 << 69
    assert examined(made.write(tmp_path / "t.json")).file.first_event_utc is None


def test_several_files_are_one_job(tmp_path):
    for name, rank in (("a", 0), ("b", 1), ("c", 1)):
        made = complete()
        made.metadata["distributedInfo"] = {"rank": rank, "world_size": 12, "name": name}
        made.write(tmp_path / f"{name}.json")
    shutil.copy(tmp_path / "a.json", tmp_path / "d.json")
    complete().write(tmp_path / "e.json")
    job = diagnose([tmp_path]).job
    assert (job.recordings, job.ranks, job.without_rank, job.world_size) == (5, [0, 1], 1, 12)
    assert (job.missing_ranks, job.first_missing) == (10, list(range(2, 10)))
    a, b, c, d = (str(tmp_path / f"{name}.json") for name in "abcd")
    assert job.duplicates == [Duplicate("rank 0", [a, d]), Duplicate("rank 1", [b, c]), Duplicate("content", [a, d])]
    text = render_diagnosis(diagnose([tmp_path]))
    assert f"2 files have rank 1: {b}," in " ".join(text.split())
    assert text.startswith(
        "job     5 recordings: 2 of 12 ranks, 1 without a rank; missing: 2, 3, 4, 5, 6, 7, 8, 9, …\n"
    )


def test_the_members_of_an_archive_are_files_of_their_own(tmp_path):
    with zipfile.ZipFile(tmp_path / "job.zip", "w") as archive:
        for rank in range(2):
            made = complete().op(1800, 1850 + rank)
            made.metadata["distributedInfo"] = {"rank": rank, "world_size": 2}
            archive.writestr(f"rank{rank}.json", made.text())
    found = diagnose([tmp_path / "job.zip"])
    assert [(r.file.container, r.file.rank, r.file.span_ns) for r in found.recordings] == [
        ("zip", 0, 1_900_000),
        ("zip", 1, 1_900_000),
    ]
    assert (found.job.ranks, found.job.missing_ranks, found.job.duplicates) == ([0, 1], 0, [])


def test_two_files_of_one_rank_in_an_archive_are_both_examined(tmp_path):
    with zipfile.ZipFile(tmp_path / "job.zip", "w") as archive:
        for name, end in (("a", 1850), ("b", 1950)):
            made = complete().op(1800, end)
            made.metadata["distributedInfo"] = {"rank": 1, "world_size": 2}
            archive.writestr(f"{name}.json", made.text())
    job = diagnose([tmp_path / "job.zip"]).job
    paths = [str(tmp_path / "job.zip" / f"{name}.json") for name in "ab"]
    assert (job.recordings, job.duplicates) == (2, [Duplicate("rank 1", paths)])


def test_what_is_said_of_a_folder_is_said_once(tmp_path):
    for name in ("a", "b"):
        complete().write(tmp_path / f"{name}.json")
    (tmp_path / "c.json.tmp").write_text("{")
    first, second = diagnose([tmp_path]).recordings
    message = "unfinished recordings among the files were passed over; name one to read what it holds"
    assert ([note.message for note in first.health], second.health) == ([message], [])
    assert "whole_file" not in settings(first)


def test_the_same_advice_is_given_once(tmp_path):
    for name in ("a", "b"):
        KinetoTrace().op(100, 200, launch=(10, 20)).write(tmp_path / f"{name}.json")
    text = render_diagnosis(diagnose([tmp_path]))
    assert text.count("with profile(") == 1
    assert text.endswith(f"Next time: as for {tmp_path / 'a.json'}\n")


def test_names_do_not_reach_the_terminal_as_commands(tmp_path):
    made = complete()
    made.metadata["deviceProperties"][0]["name"] = "H100\x1b[2J\u202e"
    text = render_diagnosis(diagnose([made.write(tmp_path / "t.json")]))
    assert "2 kernels; H100?[2J?\n" in text


def test_a_store_is_as_good_as_its_files(tmp_path, capsysbinary):
    job = FIXTURES / "multirank" / "pipeline_bubble.slow"
    store = tmp_path / "store"
    assert run(capsysbinary, "ingest", job, "-o", store)[0] == 0
    given, stored = diagnose([job]), diagnose([store])
    assert [r.file.container for r in stored.recordings] == ["store"] * 4
    assert [r.contents for r in stored.recordings] == [r.contents for r in given.recordings]
    assert [r.rules for r in stored.recordings] == [r.rules for r in given.recordings]
    assert stored.job == given.job and (given.job.ranks, given.job.missing_ranks) == ([0, 1, 2, 3], 0)


def test_only_what_a_recording_may_lack_has_a_way():
    with pytest.raises(ConfigError, match="no setting of a recording is called 'colour'; choose from whole_file"):
        Ways({"colour": Way("--colour")})


def test_every_setting_is_known_to_some_format_and_every_remedy_is_a_setting(tmp_path):
    held = examined(complete().write(tmp_path / "t.json")).contents
    programs = [replace(held, framework=name) for name in ("pytorch", "jax", None)]
    known = {name for one in registry().formats for held in programs for name in one.ways(held, "").known}
    assert known == set(GIVES)
    reasons = {needed.table for needed in needs().values()}
    assert {table for one in registry().formats for table in one.recorded_with} <= reasons
    assert {name for names in REMEDIES.values() for name in names} <= set(GIVES)
    for needed in needs().values():
        assert set(needed.settings) <= set(GIVES), needed.table


def test_what_is_to_be_pasted_is_python(tmp_path):
    made = KinetoTrace().range("PjitFunction(step)", 0, 10, category="cpu_op")
    made.metadata = {}
    found = examined(made.write(tmp_path / "jax.json"))
    assert [snippet.language for snippet in found.next_time.snippets] == ["python", "shell"]
    assert settings(found) == ["gpu", "steps"]
    assert "StepTraceAnnotation" in found.next_time.snippets[0].text
    bare = examined(make_export(tmp_path / "t.sqlite", {"CUPTI_ACTIVITY_KIND_KERNEL": [kernel()]}))
    for snippet in (*found.next_time.snippets, *bare.next_time.snippets):
        if snippet.language == "python":
            compile(snippet.text, snippet.title, "exec")


def test_the_command(capsysbinary, tmp_path):
    path = complete().write(tmp_path / "t.json")
    exit_code, text, err = run(capsysbinary, "doctor", path)
    assert (exit_code, err) == (0, "") and text == render_diagnosis(diagnose([path]))
    assert text.splitlines()[:3] == [
        str(path),
        f"  PyTorch profiler (Kineto); {path.stat().st_size / 1024:.2f} KiB (plain)",
        "  0.002 s recorded; relative clock: the file does not say when it was recorded; rank not stated",
    ]
    first = run(capsysbinary, "doctor", path, "--format", "json")
    assert first == run(capsysbinary, "doctor", path, "-f", "json")
    document = json.loads(first[1])
    assert list(document) == ["schema_version", "tool", "job", "recordings"]
    assert list(document["recordings"][0]) == ["file", "contents", "health", "rules", "could_not_judge", "next_time"]


def test_the_exit_code_tells_whether_every_file_can_be_judged(capsysbinary, tmp_path):
    good = complete().write(tmp_path / "good.json")
    empty = KinetoTrace().range("aten::add", 0, 10, category="cpu_op").write(tmp_path / "empty.json")
    assert run(capsysbinary, "doctor", empty)[0] == 3
    exit_code, text, _ = run(capsysbinary, "doctor", good, empty)
    assert exit_code == 3 and "  Could not judge: the trace holds no GPU work.\n" in text
    (tmp_path / "notes.txt").write_text("hello")
    assert "neither a PyTorch" in refused(capsysbinary, "doctor", tmp_path / "notes.txt")
    assert "no such file" in refused(capsysbinary, "doctor", tmp_path / "absent.json")


@needs_corpus
@pytest.mark.corpus
def test_every_file_of_the_corpus_is_told_of():
    for folder in ("nsys", "extras", "public"):
        for path in sorted((CORPUS / folder).rglob("*")):
            if path.is_file():
                try:
                    diagnosis = diagnose([path])
                except InputError:
                    continue
                assert diagnosis.to_json() and max(map(len, render_diagnosis(diagnosis).splitlines())) <= 200
