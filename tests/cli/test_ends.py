"""How the program ends when the world around it does not hold: the right code, one line, never a traceback, never 1 for an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tests.cli.test_cli import refused, run
from tests.support.kineto import KinetoTrace
from traceanalyzer.errors import WorkerError
from traceanalyzer.workers import map_parts, workers

PROGRAM = [sys.executable, "-m", "traceanalyzer"]
linux = pytest.mark.skipif(sys.platform != "linux", reason="about limits and devices of Linux")


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    made = KinetoTrace()
    for step in range(4):
        made.op(step * 1000, step * 1000 + 900, launch=(step * 1000 - 20, step * 1000 - 10))
    return made.write(tmp_path_factory.mktemp("trace") / "run.json")


def shell(redirected: str, *args: object, **more) -> subprocess.CompletedProcess:
    """The command with its streams as a shell says."""
    command = ["sh", "-c", f'exec "$@" {redirected}', "sh", *PROGRAM, *map(str, args)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, **more)


def one_line(said: str) -> bool:
    return said.startswith("error: ") and said.count("\n") == 1 and "Traceback" not in said


LOST = (">&-", ">/dev/full", ">/dev/full 2>/dev/full", "<&- >&- 2>&-")
MUTE = ("2>&-", "2>/dev/full", "<&-")


@linux
@pytest.mark.parametrize("redirected", [*LOST, *MUTE])
@pytest.mark.parametrize("verb", ["--help", "rules lint TRACE", "doctor TRACE", "analyze absent"])
def test_streams_that_are_closed_or_full(trace, verb, redirected):
    code = {"rules lint TRACE": 1, "analyze absent": 2}.get(verb, 0)
    done = shell(redirected, *(str(trace) if word == "TRACE" else word for word in verb.split()))
    lost = redirected in LOST and verb != "analyze absent"
    assert done.returncode == (2 if lost else code)
    assert "Traceback" not in done.stderr
    if lost:
        assert done.stdout == "" and (done.stderr == "" or "standard output: cannot be written" in done.stderr)
    if verb == "analyze absent" and "2>" not in redirected:
        assert one_line(done.stderr)


@linux
@pytest.mark.parametrize(
    "command",
    [
        *("analyze TRACE", "analyze TRACE -f json", "report TRACE -o -", "export TRACE -o -", "compare TRACE TRACE"),
        *(
            "check TRACE --assert idle_share<=99%",
            "baseline save TRACE -o -",
            "rules list",
            "rules show INP001",
            "rules schema",
        ),
    ],
)
def test_results_that_were_not_written_in_full_are_an_error(trace, command):
    done = shell(">/dev/full", *command.replace("TRACE", str(trace)).split())
    assert done.returncode == 2
    assert done.stderr.count("standard output: cannot be written (No space left on device)") == 1


@linux
def test_a_file_never_stands_in_for_a_closed_stream(trace, tmp_path):
    done = shell(">&- 2>&-", "report", trace, "-o", tmp_path / "out.html", "--also", f"text={tmp_path / 'out.txt'}")
    assert done.returncode == 0
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
    assert "error" not in (tmp_path / "out.txt").read_text()


@linux
def test_wrong_usage_is_wrong_usage_when_nobody_reads_it():
    for redirected in ("2>&-", "2>/dev/full", ">&- 2>&-"):
        assert shell(redirected, "--nope").returncode == 2


def worker(body: str, **more) -> subprocess.Popen:
    """The program, with `body` in place of the commands."""
    lines = ["import ctypes, os, signal, sys, time", "from traceanalyzer.cli import app", "def main():"]
    script = "\n".join([*lines, *(f"    {line}" for line in body.splitlines()), "app.main = main", "app.run()"])
    return subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


@linux
@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("os.abort()", 2, "a library ended the program (SIGABRT)"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 2, "(SIGSEGV)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 2, "the program was killed, most likely because memory ran out"),
        ("os._exit(1)", 2, "a library ended the program (exit code 1)"),
        ("os._exit(0)", 2, "(exit code 0)"),
        ("ctypes.CDLL(None).exit(1)", 2, "(exit code 1)"),
        ("raise MemoryError", 2, "cannot go on (MemoryError"),
        ("raise BaseException('x')", 2, "cannot go on"),
        ("sys.exit('text')", 2, "error: text"),
        ("app._say = None\nraise MemoryError", 2, "a library ended the program (exit code 2)"),
        (
            "from traceanalyzer.cli.process.failures import exit_of\nsys.exit(exit_of(lambda: sys.exit(1)))",
            2,
            "a library ended",
        ),
        (
            "from traceanalyzer.cli.process.failures import exit_of\nfrom traceanalyzer.errors import InputError\n"
            "def stopped():\n    try:\n        sys.exit(143)\n    finally:\n        raise InputError('cannot be written')\n"
            "sys.exit(exit_of(stopped))",
            143,
            "",
        ),
        ("sys.exit(1)", 1, ""),
        ("sys.exit(3)", 3, ""),
        ("raise KeyboardInterrupt", 130, "error: interrupted"),
    ],
)
def test_only_a_code_that_was_said_counts(body, code, says):
    process = worker(body)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "") and says in err and "Traceback" not in err
    assert err.count("\n") == bool(says)


@linux
def test_a_limit_on_cpu_time():
    import resource

    process = worker("while True: pass", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 1)))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "the limit on CPU time was reached" in err and one_line(err)


@linux
@pytest.mark.parametrize("to", ["watcher", "both"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_reach_the_worker_once(number, code, to):
    """It cleans up, undisturbed by the second one that comes from the terminal."""
    # It goes on working: one that has just begun to sleep hears of a signal when it wakes.
    up = "try:\n    os.write(1, b'up\\n')\n    while True: time.sleep(0.01)\n"
    body = up + "finally:\n    time.sleep(0.3); print('clean', flush=True)"
    # Whoever runs the suite behind something else may have it ignore the signal.
    process = worker(body, start_new_session=True, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    assert process.stdout and process.stdout.readline() == "up\n"
    os.killpg(process.pid, number) if to == "both" else process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "clean\n") and "Traceback" not in err


@linux
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_that_came_before_anybody_listened_is_heard(name, code):
    early = (
        f"import os, signal, time; signal.signal(signal.{name}, signal.SIG_DFL); "
        f"signal.pthread_sigmask(signal.SIG_BLOCK, [signal.{name}]); os.kill(os.getpid(), signal.{name})"
    )
    script = f"{early}\nfrom traceanalyzer.cli import app\napp.main = lambda: time.sleep(60)\napp.run()"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == code and "Traceback" not in done.stderr


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_that_comes_where_errors_are_dropped_is_heard(name, code):
    """Python goes on after what is raised in `__del__`, and only tells of it."""
    script = f"""
        import os, signal, sys, time
        from traceanalyzer.cli.process.supervision import supervise
        class Held:
            def __del__(self):
                os.kill(os.getpid(), signal.{name})
                time.sleep(0.1)
        def work():
            try:
                Held()
                time.sleep(30)
            finally:
                print("cleaned up", flush=True)
        begin = time.monotonic()
        code = supervise(work, print)
        assert time.monotonic() - begin < 20
        sys.exit(code)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "cleaned up\n", "")


@linux
def test_who_insists_is_obeyed_and_an_ignored_interrupt_stays_ignored():
    process = worker(
        "while True:\n    try:\n        print('up', flush=True); time.sleep(60)\n    except BaseException: pass"
    )
    assert process.stdout
    process.stdout.readline()
    process.terminate()
    process.stdout.readline()
    time.sleep(1.2)
    process.terminate()
    assert process.wait(60) == 143
    deaf = worker(
        "print('up', flush=True); time.sleep(1); sys.exit(3)",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert deaf.stdout and deaf.stdout.readline() == "up\n"
    deaf.send_signal(signal.SIGINT)
    assert deaf.wait(60) == 3


@linux
def test_a_worker_ends_with_its_watcher():
    process = worker("try:\n    os.write(1, b'up\\n'); time.sleep(60)\nfinally:\n    print('clean', flush=True)")
    assert process.stdout
    process.stdout.readline()
    process.kill()
    assert process.communicate(timeout=30)[0] == "clean\n"  # the pipe is closed: nobody is left


@linux
@pytest.mark.parametrize("megabytes", [60, 200, 399, 450])
def test_too_little_memory_for_the_libraries(trace, megabytes):
    """Below 400 they are not even loaded: they would fail as errors, with exit(1), by aborting, or the interpreter would spin."""
    done = subprocess.run(
        ["sh", "-c", f'ulimit -v {megabytes * 1024}; exec "$@"', "sh", *PROGRAM, "analyze", trace],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr
    assert done.returncode == 0 or done.stderr.splitlines()[-1].startswith("error: ")


@linux
def test_too_few_open_files(trace):
    import resource

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))

    done = shell("", "analyze", trace, preexec_fn=few)
    assert done.returncode == 2 and "Too many open files" in done.stderr and one_line(done.stderr)


@linux
def test_a_folder_that_is_gone(trace, tmp_path):
    gone = tmp_path / "gone"
    command = f"mkdir {gone} && cd {gone} && rmdir {gone} && exec {' '.join(PROGRAM)} analyze {trace}"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(["sh", "-c", command], check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        ["sh", "-c", f"{command} -o x.txt"], check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_no_folder_for_temporary_files(capsysbinary, monkeypatch, trace):
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", none)
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert "set TMPDIR" in refused(capsysbinary, "analyze", trace)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "not enough memory"),
        (RecursionError("maximum recursion depth exceeded"), "nested deeper"),
        (ImportError("libarrow.so: failed to map segment"), "a library cannot be loaded (libarrow.so"),
        (OSError(24, "Too many open files", "a.bin"), "a.bin: Too many open files; let the program"),
        (OSError(28, "No space left on device"), "make room"),
        (BlockingIOError(11, "Resource temporarily unavailable"), "--jobs 1"),
        (RuntimeError("can't start new thread"), "no more threads"),
    ],
)
def test_what_is_the_fault_of_the_machine_is_said_as_that(capsysbinary, monkeypatch, trace, error, says):
    def broken(*_):
        raise error

    monkeypatch.setattr("traceanalyzer.ingest.registry.sources_behind", broken)
    message = refused(capsysbinary, "analyze", trace)
    assert says in message and "please report" not in message


def test_without_shared_memory_one_process_does_the_work(capsysbinary, monkeypatch):
    def none(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(ProcessPoolExecutor, "__init__", none)
    with workers(2) as executor:
        assert executor is None and map_parts(executor, abs, [-1, -2]) == [1, 2]
    assert "Read-only file system" in capsysbinary.readouterr().err.decode()


def test_processes_that_cannot_be_started(monkeypatch):
    def none(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(ProcessPoolExecutor, "submit", none)
    with workers(2) as executor, pytest.raises(WorkerError, match="no more processes"):
        map_parts(executor, abs, [-1, -2])


def test_without_a_second_process_the_first_does_the_work(monkeypatch):
    from traceanalyzer.cli.process import supervision

    def none() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setattr(os, "fork", none)
    try:
        assert supervision.supervise(lambda: 3, print) == 3
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_usage_errors_do_not_reach_the_terminal_raw(capsysbinary):
    code, out, err = run(capsysbinary, "--\x1b[31m\n::error::x")
    assert (code, out) == (2, "") and "\x1b" not in err
    assert not any(line.lstrip().startswith("::") for line in err.splitlines())
