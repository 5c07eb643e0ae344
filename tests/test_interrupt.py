"""An interrupt while workers are at work ends them, whenever it comes and however often it is repeated."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from benchlib import scratch
from benchlib.runner.interrupt import one_interrupt


@pytest.fixture(autouse=True)
def interruptible():
    """As in a terminal and in a kernel, whatever these tests were started from."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)  # a handler in Python runs between two instructions


@one_interrupt()
def interrupt_after(do):
    do()
    interrupt()


def test_the_first_comes_through_and_a_second_does_not_cut_the_end_short():
    ended = []

    def work():
        try:
            interrupt()
        finally:
            interrupt()
            ended.append("the workers")

    with pytest.raises(KeyboardInterrupt), one_interrupt():
        work()
    assert ended == ["the workers"]


def test_a_notebook_shows_a_line_of_it_and_not_where_it_was():
    with pytest.raises(KeyboardInterrupt) as stopped, one_interrupt(), one_interrupt():
        interrupt()
    (line,) = stopped.value._render_traceback_()  # which IPython asks for
    assert "the measurements are kept" in line


def test_afterwards_interrupts_come_as_before():
    with one_interrupt():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_a_worker_that_nobody_has_in_hand_yet_is_ended_and_other_processes_are_not(tmp_path):
    scratch = tmp_path / "benchlib-worker-x"
    scratch.mkdir()
    command, started = [sys.executable, "-c", "import time; time.sleep(60)"], []
    with subprocess.Popen(command, cwd=tmp_path) as other:
        with pytest.raises(KeyboardInterrupt):
            interrupt_after(lambda: started.append(subprocess.Popen(command, cwd=scratch, start_new_session=True)))
        assert started[0].wait(timeout=10) == -signal.SIGKILL
        assert other.poll() is None
        other.kill()


def test_scratch_that_nobody_has_in_hand_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    kernel = scratch.make("kernel")
    with pytest.raises(KeyboardInterrupt):
        interrupt_after(lambda: scratch.make("worker"))
    assert list(tmp_path.iterdir()) == [kernel], "that is whose notebook goes on"
    scratch.remove(kernel)


def test_in_another_thread_nothing_is_touched():
    seen = []

    def work():
        with one_interrupt():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
