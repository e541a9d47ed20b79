"""How long reading and judging 100 MB of CPU profiles takes, form by form."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import measure
from tests.evidence.cpu_profile import makers as make

MEGABYTES = 100
STACKS, DEPTH, FRAMES = 5000, 20, 4000
JUDGE = """
import sys
import traceanalyzer as ta
ta.analyze(ta.load(sys.argv[1]))
"""


def stacks(seed: int = 1) -> list[make.Stack]:
    """Different stacks that share their outer half, as those of a program do."""
    chance = random.Random(seed)
    frames = [make.At(f"f{n}", f"pkg/m{n % 300}.py", n % 900 + 1) for n in range(FRAMES)]
    outer = [frames[n : n + DEPTH // 2] for n in range(0, FRAMES, DEPTH // 2)]
    return [(*chance.choice(outer), *chance.sample(frames, DEPTH // 2)) for _ in range(STACKS)]


def calls(count: int) -> dict[str, Any]:
    """As VizTracer: so many calls, ten deep."""
    own = {"cat": "FEE", "ph": "X", "pid": 100, "tid": 100}
    events = [
        own
        | {
            "ts": (n // 10) * 100 + n % 10 + 0.5,
            "dur": 90.25 - 2 * (n % 10),
            "name": f"f{n % 900} (/run/m{n % 30}.py:{n % 90 + 1})",
        }
        for n in range(count)
    ]
    return make.viztracer(base=1_795_884_000 * 10**9) | {"traceEvents": events}


FORMS: dict[str, Callable[[list[make.Stack]], Any]] = {
    "speedscope": make.speedscope,
    "evented": make.evented,
    "chrometrace": make.chrometrace,
    "perf": make.perf_script,
    "austin": make.austin,
    "mojo": make.mojo,
    "pprof": lambda given: make.pprof(given, start=1_795_884_000 * 10**9),
    "folded": lambda given: "".join(make.folded([one]) for one in given),
}


def write(path: str, form: str) -> None:
    """A file of about MEGABYTES, unpacked."""
    chance, pool = random.Random(2), stacks()
    if form == "viztracer":
        make.write(Path(path), calls(MEGABYTES * 9000))
        return
    one = FORMS[form]([chance.choice(pool) for _ in range(2000)])
    text = one if isinstance(one, bytes | str) else json.dumps(one)
    size = len(text) * (6 if form == "pprof" else 1)
    make.write(Path(path), FORMS[form]([chance.choice(pool) for _ in range(2000 * MEGABYTES * 1_000_000 // size)]))


def cpu_profiles(folder: Path, forms: tuple[str, ...] = (*FORMS, "viztracer")) -> None:
    for form in forms:
        path = folder / "profile"
        # In a process of its own: the peak of a command counts what its parent holds when it starts.
        put = "import sys; from benchmarks.cpu_profiles import write; write(*sys.argv[1:])"
        subprocess.run([sys.executable, "-c", put, str(path), form], check=True)
        print(f"CPU profile, {form}, {path.stat().st_size / 1e6:,.0f} MB")
        measure("analyze", sys.executable, "-c", JUDGE, str(path))
        path.unlink()
