"""Notebooks that measure nothing, some at once: in order, and ended together."""

import logging
import subprocess
import sys
import threading
import time

import pytest

from benchlib.suite import pool


def test_all_are_worked_on_some_at_once_and_come_in_order():
    both = threading.Barrier(pool.AT_ONCE, timeout=20)

    def work(number):
        both.wait()
        time.sleep(0.05 * (number == 0))
        pool.require_going()
        return 10 * number

    assert pool.each(work, range(2 * pool.AT_ONCE)) == [0, 10, 20, 30]
    assert pool.each(work, []) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_one_that_fails_ends_the_kernels_of_the_others_and_no_more_are_begun(error):
    begun, ends = [], []
    kernel_is_up = threading.Event()

    def work(number):
        begun.append(number)
        if number == 0:
            kernel_is_up.wait(20)
            raise error("no more")
        kernel = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", pool.KERNEL_FILE])
        kernel_is_up.set()
        ends.append(kernel.wait(30))
        pool.require_going()

    with pytest.raises(error):
        pool.each(work, range(6))
    assert set(begun) <= {0, 1, 2}, "a third may have been begun between the failure and its being heard of"
    assert ends
    assert all(code == -9 for code in ends)
    pool.require_going()  # it is over
    assert logging.root.manager.disable == logging.NOTSET


def test_a_failure_is_not_heard_of_only_after_those_before_it():
    def work(number):
        if number == 1:
            raise RuntimeError("soon")
        kernel = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", pool.KERNEL_FILE])
        kernel.wait(50)
        pool.require_going()

    began = time.monotonic()
    with pytest.raises(RuntimeError, match="soon"):
        pool.each(work, range(2))
    assert time.monotonic() - began < 20
