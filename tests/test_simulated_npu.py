"""The path to an NPU, on a device that is simulated on host memory (tests/simulated_npu): training, mixed precision,
memory statistics, events, data parallelism over a stand-in for hccl. It proves nothing about Ascend: never run there.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fixed_lab import FixedLab

from benchlib import env_vars, plugins
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import SAME
from benchlib.provenance import fingerprint, npu_smi
from benchlib.runner import availability, recording

pytestmark = pytest.mark.slow

SIMULATED = Path(__file__).parent / "simulated_npu"
ON_CPU = Condition(workload="cnn", batch_size=16, hyperparameters={"image_size": 8})
ON_NPU = ON_CPU.but(device="npu")


@pytest.fixture(scope="module")
def built() -> None:
    """Compile the device before several workers want it."""
    environment = {**os.environ, "PYTHONPATH": str(SIMULATED), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    subprocess.run([sys.executable, "-c", "import torch_npu"], env=environment, check=True)


@pytest.fixture
def lab(tmp_path, monkeypatch, built):
    numbers = dict.fromkeys(("power_w", "temperature_c", "percent", "memory_mib", "memory_total_mib"))
    chip = {"name": "simulated", **numbers}
    monkeypatch.setenv(env_vars.WORKER_PATH, str(SIMULATED))
    monkeypatch.setattr(availability, "why_absent", lambda framework, device, environment="default": None)
    monkeypatch.setattr(npu_smi, "npus", lambda: (chip, chip))
    monkeypatch.setattr(npu_smi.Chips, "read", lambda watch: [chip, chip])
    return FixedLab(outputs=tmp_path / "outputs", patience_s=120)


def test_training_on_it_is_training_on_the_cpu(lab, monkeypatch):
    monkeypatch.setattr(gate, "AT_ONCE", 1)  # the CPU's process has all cores, too, and so its sums the same order
    mixed, half = ON_NPU.but(precision="bf16"), ON_NPU.but(precision="fp16")
    comparison = lab.compare([ON_CPU, ON_NPU, mixed, half], repetitions=1, rounds=2, block_s=0.02)
    assert not len(comparison.failures()), comparison.failures()["failure"].tolist()
    certificate = comparison.certificates[ON_NPU.key]
    assert certificate.verdict == SAME, certificate.checks
    # Its operators are the CPU's, and so is every digit. Dropout is drawn, and compared with what is expected of that.
    its = certificate.reference_digests
    unlike = {name for name, one in certificate.digests.items() if its.get(name) != one}
    assert not [name for name in unlike if not name.startswith("dropout/")]
    assert {"0/outputs:0", "batch/losses"} < its.keys()
    measured = {m.condition: m for m in comparison.measurements}
    here, there = measured[ON_NPU], measured[ON_CPU]
    assert here.settings["device_name"] == "simulated npu on host memory"
    assert here.memory["device_peak"] > here.memory["device_allocated"] > 1, "MiB; of weights, batches and more"
    assert "device_peak" not in there.memory
    for block in here.blocks:
        assert 0.5 * block.wall_s < block.device_s <= block.wall_s, "by events"
    assert all(block.device_s is None for block in there.blocks)
    for one, name in ((mixed, "bfloat16"), (half, "float16")):
        assert measured[one].settings["autocast"] == name
        assert comparison.certificates[one.key].verdict == SAME, comparison.certificates[one.key]
        assert comparison.certificates[one.key].checks[0].worst > 1e-5, "it was computed in fp32"
    assert measured[half].settings["loss_scale"] > 1, "the loss is scaled, and the scale is kept"


def test_the_timer_sees_its_work(lab):
    (check,) = lab.check_timers([ON_NPU])
    assert check.ok, check


@pytest.mark.alone
def test_a_timer_that_does_not_wait_for_it_is_caught(lab, tmp_path, monkeypatch):
    copy = tmp_path / "copy" / "benchlib"
    shutil.copytree(fingerprint.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / "frameworks" / "pytorch.py"
    text = file.read_text(encoding="utf-8")
    assert "accelerator.synchronize()" in text
    file.write_text(text.replace("accelerator.synchronize()", "pass"), encoding="utf-8")
    monkeypatch.setattr(plugins, "OWN", copy)
    monkeypatch.setattr(recording, "require_hashed", lambda worker, known: None)  # the copy would be refused
    (check,) = lab.check_timers([ON_NPU])
    assert not check.failure
    assert not check.ok, "the device works for four times as long as the host"


def test_two_of_it_train_as_one(lab):
    two = ON_NPU.but(world_size=2)
    certificate = lab.certify([two])[two.key]
    assert certificate.verdict == SAME, (certificate.reason, certificate.checks)
