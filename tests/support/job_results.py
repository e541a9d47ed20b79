"""Made-up results of jobs: one rank that comes late to every collective, and the others waiting for it."""

from __future__ import annotations

from dataclasses import replace

from traceanalyzer.result.document import (
    Device,
    Evidence,
    Finding,
    Health,
    InputInfo,
    Result,
    RuleOutcome,
    Saving,
    Scope,
    Steps,
    Verdict,
)
from traceanalyzer.result.job import Clock, CollectiveStats, Job, LateRank, Parallelism, RankSteps, StepMatrix

MS = 1_000_000
GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)"


def job_result(ranks: int, late: int = 2, steps: int = 3, pieces: int = 3) -> Result:
    """A job of so many ranks, one GPU each, of which `late` computes more. `pieces` of evidence a finding."""
    waiting = [_device(rank, 400 + 7 * (rank * 31 % 17), 380) for rank in range(ranks)]
    devices = [_device(rank, 900, 10) if rank == late else waiting[rank] for rank in range(ranks)]
    evidence = [Evidence(late, 0, 100 * MS, 125 * MS, f"late: rank {late}, compute")]
    evidence += [
        Evidence(rank % ranks, 0, 100 * MS, 125 * MS, f"waiting: 25 ms for rank {late}")
        for rank in range(1, pieces)
        if rank % ranks != late
    ]
    stall = _finding("COM002", "Ranks wait in collectives for one that comes late", "high", Scope(None, None), evidence)
    if_in_time = "Had the last rank come to each collective with the one before it"
    stall = replace(stall, saving=Saving(9 * MS, 0.35, 1.54, None, 44 * MS, 23 * MS, 1.913, if_in_time))
    gaps = [
        _finding(
            "LCH001",
            "The GPU waits for kernel launches",
            "medium",
            Scope(rank, 0),
            [Evidence(rank, 0, n * MS, (n + 1) * MS, f"gap {n} of rank {rank}") for n in range(pieces)],
        )
        for rank in range(ranks)
    ]
    return Result(
        tool={"name": "traceanalyzer", "version": "0"},
        inputs=[InputInfo(f"/data/rank{r}.json", f"{r:064x}", 1, "kineto", "PyTorch", r, ranks) for r in range(ranks)],
        health=[Health("TRC001", "low", f"{rank % 3} events were cut off", 1, rank) for rank in range(ranks)],
        devices=devices,
        steps=[Steps(rank, 0, steps, "annotation", 44 * MS + rank, 45 * MS, 0.02) for rank in range(ranks)],
        findings=[stall, *gaps],
        rules=[RuleOutcome("COM002", "fired", None), RuleOutcome("LCH001", "fired", None)],
        verdict=Verdict("communication", f"35% of the GPUs' time is waiting for rank {late}."),
        job=_job(ranks, late, steps),
    )


def _device(rank: int, compute: int, communication: int) -> Device:
    idle = 1000 - compute - communication
    causes = {"turnaround": 5 * MS, "host_work": (idle - 5) * MS}
    amounts = [compute * MS, (communication + 20) * MS, communication * MS]
    return Device(rank, 0, "NVIDIA H100 80GB HBM3", 1000 * MS, (compute + communication) * MS, *amounts, 0, 0, 0,
                  idle * MS, MS, causes, 2000, 1400)  # fmt: skip


def _finding(rule: str, title: str, severity: str, scope: Scope, evidence: list[Evidence]) -> Finding:
    share = 0.12 + 0.0001 * (scope.rank or 0)
    saving = Saving(int(1000 * MS * share), share, round(1 / (1 - share), 3), 40 * MS)
    advice = [{"pytorch": f"model = torch.compile(model)  # for {rule}"}]
    return Finding(rule, rule.lower(), title, severity, "medium", f"{title}.", scope, {}, saving, evidence, advice, [])


def _job(ranks: int, late: int, steps: int) -> Job:
    why = f"computes 25.3 ms more a step than the median rank: 120 more of {GEMM} (24.3 ms)"
    rows = [
        RankSteps(
            rank,
            0,
            [None, *((44 + rank % 5) * MS for _ in range(steps - 1))],
            [0 if rank == late else 21 * MS] * steps,
        )
        for rank in range(ranks)
    ]
    large = CollectiveStats("all-reduce", "data parallel", ranks, 1 << 26, 42, 354 * MS, 239 * MS, 288 * MS,
                            750_897, 392_641, 171.021, 256.531)  # fmt: skip
    alone = CollectiveStats("all-gather", None, None, None, 3, 9 * MS, 8 * MS, None, MS, None, None, None)
    return Job(
        world_size=ranks,
        ranks=list(range(ranks)),
        missing_ranks=[],
        doubled_ranks=[],
        gpu_count=ranks,
        matched_share=0.99,
        parallelism=[Parallelism("data parallel", ranks, 1, ["all-reduce"], 939_982_848)],
        clocks=[Clock(rank, 100 * rank, 1000 + rank % 7, 68) for rank in range(ranks)],
        steps=StepMatrix([f"ProfilerStep#{n + 3}" for n in range(steps)], rows),
        late_ranks=[
            LateRank(late, 0, 66, 68, 350 * MS * ranks, 0.97, 499_267, 25_325_213, "compute", GEMM, why),
            LateRank(0, 0, 2, 68, 9 * MS * ranks, 0.03, 5_267, 6_000, "idle.host_work", None, None),
        ],
        collectives=[large, alone],
    )
