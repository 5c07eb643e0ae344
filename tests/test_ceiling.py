"""The machine's limits, and the share of them that a step reaches."""

import math
from contextlib import contextmanager

import pytest

from benchlib import lab as lab_module
from benchlib import workloads
from benchlib.condition import Condition
from benchlib.lab import Lab, Measures
from benchlib.runner import roofline
from benchlib.runner.processes import WorkerFailed, WorkerProcess
from benchlib.runner.roofline import Ceiling
from benchlib.study import ceiling_text, failures_beside

LIMITS = Ceiling(device="cpu", precision="fp32", multiply_adds_per_s=1e9, bytes_per_s=1e9)


@pytest.fixture
def small(monkeypatch):
    """A product, a convolution and a copy in each framework, small ones, for a moment."""
    monkeypatch.setattr(roofline, "SIZES", (256,))
    monkeypatch.setattr(roofline, "COPIED", (2**14,))
    monkeypatch.setattr(roofline, "CHANNELS", (1,))
    monkeypatch.setattr(roofline, "BLOCK_S", 0.01)
    monkeypatch.setattr(roofline, "WARM_UP_LIMIT_S", 0.1)


def test_a_step_cannot_be_faster_than_its_products_and_copies():
    square = {"in_features": 1000, "out_features": 1000, "passes": "forward"}
    linear = Condition(workload="linear", batch_size=1000, hyperparameters=square)
    assert LIMITS.roof_s(linear) == pytest.approx(1.0), "10**9 multiply-adds"
    both = linear.but(hyperparameters={**square, "passes": "forward+backward"})
    assert LIMITS.roof_s(both) == pytest.approx(3.0)
    copy = Condition(workload="copy", batch_size=2, hyperparameters={"elements": 10**6})
    assert LIMITS.roof_s(copy) == pytest.approx(0.016), "read and written, 4 bytes each"


def test_the_work_of_convolutions_counts_what_is_not_padding():
    """For images of 8x8, halved once: in x out x (3 x pixels - 2, along each side), and in x out."""
    cnn, conv2d = workloads.load("cnn"), workloads.load("conv2d")
    convolutions = (3 * 50 + 50 * 50) * 22**2 + (50 * 100 + 100 * 100) * 10**2
    assert cnn.work(cnn.values({"image_size": 8})).multiply_adds == convolutions + 400 * 512 + 512 * 10
    values = conv2d.values({"in_channels": 2, "out_channels": 3, "kernel": 3, "image_size": 4})
    assert conv2d.work(values).multiply_adds == 3 * 2 * 10**2


def test_limits_that_could_not_be_measured_are_told_and_cost_nothing_else(tmp_path, monkeypatch, small):
    def fail(self, *args, **kwargs):
        raise WorkerFailed("worker died of this test")

    monkeypatch.setattr(WorkerProcess, "finish_open", fail)
    limits = Lab(outputs=tmp_path).ceiling("cpu")
    assert len(limits.failures) == 4, "products and convolutions of each framework, whose knobs differ"
    assert math.isnan(limits.roof_s(Condition(workload="cnn")))
    assert "could not be measured." in ceiling_text(limits)
    assert failures_beside(limits)["crashed"].tolist() == [True] * 4


@pytest.mark.parametrize("crashed", [True, False])
def test_limits_that_crashed_are_shown_as_such_and_measured_again_by_another_lab(tmp_path, monkeypatch, crashed):
    measured, failed = [], LIMITS.model_copy(update={"failures": ["worker died of this test"], "crashed": crashed})
    monkeypatch.setattr(roofline, "measure", lambda device, *_: measured.append(device) or failed)
    for _ in range(2):
        lab = Lab(outputs=tmp_path)
        limits = lab.ceiling("cpu")
        assert lab.ceiling("cpu") == Lab(outputs=tmp_path, measures=Measures.NOTHING).ceiling("cpu") == limits
        row = failures_beside(limits).iloc[0]
        assert (row["failure"], row["crashed"]) == ("worker died of this test", crashed)
    assert len(measured) == 1 + crashed


def test_a_fault_of_the_parent_is_no_workers_failure(tmp_path, monkeypatch, small):
    def fail(*arguments, **details):
        raise AttributeError("a fault of our own")

    monkeypatch.setattr(roofline, "conditions", lambda *asked: [Condition(workload="linear", batch_size=8)])
    monkeypatch.setattr(roofline.recording, "require_hashed", fail)
    with pytest.raises(AttributeError, match="a fault of our own"):
        Lab(outputs=tmp_path).ceiling("cpu")


def test_a_limit_is_measured_once(tmp_path, monkeypatch, small):
    lab = Lab(outputs=tmp_path)
    limits = lab.ceiling("cpu")
    assert limits.failures == []
    assert 1e6 < limits.multiply_adds_per_s < 1e14
    assert 1e6 < limits.bytes_per_s < 1e14
    assert "linear" in limits.best["multiply_adds"]
    assert "copy" in limits.best["least_bytes"]
    monkeypatch.setattr(roofline, "measure", pytest.fail)
    assert lab.ceiling("cpu") == limits
    assert math.isfinite(limits.roof_s(Condition(workload="cnn")))


@pytest.mark.usefixtures("small")
def test_a_limit_that_another_process_measured_while_this_one_waited_is_not_measured_again(tmp_path, monkeypatch):
    waiting, measured = [], []

    @contextmanager
    def turn(tell):
        if not waiting:
            waiting.append(tell)
            Lab(outputs=tmp_path).ceiling("cpu")
        yield 0.0

    monkeypatch.setattr(lab_module, "hold_machine", turn)
    monkeypatch.setattr(roofline, "measure", lambda device, *_: measured.append(device) or LIMITS)
    assert Lab(outputs=tmp_path).ceiling("cpu") == LIMITS
    assert measured == ["cpu"]
