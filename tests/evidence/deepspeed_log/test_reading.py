"""Logs of DeepSpeed's in the forms of its versions and launchers: what is read is what they say, and what is none is not claimed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evidence.deepspeed_log.logs import (
    FIRST,
    FIXTURES,
    NEW,
    OLD,
    comms,
    knows,
    many_timers,
    mlp,
    profile,
    read,
    told,
    write,
)
from tests.support.places import FIXTURES as ALL_FIXTURES
from traceanalyzer.errors import InputError
from traceanalyzer.evidence.deepspeed_log.reading.lines import LONGEST, logged_at
from traceanalyzer.evidence.deepspeed_log.reading.quantities import quantity, seconds, size, whole

LOGGER = "[2023-06-21 07:39:09,443] [INFO] [logging.py:96:log_dist] [Rank 0] rank=0 "
ROWS = [("all_reduce", [("4.0 B", 40, 50.0, 1.2, 30.0, 20.0), ("216.12 MB", 40, 80.0, 2.0, 60.0, 20.0)])]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.8 Gs", 1.8e9),
        ("804.9 us", 8.049e-4),
        ("20.81 ms", 2.081e-2),
        ("464.03 GMACs", 4.6403e11),
        ("12.5 MMACs", 1.25e7),
        ("0 MACs", 0.0),
        ("113.31 M", 1.1331e8),
        ("64.51 K ", 6.451e4),
        ("524.29 k", 5.2429e5),
        ("1.5 B", 1.5e9),
        ("49.87 TFLOPS", 4.987e13),
        ("4.4e+01 TFLOPS", 4.4e13),
        ("258.38 FLOPS", 258.38),
        ("0", 0.0),
        ("nan", None),
        ("inf s", None),
        ("1,5 ms", None),
        ("12.000,5", None),
        ("9e99 Gs", None),
        ("", None),
    ],
)
def test_numbers_with_what_is_glued_to_them(text: str, value: float | None) -> None:
    assert quantity(text) == (None if value is None else pytest.approx(value))


def test_counts_times_and_sizes_are_whole_and_not_negative() -> None:
    assert whole("-3") is None
    assert whole("113.31 M") == 113_310_000
    assert seconds("804.9 us") == 804_900
    assert seconds("-1 s") is None
    assert size("216.12 MB") == round(216.12 * 2**20)
    assert size("0B") == 0
    assert size("1.0 XB") is None


@pytest.mark.parametrize("version", [NEW, OLD, FIRST])
@pytest.mark.parametrize("prefix", ["", "0: ", "[default0]:", "[rank0]: ", "worker-0: "])
def test_a_report_of_the_flops_profiler_in_any_version_and_behind_any_prefix(
    tmp_path: Path, version: str, prefix: str
) -> None:
    path = write(tmp_path, "something before", *profile(version=version, prefix=prefix), "something after")
    assert knows(path)
    sink, marks = read(path)
    assert sink.notes == []
    assert marks.rank == 0
    (report,) = sink.rows("deepspeed_profiles")
    assert (report["profile_step"], report["world_size"], report["batch"]) == (6, 2, 2048)
    assert (report["fwd"], report["iteration"], report["passes"]) == (4_000_000, 20_000_000, 3.0)
    assert report["macs"] == 8_590_000_000
    assert report["samples_per_second"] == 204800.0
    modules = sink.rows("deepspeed_modules")
    assert [(one["depth"], one["class"]) for one in modules[:4]] == [
        (0, "Sequential"),
        (1, "Sequential"),
        (2, "Sequential"),
        (3, "LayerNorm"),
    ]
    assert len(modules) == 12
    linear = next(one for one in modules if one["path"] == "0.1.3")
    assert linear["class"] == "Linear"
    assert linear["shape"] == "in_features=2048, out_features=512, bias=True"
    assert linear["latency"] == 100_000
    assert modules[linear["parent"]]["path"] == "0.1"


def test_a_profile_without_the_engine_is_of_no_rank(tmp_path: Path) -> None:
    sink, marks = read(write(tmp_path, *profile(engine=False)))
    assert marks.rank is None
    assert sink.rows("deepspeed_profiles")[0]["fwd"] == 4_000_000


@pytest.mark.parametrize(
    "lines",
    [
        many_timers(prefix=LOGGER, long=True),
        many_timers(prefix="[Rank 0] "),
        many_timers(prefix="rank=0 "),
        many_timers(prefix="0: [Rank 0] "),
        [f" {at}%|###   | {at}/345 [00:07<06:50,  1.23s/it]\r {at}%|####|{line}" for at, line in enumerate(many_timers(prefix=LOGGER))],
        [f"\x1b[32m{line}\x1b[0m" for line in many_timers(prefix=LOGGER)],
        [line for one in many_timers(prefix="[Rank 0] ") for line in (one, "loss 3.2", one.replace("[Rank 0]", "[Rank 1]"))],
    ],
    ids=["logger", "printed", "rank", "srun", "tqdm", "colours", "ranks"],
)  # fmt: skip
def test_timers_behind_whatever_a_run_prints(tmp_path: Path, lines: list[str]) -> None:
    path = write(tmp_path, "pip install deepspeed", *lines)
    assert knows(path)
    sink, marks = read(path)
    assert sink.notes == []
    assert marks.rank == 0
    rows = [row for row in sink.rows("deepspeed_times") if row["log_rank"] == 0]
    assert len(rows) == 300
    assert {row["phase"] for row in rows if row["group"] == "step"} == {
        "fwd",
        "bwd",
        "bwd_inner",
        "bwd_allreduce",
        "step",
    }
    assert "The backward pass takes 10.4 ms of a 17.6 ms step" in told(path).verdict.headline


def test_lines_end_as_windows_ends_them_and_the_last_one_may_not_end(tmp_path: Path) -> None:
    path = write(tmp_path, *many_timers(), end="\r\n")
    path.write_bytes(path.read_bytes().rstrip())
    assert knows(path)
    assert len(read(path)[0].rows("deepspeed_times")) == 300


def test_times_of_day_are_read_as_they_stand() -> None:
    assert logged_at("[2023-06-21 07:39:09,443] [INFO]") == 1687333149443000000
    assert logged_at("2023-06-21T07:39:09.5Z stdout F x") == 1687333149500000000
    assert logged_at("[2023-02-31 07:39:09,443]") is None
    assert logged_at("no time") is None
    assert logged_at("[8245-06-21 07:39:09,443]") is None
    assert logged_at("[2262-04-11 23:59:59,999]") is None
    assert 0 < logged_at("[2262-04-10 23:59:59,999]") < 1 << 63


def test_what_lies_between_steps_is_said(tmp_path: Path) -> None:
    lines = []
    for at in range(20):
        moment = f"[2023-06-21 07:39:{at * 2:02},443]"
        lines += many_timers(1, prefix=LOGGER.replace("[2023-06-21 07:39:09,443]", moment))
    import traceanalyzer as ta
    from traceanalyzer.analysis.parts import parts_of
    from traceanalyzer.config import Config

    (run,) = parts_of(ta.load(write(tmp_path, *lines)))[0].catalog(Config()).table("deepspeed_run").to_pylist()
    assert run["between"] == 2_000_000_000


def test_the_configuration_tells_the_stage_and_the_sizes(tmp_path: Path) -> None:
    start = "[2024-06-21 07:39:09,443] [INFO] "
    dump = [
        f"{start}[logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.14.2, git-hash=unknown, git-branch=unknown",
        f"{start}[config.py:997:print]   gradient_accumulation_steps .. 4",
        f"{start}[config.py:997:print]   train_micro_batch_size_per_gpu  8",
        f"{start}[config.py:997:print]   wall_clock_breakdown ......... True",
        f"{start}[config.py:997:print]   zero_enabled ................. True",
        f"{start}[config.py:997:print]   zero_optimization_stage ...... 2",
    ]
    path = write(tmp_path, *dump, *many_timers(prefix=LOGGER))
    sink, marks = read(path)
    settings = {row["name"]: row["value"] for row in sink.rows("deepspeed_settings")}
    assert settings["zero_optimization_stage"] == "2"
    assert settings["gradient_accumulation_steps"] == "4"
    assert marks.versions == {"deepspeed": "0.14.2"}
    assert marks.producer == "DeepSpeed 0.14.2"


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        ('        "zero_optimization":{\n            "allgather_partitions":true,\n            "stage":3,', "3"),
        ("[INFO] [logging.py:96:log_dist] [Rank 0] Creating torch.bfloat16 ZeRO stage 1 optimizer", "1"),
        ("[INFO] [config.py:997:print]   zero_optimization_stage ...... ZeroStageEnum.weights", "3"),
        ("[INFO] [config.py:997:print]   zero_config .................. stage=<ZeroStageEnum.gradients: 2> overlap=True", "2"),
        ('[INFO] [config.py:997:print]   zero_config .................. {"stage": 1, "contiguous_gradients": true}', "1"),
    ],
)  # fmt: skip
def test_the_stage_by_whatever_the_log_says_of_it(tmp_path: Path, line: str, stage: str) -> None:
    sink, _ = read(write(tmp_path, line, *many_timers()))
    assert {row["name"]: row["value"] for row in sink.rows("deepspeed_settings")} == {"zero_optimization_stage": stage}


def test_a_summary_with_its_straggler_column(tmp_path: Path) -> None:
    sink, _ = read(write(tmp_path, *many_timers(), *comms(ROWS, straggler=True, prefix="0: ")))
    rows = sink.rows("deepspeed_comms")
    assert [(row["op"], row["calls"], row["total"], row["straggler"]) for row in rows] == [
        ("all_reduce", 40, 50_000_000, 20_000_000),
        ("all_reduce", 40, 80_000_000, 20_000_000),
    ]
    assert sink.notes == []


def test_a_summary_alone_is_known(tmp_path: Path) -> None:
    assert knows(write(tmp_path, "==COMMS", *comms(ROWS)))


def test_calls_that_a_verbose_logger_prints(tmp_path: Path) -> None:
    call = (
        "[Rank 0] comm op: all_reduce | time (ms): {:.2f} | msg size: 4.0 MB | algbw (Gbps): 1.00  | busbw (Gbps): 1.00"
    )
    path = write(tmp_path, *(LOGGER + call.format(1 + at) for at in range(20)))
    assert knows(path)
    sink, _ = read(path)
    assert [row["duration"] for row in sink.rows("deepspeed_comm_calls")][:3] == [1_000_000, 2_000_000, 3_000_000]
    assert sink.rows("deepspeed_times") == []


def test_progress_of_engines_pipelines_and_megatron(tmp_path: Path) -> None:
    start = "[2023-07-25 21:03:17,269] [INFO] "
    path = write(
        tmp_path,
        f"{start}[logging.py:96:log_dist] [Rank 0] step=40, skipped=2, lr=[5e-05], mom=[[0.9, 0.999]]",
        f"{start}[timer.py:189:stop] 0/40, SamplesPerSec=83.48609168106144, MemAllocated=0.26GB, MaxMemAllocated=9.02GB",
        f"{start}[timer.py:215:stop] epoch=0/micro_step=34/global_step=34, RunningAvgSamplesPerSec=7.86, CurrSamplesPerSec=8.01, "
        "MemAllocated=59.65GB, MaxMemAllocated=63.31GB",
        "steps: 10 loss: 2.3021 iter time (s): 0.303 samples/sec: 845.2",
        " samples/sec: 7.799 | iteration  34/ 10000 | elapsed time per iteration (ms): 4103.1 | approx flops per GPU: 112.9TFLOPS |",
        " iteration   35/ 10000 | elapsed time per iteration (s): 4.10 | samples per second: 3.9 | TFLOPs: 125.18 |",
    )  # fmt: skip
    assert knows(path)
    rows = read(path)[0].rows("deepspeed_progress")
    assert [
        (row["step"], row["skipped"], row["samples_per_second"], row["iteration"], row["tflops"]) for row in rows
    ] == [
        (40, 2, None, None, None),
        (40, None, 83.48609168106144, None, None),
        (34, None, 8.01, None, None),
        (10, None, 845.2, 303_000_000, None),
        (34, None, 7.799, 4_103_100_000, 112.9),
        (35, None, 3.9, 4_100_000_000, 125.18),
    ]
    assert "119 TFLOPS (by the training program" in told(path).verdict.headline


def test_megatrons_own_timers_are_no_steps_of_deepspeed(tmp_path: Path) -> None:
    own = "time (ms) | forward: 659.86 | backward: 2164.69 | backward-backward: 2164.66 | optimizer: 1172.51 | batch generator: 0.83"
    path = write(tmp_path, *[line for one in many_timers(prefix=LOGGER) for line in (one, own)])
    sink, _ = read(path)
    assert {row["group"] for row in sink.rows("deepspeed_times")} == {"step", "micro", "other"}
    assert "of a 17.6 ms step" in told(path).verdict.headline


def test_what_mixtures_of_experts_take_is_read_too(tmp_path: Path) -> None:
    own = "time (ms) | fwd: 2.10 (fwd_moe: 1.20, 1st_a2a: 0.30, 2nd_a2a: 0.25, top_k: 0.10)"
    path = write(tmp_path, *[line for one in many_timers(prefix=LOGGER) for line in (one, LOGGER + own)])
    sink, _ = read(path)
    assert sink.notes == []
    others = [row["phase"] for row in sink.rows("deepspeed_times") if row["group"] == "other"]
    assert set(others) == {"fwd_moe", "1st_a2a", "2nd_a2a", "top_k"}
    assert "of a 17.6 ms step" in told(path).verdict.headline


@pytest.mark.parametrize(
    "text",
    [
        "just a log\nof something\nelse\n" * 50,
        "time (ms) | forward-compute: 1.20 | backward-compute: 3.40 | optimizer: 2.00\n" * 20,
        " iteration 34/ 10000 | elapsed time per iteration (ms): 4103.1 | TFLOPs: 120 |\n" * 20,
        "# How to profile\n\n```\n" + "\n".join(profile()) + "\n```\n\n```\n" + "\n".join(many_timers()) + "\n```\n",
        f'print("\\n{"-" * 26} DeepSpeed Flops Profiler {"-" * 26}")\nprint(f"Profile Summary at step {{step}}:")\n',
        '{"log": "step=1, skipped=0, lr=[1]\\nstep=2, skipped=0, lr=[1]"}',
        "<html><body>" + "\n".join(many_timers()) + "</body></html>",
        "[2023-06-21 07:39:09,443] [INFO] [logging.py:96:log_dist] [Rank 0] Using DeepSpeed Optimizer param name adam\n"
        * 20,
        "\n".join(many_timers()).replace("\n", "\0\n"),
    ],
    ids=["other", "megatron", "iterations", "markdown", "source", "json", "html", "nothing", "binary"],
)
def test_what_is_no_log_of_deepspeeds_is_not_claimed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text)
    assert not knows(path)


def test_no_other_fixture_is_claimed() -> None:
    for path in sorted(ALL_FIXTURES.rglob("*")):
        if path.is_file() and path.stat().st_size and FIXTURES not in path.parents and path.suffix != ".store":
            assert not knows(path), path


def test_a_log_that_is_cut_keeps_what_came_before(tmp_path: Path) -> None:
    lines = profile()
    path = write(tmp_path, *many_timers(), *lines[: len(lines) - 7])
    path.write_bytes(path.read_bytes()[:-20])
    sink, _ = read(path)
    assert len(sink.rows("deepspeed_times")) == 300
    assert sink.said("has no end")
    assert len(sink.rows("deepspeed_modules")) == 9


def test_a_log_of_which_only_the_frame_is_there_is_refused_in_a_line(tmp_path: Path) -> None:
    path = write(tmp_path, f"{'-' * 26} DeepSpeed Flops Profiler {'-' * 26}", "Profile Summary at step 1:")
    sink, _ = read(path)
    assert sink.rows("deepspeed_profiles")[0]["profile_step"] == 1
    path = write(tmp_path, f"{'-' * 26} DeepSpeed Flops Profiler {'-' * 26}")
    with pytest.raises(InputError, match="without timers, flops profile or comms summary"):
        read(path)


@pytest.mark.parametrize("value", ["nan", "inf", "-3.00", "1,31", "9e99", "abc", ""])
def test_figures_that_are_none_are_left_out_and_said(tmp_path: Path, value: str) -> None:
    lines = many_timers()
    path = write(tmp_path, *lines, f"[Rank 0] time (ms) | fwd: {value} | bwd: 1.00 | step: 2.00")
    sink, _ = read(path)
    assert len(sink.rows("deepspeed_times")) == 302
    assert sink.said("could not be read")
    assert "of a 17.6 ms step" in told(path).verdict.headline


def test_a_line_without_an_end_takes_no_memory(tmp_path: Path) -> None:
    path = write(tmp_path, *many_timers(), "x" * (LONGEST * 40) + " time (ms) | fwd: 1.0", *many_timers())
    assert len(read(path)[0].rows("deepspeed_times")) == 600


def test_a_tree_deeper_than_any_model_is_refused_and_said(tmp_path: Path) -> None:
    head = profile()[:-1]
    at = next(n for n, line in enumerate(head) if line.startswith("Sequential("))
    path = write(tmp_path, *head[: at + 1], *("(0): Deep(" for _ in range(5000)), *(")" for _ in range(5000)))
    sink, _ = read(path)
    assert len(sink.rows("deepspeed_modules")) <= 501
    assert sink.said("could not be read")


def test_two_ranks_of_a_pipeline_print_sums(tmp_path: Path) -> None:
    lines = []
    for step in range(10, 210, 10):
        lines += [f"steps: {step} loss: 2.30 iter time (s): 0.303 samples/sec: 845.2"]
        lines += [line.replace("fwd: 2.0", "fwd: 20.0") for line in many_timers(1, prefix="[Rank 0] ")]
        lines += [
            "[Rank 0] time (ms) | pipe_send_output: 1.00 | pipe_send_grad: 1.00 | pipe_recv_input: 30.00 | pipe_recv_grad: 1.00"
        ]
    path = write(tmp_path, *lines)
    assert knows(path)
    headline = told(path).verdict.headline
    assert "The forward pass takes 2 ms of a 3.5 ms step" in headline


def test_a_pipeline_without_progress_is_divided_by_what_the_configuration_says(tmp_path: Path) -> None:
    lines = [
        'tt1:     "steps_per_print": 10',
        "tt1: [2024-04-08 07:26:15,657] [INFO] [engine.py:101:__init__] CONFIG: micro_batches=4 micro_batch_size=2",
    ]
    for _ in range(20):
        lines += [line.replace("fwd: 2.0", "fwd: 20.0") for line in many_timers(1, prefix="tt1: [Rank 0] ")]
        lines += ["tt1: [Rank 0] time (ms) | pipe_send_output: 1.00 | pipe_recv_input: 30.00"]
    path = write(tmp_path, *lines)
    assert "The forward pass takes 2 ms of a 3.5 ms step" in told(path).verdict.headline
    settings = {row["name"]: row["value"] for row in read(path)[0].rows("deepspeed_settings")}
    assert settings == {
        "steps_per_print": "10",
        "gradient_accumulation_steps": "4",
        "train_micro_batch_size_per_gpu": "2",
    }


def test_a_wide_model_counts_its_parameters_by_shape(tmp_path: Path) -> None:
    result = told(write(tmp_path, *profile(mlp(width=1536, blocks=6, sharded=True))))
    assert "the model has 113.31 M by the printed shapes" in result.verdict.headline
