"""Fuzz with atheris: python -m fuzz [TARGET ...] [--seconds N]. What fails is kept in fuzz/found/TARGET, where the tests replay it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOUND = Path(__file__).parent / "found"
TARGETS = (
    "mender",
    "kineto",
    "nsys",
    "memory_snapshot",
    "cpu_profile",
    "deepspeed_log",
    "kernel_counters",
    "gpu_log",
    "nccl_records",
    "operator_tables",
    "store",
    "rules",
    "budgets",
)
MEMORY_MB, SLOW_S, LONGEST_BYTES = 2048, 20, 1 << 15


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all of them by default")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    told, more = parser.parse_known_args()
    if unknown := [name for name in told.targets if name not in TARGETS]:
        parser.error(f"no target {unknown[0]}; there are {', '.join(TARGETS)}")
    if importlib.util.find_spec("atheris") is None:
        print(
            "atheris is not installed (it has no wheel for every Python): nothing was fuzzed; the tests replay what was found"
        )
        return 1 if os.environ.get("CI") else 0
    if told.one:
        _fuzz(told.targets[0], told.seconds, more)
    codes = [
        subprocess.run(
            [sys.executable, "-m", "fuzz", target, "--one", "--seconds", str(told.seconds), *more], check=False
        ).returncode
        for target in told.targets or TARGETS
    ]
    return max(map(abs, codes), default=0) and 1


def _fuzz(target: str, seconds: int, more: list[str]) -> None:
    """Fuzz one target; the process ends with it."""
    import atheris

    with atheris.instrument_imports(include=["traceanalyzer"], enable_loader_override=False):
        from fuzz import seeds
        from fuzz.targets import TARGETS, check

    with tempfile.TemporaryDirectory(prefix="fuzz-corpus-") as folder:
        corpus, words = Path(folder) / "corpus", Path(folder) / "words"
        corpus.mkdir()
        for name, data in (TARGETS[target].seeds() | seeds.found(target)).items():
            (corpus / name).write_bytes(data)
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in TARGETS[target].words.split()))
        (FOUND / target).mkdir(parents=True, exist_ok=True)
        options = [
            f"-max_total_time={seconds}",
            f"-timeout={SLOW_S}",
            f"-rss_limit_mb={MEMORY_MB}",
            f"-max_len={LONGEST_BYTES}",
            f"-artifact_prefix={FOUND / target}/",
            *([f"-dict={words}"] if TARGETS[target].words else []),
            "-print_final_stats=1",
            "-verbosity=1",
        ]
        atheris.Setup([sys.argv[0], *options, *more, str(corpus)], lambda data: check(target, data))
        print(f"fuzz: {target} for {seconds} s", flush=True)
        atheris.Fuzz()


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


if __name__ == "__main__":
    sys.exit(main())
