"""No knob is silent: what a worker's environment holds is what the lane declares."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchlib import env_vars, reprs, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.provenance import knobs

TORCH = Condition(workload="cnn")
MINDSPORE = Condition(workload="cnn", framework="mindspore", mode="graph")


def test_the_default_lane_sets_what_both_need_and_the_tuned_lane_what_is_declared():
    printed = {"PYTHONUNBUFFERED", "HOME"}
    always = printed | {"TORCHINDUCTOR_CACHE_DIR", "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    assert knobs.find(TORCH).keys() == always, "what makes processes comparable is in both lanes"
    assert knobs.find(MINDSPORE).keys() == printed
    malloc = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"}
    assert knobs.find(TORCH.but(lane="tuned")).keys() == malloc | always | {"channels_last"}
    assert knobs.find(MINDSPORE.but(lane="tuned")).keys() == malloc | printed | {"ONEDNN_MAX_CPU_ISA"}
    eager = knobs.find(MINDSPORE.but(lane="tuned", mode="eager"))
    assert eager.keys() == malloc | printed | {"ONEDNN_MAX_CPU_ISA", "launch_blocking"}
    assert "launch_blocking" not in knobs.find(MINDSPORE.but(lane="tuned", mode="eager", device="npu"))
    on_cuda = {"cudnn_benchmark", "channels_last", "float32_matmul_precision"}
    assert knobs.find(TORCH.but(lane="tuned", device="cuda")).keys() == always | {"CUDA_DEVICE_ORDER"} | on_cuda
    linear = Condition(workload="linear", lane="tuned", device="cuda")
    assert on_cuda & knobs.find(linear).keys() == {"float32_matmul_precision"}, "there is nothing to convolve"
    linear = Condition(workload="linear", framework="mindspore", mode="graph", lane="tuned")
    assert knobs.find(linear).keys() == malloc | printed, "the knob for convolutions slows matrix products down"


def test_a_knob_can_be_left_out_to_see_what_it_does():
    tuned = MINDSPORE.but(lane="tuned")
    without = tuned.but(without=["ONEDNN_MAX_CPU_ISA"])
    assert knobs.find(tuned).keys() - knobs.find(without).keys() == {"ONEDNN_MAX_CPU_ISA"}
    assert without.key != tuned.key
    assert "without ONEDNN_MAX_CPU_ISA" in str(without)
    with pytest.raises(BenchlibError, match="unknown knob of this condition 'ONEDNN_MAX_CPU'"):
        knobs.find(tuned.but(without=["ONEDNN_MAX_CPU"]))


def test_what_a_session_sets_is_no_environment_variable():
    tuned = TORCH.but(lane="tuned", device="cuda")
    on_cuda = {"cudnn_benchmark": "on", "channels_last": "on", "float32_matmul_precision": "high"}
    assert knobs.for_session(tuned) == on_cuda
    assert not on_cuda.keys() & knobs.environment(tuned, Path("/scratch"), {}).keys()
    assert knobs.for_session(tuned.but(without=["channels_last"])).keys() == on_cuda.keys() - {"channels_last"}
    assert knobs.for_session(tuned.but(lane="default")) == {}
    assert knobs.for_session(MINDSPORE.but(lane="tuned", mode="eager")) == {"launch_blocking": "on"}


def test_a_users_shell_cannot_change_a_lane():
    listed = {"PATH": "/bin", "LANG": "C.UTF-8", "LC_ALL": "C", "LD_LIBRARY_PATH": "/lib", "CUDA_VISIBLE_DEVICES": "1"}
    others = "OMP_NUM_THREADS MALLOC_ARENA_MAX ONEDNN_MAX_CPU_ISA MKL_NUM_THREADS PYTHONMALLOC PYTHONUNBUFFERED "
    others += "PYTHONPATH XLA_FLAGS JAX_ENABLE_X64 TF_ENABLE_ONEDNN_OPTS KERAS_BACKEND NPROC ASCEND_LAUNCH_BLOCKING "
    others += "CPLUS_INCLUDE_PATH LC_NUMERIC"
    unnamed = {"A_KNOB_OF_TOMORROW", "A_TOKEN", "LC_TIME"}
    shell = {**listed, "HOME": "/home/user", **dict.fromkeys([*others.split(), *unnamed], "7")}
    scratch = Path("/scratch")
    given = knobs.environment(MINDSPORE, scratch, shell)
    of_its_own = {"HOME": "/scratch", "PYTHONUSERBASE": "/home/user/.local", "PYTHONUNBUFFERED": "1"}
    assert given == {**listed, **of_its_own}
    lost = shell.keys() - given.keys() - unnamed
    assert env_vars.omissions(given, shell) == sorted(lost), "what could matter is named"
    assert knobs.environment(MINDSPORE.but(lane="tuned"), scratch, shell)["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert knobs.environment(TORCH.but(threads=1), scratch, shell)["OMP_NUM_THREADS"] == "1"
    assert knobs.environment(TORCH, scratch, shell)["TORCHINDUCTOR_CACHE_DIR"] == "/scratch/inductor"


def test_where_packages_of_the_users_lie_reaches_a_worker_whose_home_is_another():
    home = {"HOME": "/home/user"}
    assert env_vars.for_worker(home) == {"PYTHONUSERBASE": "/home/user/.local"}
    elsewhere = {"PYTHONUSERBASE": "/opt/packages", "PYTHONNOUSERSITE": "1"}
    assert env_vars.for_worker({**home, **elsewhere}) == elsewhere
    assert Path(env_vars.for_worker({})["PYTHONUSERBASE"]) == Path("~/.local").expanduser(), "as Python finds it itself"


def test_of_pythonpath_a_worker_gets_what_was_declared_for_it_and_canns_own():
    cann = {"ASCEND_TOOLKIT_HOME": "/opt/cann", "PYTHONPATH": "/opt/cann/python/site-packages:/opt/cann/tbe"}
    assert env_vars.for_worker(cann)["PYTHONPATH"] == cann["PYTHONPATH"]
    assert env_vars.omissions(env_vars.for_worker(cann), cann) == []
    users = {**cann, "PYTHONPATH": f"/home/user:{cann['PYTHONPATH']}:/opt/cannot", "BENCHLIB_WORKER_PATH": "/mine:/too"}
    given = env_vars.for_worker(users)
    assert given["PYTHONPATH"] == f"/mine:/too:{cann['PYTHONPATH']}"
    assert env_vars.omissions(given, users) == ["PYTHONPATH"]
    assert env_vars.for_worker({"BENCHLIB_WORKER_PATH": "mine"})["PYTHONPATH"] == str(Path("mine").absolute())


def test_what_the_user_has_workers_import_is_a_knob(monkeypatch):
    assert env_vars.WORKER_PATH not in knobs.find(TORCH)
    monkeypatch.setenv(env_vars.WORKER_PATH, "/mine")
    assert knobs.find(TORCH)[env_vars.WORKER_PATH] == "/mine", "so it is in the record, the ledger and the key"
    monkeypatch.setenv(env_vars.WORKER_PATH, "mine:/too")
    assert knobs.find(TORCH)[env_vars.WORKER_PATH] == f"{Path('mine').absolute()}:/too", "wherever it is asked from"


def test_the_gate_sets_what_is_exact_on_a_gpu_and_lets_two_processes_share_the_cores():
    assert knobs.of_gate(TORCH) == knobs.of_gate(MINDSPORE) == {"OMP_WAIT_POLICY": "passive"}
    assert knobs.of_gate(TORCH.but(device="cuda")) == {"NVIDIA_TF32_OVERRIDE": "0", "OMP_WAIT_POLICY": "passive"}


def process(condition, **extra):
    return SimpleNamespace(condition=condition, knobs={**knobs.find(condition), **extra}, left_out=["NPROC"])


def test_a_knob_of_convolutions_follows_the_weights_whatever_the_workload_declares(monkeypatch):
    linear, tuned = workloads.load("linear"), Condition(workload="linear", lane="tuned")
    assert "channels_last" not in knobs.find(tuned)
    kernel = replace(linear, weights=lambda values: {"kernel": workloads.Weight((2, 2, 3, 3), "zeros")})
    monkeypatch.setattr(workloads, "load", lambda name: kernel)
    assert "channels_last" in knobs.find(tuned)


def test_the_ledger_lists_every_knob_that_was_set_with_its_reason():
    of_gate = {"OMP_WAIT_POLICY": "passive", "NO_LONGER_DECLARED": "1"}
    processes = [process(TORCH.but(lane="tuned", threads=1), **of_gate), process(MINDSPORE.but(lane="tuned"))]
    processes.append(SimpleNamespace(condition=MINDSPORE, knobs={"PYTHONUNBUFFERED": "0"}, left_out=["XLA_FLAGS"]))
    ledger = knobs.Ledger(processes).frame
    listed = {(row.framework, row.lane, row.name, row.value) for row in ledger.itertuples()}
    assert listed == {(p.condition.framework, p.condition.lane, *knob) for p in processes for knob in p.knobs.items()}
    assert knobs.Ledger(processes).omissions == ["NPROC", "XLA_FLAGS"]
    assert "and left out of the workers" in (shown := reprs.html(knobs.Ledger(processes)))
    assert "NPROC, XLA_FLAGS." in shown
    assert ledger["reason"].str.len().min() > 20
    assert ledger["source"].str.len().min() > 5


def test_a_framework_that_takes_half_of_the_cores_is_told_to_take_all_of_them():
    mxnet = Condition(workload="cnn", framework="mxnet", environment="mxnet", lane="tuned")
    every = os.sched_getaffinity(0)
    assert knobs.find(mxnet)["OMP_NUM_THREADS"] == str(len(every))
    assert "OMP_NUM_THREADS" not in knobs.find(mxnet.but(lane="default"))
    assert knobs.find(mxnet.but(threads=1))["OMP_NUM_THREADS"] == "1", "what the condition asks for comes first"

    def bound():
        os.sched_setaffinity(0, {min(every)})  # of this thread alone, as the gate binds those that start its workers
        return knobs.find(mxnet)["OMP_NUM_THREADS"]

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(bound).result() == str(len(every))
