"""Copies of a process share its work: each item is done, whatever becomes of the copies."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from traceanalyzer import forks
from traceanalyzer.forks import AT_REST, beside, in_forks, may_fork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")
HERE = os.getpid()


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a test runner hold nothing that the functions here need."""
    monkeypatch.setattr(forks, "may_fork", lambda: True)


def here() -> bool:
    return os.getpid() == HERE


def test_two_processes_work_at_once() -> None:
    """Each of two items waits until the other has begun."""
    pipes = [os.pipe(), os.pipe()]

    def meet(item: int) -> int:
        os.write(pipes[item][1], b".")
        heard, _, _ = select.select([pipes[1 - item][0]], [], [], 60)
        return os.getpid() if heard else 0

    done: list[None] = []
    found = in_forks(meet, [0, 1], 2, lambda: done.append(None))
    assert HERE in found and 0 not in found and len(set(found)) == 2 and len(done) == 2


@pytest.mark.parametrize("processes", [1, 2, 3, 99])
@pytest.mark.parametrize("count", [0, 1, 2, 7, forks.MOST, forks.MOST + 1])
def test_results_are_in_order(processes: int, count: int) -> None:
    done: list[None] = []
    assert in_forks(lambda item: item * item, range(count), min(processes, 9), lambda: done.append(None)) == [
        item * item for item in range(count)
    ]
    assert len(done) == count


def test_a_large_result_arrives() -> None:
    assert in_forks(lambda item: bytes(3 << 20) if not here() else b"", [0] * 20, 2)


def slow_here() -> None:
    """So that the others come to some items."""
    if here():
        time.sleep(0.02)


@pytest.mark.parametrize("how", ["killed", "fails", "cannot be sent"])
def test_what_a_copy_does_not_bring_is_done_here(how: str) -> None:
    def work(item: int) -> object:
        slow_here()
        if not here():
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "fails":
                raise MemoryError
        return item if here() else lambda: item

    done: list[None] = []
    assert in_forks(work, range(20), 3, lambda: done.append(None)) == list(range(20))
    assert len(done) == 20


def test_what_copies_do_is_told_meanwhile() -> None:
    """And not only when they bring it: here the copy's first item, when this process has done its own first."""
    (second_begun, begin_second), (here_again, be_here_again) = os.pipe(), os.pipe()
    done: list[None] = []
    own: list[int] = []

    def work(item: int) -> None:
        own.append(len(done))
        if here():
            if len(own) == 1:
                os.read(second_begun, 1)
            if len(own) == 2:
                os.write(be_here_again, b".")
        else:
            if len(own) == 2:
                os.write(begin_second, b".")
            if len(own) == 3:
                os.read(here_again, 1)

    in_forks(work, range(9), 2, lambda: done.append(None))
    assert own[1] >= 2 and len(done) == 9


def test_an_error_arrives() -> None:
    def work(item: int) -> int:
        slow_here()
        if item == 11:
            raise ValueError("item 11")
        return item

    with pytest.raises(ValueError, match="item 11"):
        in_forks(work, range(20), 2)


@pytest.mark.parametrize("what", ["fork", "pipe"])
def test_without_a_copy_to_have(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    left = {"fork": 1, "pipe": 3}[what]  # two pipes are for the work, and there is one copy
    had = getattr(os, what)

    def refuse() -> object:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(24, "Too many open files")
        return had()

    monkeypatch.setattr(os, what, refuse)
    assert in_forks(str, range(5), 4) == ["0", "1", "2", "3", "4"]
    assert left < 0


def test_an_interrupt_ends_the_copies() -> None:
    hear, say = os.pipe()

    def work(item: int) -> int:
        if here():
            copy = int(os.read(hear, 20))
            assert Path(f"/proc/{copy}").exists()
            raise KeyboardInterrupt(copy)
        os.write(say, str(os.getpid()).encode())
        time.sleep(60)
        return item

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as caught:
        in_forks(work, range(2), 2)
    assert not Path(f"/proc/{caught.value.args[0]}").exists() and time.monotonic() - begin < 50


@pytest.mark.parametrize("result", ["None", "bytes(1 << 20)"])
@pytest.mark.parametrize("processes", [2, 4])
def test_copies_end_with_their_original(processes: int, result: str) -> None:
    """One that is killed can stop nobody: the copies see that it is gone, also those that have much to say."""
    script = f"""
        import os, signal, time
        from traceanalyzer.forks import in_forks
        original = os.getpid()
        def work(item):
            if os.getpid() == original:
                time.sleep(0.5)
                os.kill(original, signal.SIGKILL)
            os.write(1, b".")
            time.sleep(0.1)
            return {result}
        in_forks(work, range(1000), {processes})
    """
    # The pipe is at its end when the last of them has ended.
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == -signal.SIGKILL and 0 < len(ended.stdout) < 100


def test_work_is_done_beside() -> None:
    """By a copy, which waits here for what this process does meanwhile."""
    hear, say = os.pipe()
    with beside(lambda: (os.getpid(), os.read(hear, 1))) as result:
        os.write(say, b".")
        who, heard = result()
        assert who != HERE and heard == b"." and result() is result()


@pytest.mark.parametrize("how", ["killed", "fails", "cannot be sent", "not to have", "not allowed"])
def test_work_that_is_not_brought_is_done_when_it_is_asked_for(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> object:
        if not here():
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "fails":
                raise MemoryError
        done.append(how)
        return 7 if here() else lambda: 7

    def refuse() -> int:
        raise OSError(11, "Resource temporarily unavailable")

    done: list[str] = []
    if how == "not to have":
        monkeypatch.setattr(os, "fork", refuse)
    if how == "not allowed":
        monkeypatch.setattr(forks, "may_fork", lambda: False)
    with beside(work) as result:
        assert not done
        assert result() == result() == 7 and done == [how]
    with beside(work):
        pass
    assert done == [how]


def test_an_error_of_work_beside_arrives_where_it_is_asked_for() -> None:
    def work() -> int:
        raise ValueError("beside")

    with beside(work) as result, pytest.raises(ValueError, match="beside"):
        result()


def test_work_that_nobody_asks_for_ends() -> None:
    hear, say = os.pipe()
    begin = time.monotonic()
    with beside(lambda: os.write(say, str(os.getpid()).encode()) and time.sleep(60)):
        copy = int(os.read(hear, 20))
        assert Path(f"/proc/{copy}").exists()
    assert not Path(f"/proc/{copy}").exists() and time.monotonic() - begin < 50


@pytest.mark.parametrize("call", ["in_forks(str, [1, 2], 2)", "beside(bool).__enter__()"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_that_comes_while_a_copy_is_made_is_heard(name: str, call: str) -> None:
    """What is raised by what Python runs around a fork is told of and lost."""
    script = f"""
        import os, signal, sys
        from traceanalyzer.forks import beside, in_forks
        signal.signal(signal.{name}, lambda *_: sys.exit(7))
        os.register_at_fork(after_in_parent=lambda: (os.kill(os.getpid(), signal.{name}), str()))
        {call}
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, timeout=50, check=False
    )
    assert (ended.returncode, ended.stderr) == (7, b"")


def test_work_beside_ends_with_its_original() -> None:
    script = """
        import os, signal, time
        from traceanalyzer.forks import beside
        with beside(lambda: (os.write(1, b"."), time.sleep(60))):
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, timeout=50, check=False
    )
    assert ended.returncode == -signal.SIGKILL and ended.stdout == b"."


def test_only_where_no_other_thread_is_awake() -> None:
    """Of the process itself: what one of its threads holds, a copy would wait for without end."""
    script = """
        import threading
        from traceanalyzer.forks import AT_REST, may_fork
        assert may_fork()
        gate = threading.Event()
        threading.Thread(target=gate.wait, name=AT_REST, daemon=True).start()
        assert may_fork()
        threading.Thread(target=gate.wait, daemon=True).start()
        assert not may_fork()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=60)
    awake = threading.Thread(target=time.sleep, args=(1,), name=AT_REST + " not")
    awake.start()
    assert not may_fork()
    awake.join()
