"""What cannot fit into memory is refused with the figures, before anything is made."""

from __future__ import annotations

import functools
import itertools
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.data import prepare
from benchlib.data.weights import draw
from benchlib.errors import BenchlibError
from benchlib.measure import memory, nvml

GIB = 2.0**30
OF_HOST = memory._of_host


@pytest.fixture(autouse=True)
def eight_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_of_host", lambda: 8 * GIB)


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ({"workload": "bert", "hyperparameters": {"hidden": 10**9}}, "its weights, with their gradients and .* TiB"),
        ({"workload": "conv2d", "hyperparameters": {"out_channels": 10**12}}, "its weights: at least 4,198 TiB"),
        (
            {"workload": "conv2d", "hyperparameters": {"kernel": 10**9, "padding": 10**9}},
            "its weights: at least .* TiB",
        ),
        (
            {"workload": "conv2d", "hyperparameters": {"image_size": 10**9}},
            "a step with a batch of 32: at least .* TiB",
        ),
        ({"workload": "conv2d", "hyperparameters": {"padding": 10**400}}, ".* at least more bytes than can be counted"),
        ({"workload": "batchnorm2d", "batch_size": 10**30}, "a step with a batch of 10{30}: at least .* TiB"),
        ({"workload": "conv2d", "batch_size": 10**400}, ".* at least more bytes than can be counted"),
        ({"workload": "resnet50_inference", "hyperparameters": {"image_size": 10**9}}, "a step with a batch of 32"),
        ({"workload": "bert", "batch_size": 10**9}, "a step with a batch of 1000000000: at least 1,364 TiB"),
        (
            {"workload": "cnn", "data": "cifar10", "batch_size": 50_000},
            "a step with a batch of 50000: at least 23.7 GiB",
        ),
        ({"workload": "gcn", "hyperparameters": {"hidden": 2 * 10**6}}, "a step with a batch of 1: at least 9.69 GiB"),
        ({"workload": "seq2seq", "hyperparameters": {"length": 10**7}}, "a step with a batch of 64"),
        (
            {"workload": "gru", "data": "imdb", "batch_size": 1, "hyperparameters": {"length": 10**5}},
            "its prepared data: at least 9.31 GiB",
        ),
    ],
    ids=lambda value: value["workload"] if isinstance(value, dict) else "",
)
def test_what_cannot_fit_is_refused_with_the_figures_and_nothing_large_is_made(choices: dict, told: str) -> None:
    condition = Condition(**choices)
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(BenchlibError, match=f"memory: {told}.*, but this machine has 8 GiB; ask for less"):
        memory.require(condition)
    assert time.process_time() - started < 2
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


@pytest.mark.parametrize("workload", workloads.names())
def test_what_is_counted_is_needed_at_least_and_usual_sizes_fit(workload: str) -> None:
    condition = Condition(workload=workload)
    memory.require(condition)
    declared = workloads.load(workload)
    arrays = draw(declared, condition.hyperparameters, 0)
    assert memory.weights_bytes(condition) >= sum(array.nbytes for array in arrays.values())
    assert memory.batch_bytes(condition) > 0


@pytest.mark.parametrize("workload", ["conv2d", "linear", "batchnorm2d", "copy", "resnet50_inference"])
def test_an_operators_batch_is_as_large_as_is_counted(workload: str, tmp_path) -> None:
    condition = Condition(workload=workload, batch_size=4)
    folder = prepare.prepare(condition, 0, tmp_path)
    written = sum(path.stat().st_size for path in folder.glob("*.npy"))
    batches = prepare.OPERATOR_BATCHES
    # A copy's gradient is never asked for, and is one number.
    assert written == pytest.approx(
        batches * memory.batch_bytes(condition) / (2 if workload == "copy" else 1), rel=0.01
    )
    assert prepare.least_bytes(condition) == pytest.approx(2 * batches * memory.batch_bytes(condition))


def test_training_holds_gradients_and_the_optimizers_state() -> None:
    cnn, bert = (Condition(workload=name) for name in ("cnn", "bert"))
    for condition, copies in ((cnn, 3), (bert, 4)):  # weights, gradients, momentum; Adam has two of them
        arrays = draw(workloads.load(condition.workload), condition.hyperparameters, 0)
        assert memory.weights_bytes(condition) == copies * sum(array.nbytes for array in arrays.values())
    half = memory.weights_bytes(cnn.but(precision="bf16"))
    assert half == memory.weights_bytes(cnn) / 2, "some mixed precisions hold nothing in four bytes"


def test_a_device_has_a_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "gpus", lambda: [{"name": "small", "memory_mib": 2048.0}])
    large = Condition(workload="bert", batch_size=2000)
    memory.require(large)
    with pytest.raises(BenchlibError, match=r"a step with a batch of 2000: .* its device 'cuda' has 2 GiB"):
        memory.require(large.but(device="cuda"))
    monkeypatch.setattr(nvml, "gpus", lambda: [{"name": "of the machine's memory", "memory_mib": None}])
    memory.require(large.but(device="cuda"))


def test_processes_that_are_alive_at_once_have_to_fit_beside_each_other() -> None:
    one = Condition(workload="linear", hyperparameters={"in_features": 2**14, "out_features": 2**14})  # 2 GiB each
    memory.require_together([one, one.but(mode="graph")])
    with pytest.raises(BenchlibError, match=r"memory: 5 processes at once, of linear .*: at least 10 GiB, but this"):
        memory.require_together([one, *(one.but(batch_size=size) for size in (1, 2, 3))])
    group = [Condition(workload="cnn", threads=1, world_size=2), Condition(workload="cnn", threads=2)]
    memory.require_together(group)


def test_the_taps_of_a_convolution_are_those_counted_one_by_one_whatever_its_size() -> None:
    for size, kernel, padding, stride in itertools.product(range(1, 8), range(1, 6), range(4), range(1, 4)):
        starts = range(-padding, size + padding - kernel + 1, stride)
        counted = sum(0 <= start + tap < size for start in starts for tap in range(kernel))
        assert workloads.taps(size, kernel, padding, stride) == counted
    assert workloads.taps(10**9, 3, 1) == 3 * 10**9 - 2


@pytest.mark.parametrize(
    ("groups", "limits", "least"),
    [
        ("0::/\n", {"memory.max": "2147483648\n"}, [2 * GIB]),
        ("0::/\n", {"memory.max": "max\n"}, []),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "1073741824\n", "memory.max": "max\n"}, [GIB]),
        (
            "5:cpu,cpuacct:/c\n4:memory:/of/the/host\n0::/\n",
            {"memory/memory.limit_in_bytes": "1073741824\n", "c/memory.max": "1\n"},
            [GIB],
        ),
        ("0::/elsewhere\n", {}, []),
    ],
)
def test_limits_of_control_groups_are_read(control_groups: Callable, groups: str, limits: dict, least: list) -> None:
    control_groups(groups, limits)
    assert list(memory._of_control_groups()) == least
    control_groups(None, {})
    assert list(memory._of_control_groups()) == []


def test_the_least_limit_is_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    total, groups, address_space = 16 * GIB, [], memory.resource.RLIM_INFINITY
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(total=total))
    monkeypatch.setattr(memory, "_of_control_groups", lambda: groups)
    monkeypatch.setattr(memory.resource, "getrlimit", lambda _: (address_space, address_space))
    assert OF_HOST.__wrapped__() == 16 * GIB
    groups = [int(9 * GIB)]
    assert OF_HOST.__wrapped__() == 9 * GIB
    address_space = int(4 * GIB)
    assert OF_HOST.__wrapped__() == 4 * GIB


@pytest.mark.parametrize("address_space_mib", range(60, 130, 6))
def test_a_worker_without_the_memory_to_begin_ends_and_its_parent_need_not_wait(address_space_mib: int) -> None:
    """Where OpenBLAS could begin and not go on, an interpreter that ends in the usual way waits for its threads."""
    limit = address_space_mib * 2**20
    command = [sys.executable, "-m", "benchlib.worker", "0", "1"]
    limited = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
    ended = subprocess.run(command, preexec_fn=limited, capture_output=True, timeout=20, check=False)
    assert ended.returncode == 1
    assert ended.stderr
