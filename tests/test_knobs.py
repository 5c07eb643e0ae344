"""No knob is silent: what a worker's environment holds is what the lane declares."""

from pathlib import Path

import pytest

from benchlib import knobs
from benchlib.condition import Condition
from benchlib.errors import BenchlibError

TORCH = Condition(workload="cnn")
MINDSPORE = Condition(workload="cnn", framework="mindspore", mode="graph")


def test_the_default_lane_sets_what_both_need_and_the_tuned_lane_what_is_declared():
    printed = {"PYTHONUNBUFFERED"}
    always = printed | {"TORCHINDUCTOR_CACHE_DIR", "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    assert knobs.of(TORCH).keys() == always, "what makes processes comparable is in both lanes"
    assert knobs.of(MINDSPORE).keys() == printed
    malloc = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"}
    assert knobs.of(TORCH.but(lane="tuned")).keys() == malloc | always | {"channels_last"}
    assert knobs.of(MINDSPORE.but(lane="tuned")).keys() == malloc | printed | {"ONEDNN_MAX_CPU_ISA"}
    on_cuda = {"cudnn_benchmark", "channels_last", "float32_matmul_precision"}
    assert knobs.of(TORCH.but(lane="tuned", device="cuda")).keys() == always | {"CUDA_DEVICE_ORDER"} | on_cuda
    linear = Condition(workload="linear", lane="tuned", device="cuda")
    assert on_cuda & knobs.of(linear).keys() == {"float32_matmul_precision"}, "there is nothing to convolve"
    linear = Condition(workload="linear", framework="mindspore", lane="tuned")
    assert knobs.of(linear).keys() == malloc | printed, "the knob for convolutions slows matrix products down"


def test_a_knob_can_be_left_out_to_see_what_it_does():
    tuned = MINDSPORE.but(lane="tuned")
    without = tuned.but(without=["ONEDNN_MAX_CPU_ISA"])
    assert knobs.of(tuned).keys() - knobs.of(without).keys() == {"ONEDNN_MAX_CPU_ISA"}
    assert without.key != tuned.key
    assert "without ONEDNN_MAX_CPU_ISA" in str(without)
    with pytest.raises(BenchlibError, match="unknown knob of this condition 'ONEDNN_MAX_CPU'"):
        knobs.of(tuned.but(without=["ONEDNN_MAX_CPU"]))


def test_what_a_session_sets_is_no_environment_variable():
    tuned = TORCH.but(lane="tuned", device="cuda")
    on_cuda = {"cudnn_benchmark": "on", "channels_last": "on", "float32_matmul_precision": "high"}
    assert knobs.for_session(tuned) == on_cuda
    assert not on_cuda.keys() & knobs.environment(tuned, Path("/scratch"), {}).keys()
    assert knobs.for_session(tuned.but(without=["channels_last"])).keys() == on_cuda.keys() - {"channels_last"}
    assert knobs.for_session(tuned.but(lane="default")) == {}


def test_a_users_shell_cannot_change_a_lane():
    shell = {
        "PATH": "/bin",
        "OMP_NUM_THREADS": "7",
        "MALLOC_ARENA_MAX": "1",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_NUM_THREADS": "3",
        "PYTHONMALLOC": "debug",
        "PYTHONUNBUFFERED": "",
    }
    scratch = Path("/scratch")
    assert knobs.environment(MINDSPORE, scratch, shell) == {"PATH": "/bin", "PYTHONUNBUFFERED": "1"}
    assert knobs.environment(MINDSPORE.but(lane="tuned"), scratch, shell)["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert knobs.environment(TORCH.but(threads=1), scratch, shell)["OMP_NUM_THREADS"] == "1"
    assert knobs.environment(TORCH, scratch, shell)["TORCHINDUCTOR_CACHE_DIR"] == "/scratch/inductor"


def test_the_ledger_lists_every_knob_that_is_set_with_its_reason():
    conditions = [TORCH.but(lane="tuned", threads=1), MINDSPORE.but(lane="tuned"), MINDSPORE]
    ledger = knobs.ledger(conditions)
    listed = {(row.framework, row.lane, row.name, row.value) for row in ledger.itertuples()}
    assert listed == {(c.framework, c.lane, *knob) for c in conditions for knob in knobs.of(c).items()}
    assert ledger["reason"].str.len().min() > 20
    assert ledger["source"].str.len().min() > 5
