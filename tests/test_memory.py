"""What is larger than the machine is refused before anything is made."""

import functools
import itertools
import os
import resource
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import pytest

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.runner import preflight, process_group


@pytest.mark.parametrize(
    ("choices", "named"),
    [
        ({"workload": "bert", "hyperparameters": {"hidden": 10**9}}, "hyperparameters"),
        ({"workload": "conv2d", "hyperparameters": {"kernel": 10**9, "padding": 10**9}}, "hyperparameters"),
        ({"workload": "conv2d", "hyperparameters": {"image_size": 10**9}}, "hyperparameters"),
        ({"workload": "conv2d", "hyperparameters": {"padding": 10**400}}, "hyperparameters"),
        ({"workload": "batchnorm2d", "batch_size": 10**400}, "batch_size"),
        ({"workload": "cnn", "data": "cifar10", "batch_size": 50_000}, "batch_size"),
    ],
)
def test_what_is_larger_than_the_machine_is_refused_and_not_made(choices, named, monkeypatch) -> None:
    monkeypatch.setattr(preflight.psutil, "virtual_memory", lambda: SimpleNamespace(total=8 * 2**30))
    condition = Condition(**choices)
    tracemalloc.start()
    assert preflight.too_large(condition) == named
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


@pytest.mark.parametrize("workload", workloads.names())
def test_usual_sizes_fit(workload: str) -> None:
    assert not preflight.too_large(Condition(workload=workload))


def test_the_taps_of_a_convolution_are_those_counted_one_by_one_whatever_its_size() -> None:
    for size, kernel, padding, stride in itertools.product(range(1, 8), range(1, 6), range(4), range(1, 4)):
        starts = range(-padding, size + padding - kernel + 1, stride)
        counted = sum(0 <= start + tap < size for start in starts for tap in range(kernel))
        assert workloads.taps(size, kernel, padding, stride) == counted
    assert workloads.taps(10**9, 3, 1) == 3 * 10**9 - 2


@pytest.mark.parametrize("address_space_mib", range(60, 130, 6))
def test_a_worker_without_the_memory_to_begin_ends_and_its_parent_need_not_wait(address_space_mib: int) -> None:
    """Where OpenBLAS could begin and not go on, an interpreter that ends in the usual way waits for its threads."""
    limit = address_space_mib * 2**20
    command = [sys.executable, process_group.WORKER, "0", str(os.getpid())]
    limited = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
    ended = subprocess.run(command, preexec_fn=limited, capture_output=True, timeout=20, check=False)
    assert ended.returncode == 1
    assert ended.stderr
