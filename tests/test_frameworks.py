"""Do the frameworks that are here do what ``benchlib.frameworks.Session`` promises, and the same?

Each framework and mode runs once, in a process of its own (``framework_session.py``); the tests look at what it gave.
A framework that the default environment has not is tried in the environment of its name, where that has been made.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import framework_session
import numpy as np
import pytest
from framework_session import CASES, COMPILED, DROPPED, LEARNING_RATE

from benchlib import doctor, environments, frameworks, workloads
from benchlib.environments import DEFAULT
from benchlib.equivalence.tolerances import MIXED_TOLERANCES
from benchlib.provenance import installed
from benchlib.runner import availability

HERE = Path(__file__).resolve().parent
OUTPUTS, GRADIENTS, LOSSES = 1e-5, 1e-4, 1e-5  # largest difference allowed, relative to the largest value
NEEDED = [workloads.load(workload) for workload in sorted({workload for workload, _ in CASES.values()})]
HOMES = {
    name: environment
    for name in sorted(frameworks.names(), key=frameworks.rank)
    for environment in (name, DEFAULT)  # the later counts
    if environments.why_absent(environment) is None and installed.offers(environment, name)
}
FOUND = [name for name in HOMES if all(name in workload.frameworks() for workload in NEEDED)]
FEW = ["caffe2", "cntk", "theano"]  # without operators
RUNS = [(name, mode) for name in FOUND for mode in frameworks.modes(name)]
WITHOUT_STATISTICS = {("mxnet", "batchnorm2d forward")}
"""MXNet takes running statistics on the way back: docs/mxnet.md."""
ALL = [
    (*run, case)
    for run in RUNS
    for case in (COMPILED if run == ("pytorch", "graph") else CASES)
    if (run[0], case) not in WITHOUT_STATISTICS
]
TRAINING = [run for run in ALL if run[2] == "cnn"]
OTHERS = [run for run in ALL if run[:2] != ("pytorch", "eager")]
SIDES = ("input", "output")
FACTS = [run for run in RUNS if run != ("pytorch", "graph")]


def each(runs: list[tuple[str, ...]]) -> list[Any]:
    """Parameters of tests; graphs take a minute to compile."""
    return [pytest.param(*run, marks=[pytest.mark.slow] * (run[1] == "graph")) for run in runs]


def given(framework: str, mode: str) -> SimpleNamespace:
    """What a framework gave: ``arrays`` by "case/name", and ``facts``."""
    found = ran(framework, mode)
    assert not isinstance(found, str), found
    return found


@functools.cache
def ran(framework: str, mode: str) -> SimpleNamespace | str:
    """Run a framework once; the end of what it said if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": str(HERE.parent),
            "TORCHINDUCTOR_CACHE_DIR": folder,  # or the graphs of the run before would be tested
            "OMP_NUM_THREADS": "1",
        }
        if framework == "mindspore":
            environment["ONEDNN_MAX_CPU_ISA"] = "AVX2"  # its convolutions are 77 times slower without
        python = environments.find(HOMES[framework]).python
        command = [python, str(HERE / "framework_session.py"), framework, mode, folder]
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if ended.returncode != 0:
            return ended.stderr[-4000:]
        with np.load(Path(folder) / "arrays.npz") as arrays:
            return SimpleNamespace(arrays=dict(arrays), facts=json.loads((Path(folder) / "facts.json").read_text()))


def case_of(framework: str, mode: str, case: str) -> dict[str, np.ndarray]:
    """What a framework gave for one case, by name."""
    arrays = given(framework, mode).arrays
    return {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{case}/")}


def group(arrays: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The arrays of one group ("gradient", "loaded" ...), by weight."""
    return {full.partition(":")[2]: array for full, array in arrays.items() if full.startswith(f"{name}:")}


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest expected value."""
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def set_up(case: str) -> tuple[workloads.Workload, dict, dict[str, np.ndarray], list]:
    """A case's workload, hyperparameters, initial weights and batches."""
    name, hyperparameters = CASES[case]
    workload = workloads.load(name)
    values = workload.values(hyperparameters)
    return (workload, values, framework_session.initial(workload, values), framework_session.batches(workload, values))


@pytest.mark.parametrize("framework", [name for name in frameworks.names() if name not in FEW])
def test_every_framework_is_tried_whose_environment_is_there(framework):
    if framework not in HOMES:
        pytest.skip(
            f"nothing below is shown of {framework}: the default environment has it not, and there is no other of its "
            f"name: .venv/bin/benchlib environment create {framework}"
        )
    assert framework in FOUND, f"{framework} has no file for one of {', '.join(one.name for one in NEEDED)}"


@pytest.mark.slow
@pytest.mark.parametrize("framework", FEW)
def test_a_framework_with_few_workloads_keeps_its_promises(framework, tmp_path):
    there = (one for one in environments.names() if availability.why_absent(framework, "cpu", one) is None)
    environment = next(there, None)
    if environment is None:
        pytest.skip(
            f"nothing is shown of {framework}: no environment has it; docs/environments.md says how to make one"
        )
    assert [row for row in doctor.check(framework, tmp_path, environment=environment) if row.why] == []


@pytest.mark.parametrize(("framework", "mode", "case"), each(ALL))
def test_weights_come_back_as_they_were_loaded(framework, mode, case):
    found, (_, _, weights, _) = case_of(framework, mode, case), set_up(case)
    for moment in ("loaded", "untouched", "loaded again"):
        read = group(found, moment)
        assert list(read) == list(weights), moment
        for name, array in weights.items():
            assert read[name].dtype == np.float32
            np.testing.assert_array_equal(read[name], array, err_msg=f"{moment}: {name}")


@pytest.mark.parametrize(("framework", "mode", "case"), each(ALL))
def test_load_forgets_all_that_the_steps_before_left(framework, mode, case):
    found = case_of(framework, mode, case)
    assert difference(found["steps again"], found["steps"]) < LOSSES


@pytest.mark.parametrize(("framework", "mode", "case"), each(ALL))
def test_a_step_changes_what_it_should_and_nothing_else(framework, mode, case):
    found, (workload, values, weights, _) = case_of(framework, mode, case), set_up(case)
    after = group(found, "after all steps")
    changed = {name for name, array in weights.items() if not np.array_equal(after[name], array)}
    trained = {name for name, weight in workload.weights(values).items() if weight.trained}
    assert changed == (trained if workload.kind == "training" else set(weights) - trained)


@pytest.mark.parametrize(("framework", "mode", "case"), each(TRAINING))
def test_the_first_step_goes_down_the_gradient(framework, mode, case):
    found, (_, _, weights, _) = case_of(framework, mode, case), set_up(case)
    gradients, after = group(found, "gradient"), group(found, "after one step")
    assert list(gradients) == list(weights)
    for name, array in weights.items():
        assert difference(array - after[name], LEARNING_RATE * gradients[name]) < 1e-3, name  # of a small difference


@pytest.mark.parametrize(("framework", "mode", "case"), each(OTHERS))
def test_agrees_with_pytorch_eager(framework, mode, case):
    found, expected = case_of(framework, mode, case), case_of("pytorch", "eager", case)
    assert found.keys() == expected.keys()
    assert difference(found["outputs"], expected["outputs"]) < OUTPUTS
    assert difference(found["evaluation outputs"], expected["evaluation outputs"]) < OUTPUTS
    assert difference(found["steps"], expected["steps"]) < LOSSES
    for name, gradient in group(expected, "gradient").items():
        assert difference(found[f"gradient:{name}"], gradient) < GRADIENTS, name
    for name, array in group(expected, "after all steps").items():
        assert difference(found[f"after all steps:{name}"], array) < GRADIENTS, name


def linear(values, weights, inputs, gradient):
    """Dense layer in numpy: output, gradients, state after."""
    output = inputs @ weights["weight"].T + weights["bias"]
    return (
        output,
        {"input": gradient @ weights["weight"], "weight": gradient.T @ inputs, "bias": gradient.sum(0)},
        weights,
    )


def conv2d(values, weights, inputs, gradient):
    """Convolution in numpy: output, gradients, state after."""
    kernel, padding, side = values["kernel"], values["padding"], gradient.shape[-1]
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded = np.pad(inputs, around)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))  # (b, c, y, x, i, j)
    output = np.einsum("bcyxij,ocij->boyx", windows, weights["weight"]) + weights["bias"][:, None, None]
    of_padded = np.zeros_like(padded)
    for i in range(kernel):
        for j in range(kernel):
            share = np.einsum("boyx,oc->bcyx", gradient, weights["weight"][:, :, i, j])
            of_padded[:, :, i : i + side, j : j + side] += share
    size = values["image_size"]
    gradients = {
        "input": of_padded[:, :, padding : padding + size, padding : padding + size],
        "weight": np.einsum("bcyxij,boyx->ocij", windows, gradient),
        "bias": gradient.sum((0, 2, 3)),
    }
    return output, gradients, weights


def batchnorm2d(values, weights, inputs, gradient):
    """Batch normalisation in numpy (Ioffe and Szegedy 2015): output, gradients, state after."""
    axes, count = (0, 2, 3), inputs[:, 0].size
    mean, variance = inputs.mean(axes, keepdims=True), inputs.var(axes, keepdims=True)
    normal = (inputs - mean) / np.sqrt(variance + 1e-5)
    scale = weights["weight"][:, None, None]
    output = normal * scale + weights["bias"][:, None, None]
    gradients = {"weight": (gradient * normal).sum(axes), "bias": gradient.sum(axes)}
    of_normal = gradient * scale
    centred = of_normal - of_normal.mean(axes, keepdims=True)
    gradients["input"] = (centred - normal * (of_normal * normal).mean(axes, keepdims=True)) / np.sqrt(variance + 1e-5)
    part, unbiased = values["momentum"], variance.ravel() * count / (count - 1)
    state = {
        **weights,
        "running_mean": (1 - part) * weights["running_mean"] + part * mean.ravel(),
        "running_var": (1 - part) * weights["running_var"] + part * unbiased,
    }
    return output, gradients, state


@pytest.mark.parametrize(("framework", "mode", "case"), each([run for run in ALL if run[2] != "cnn"]))
def test_operators_agree_with_numpy(framework, mode, case):
    found, (workload, values, weights, batches) = case_of(framework, mode, case), set_up(case)
    compute = globals()[workload.name]
    exact = {name: array.astype(np.float64) for name, array in weights.items()}
    output, gradients, state = compute(values, exact, *(array.astype(np.float64) for array in batches[0]))
    assert difference(found["outputs"], output) < OUTPUTS
    assert difference(found["steps"][0], output) < OUTPUTS
    assert group(found, "gradient").keys() == gradients.keys()
    for name, gradient in gradients.items():
        assert difference(found[f"gradient:{name}"], gradient) < GRADIENTS, name
    for name, array in state.items():
        assert difference(found[f"after one step:{name}"], array) < OUTPUTS, name


@pytest.mark.parametrize(("framework", "mode"), each(FACTS))
def test_what_is_wrong_is_refused_by_name(framework, mode):
    said = given(framework, mode).facts["refusals"]
    assert said["missing"] == f"weights for {framework}: weight 'conv2.bias' of shape (50,) is missing"
    assert said["unknown"].startswith(f"weights for {framework}: unknown weight 'conv9.bias': did you mean 'conv")
    assert said["misshapen"] == f"weights for {framework}: weight 'conv2.bias' has shape (49,), expected (50,)"
    assert said["other model"].startswith(f"cnn in {framework}: unknown weight 'dense2.bias'")
    assert said["trained"][0].startswith(f"linear in {framework}: weight 'weight': the model trains it")
    assert said["trained"][1].startswith(f"batchnorm2d in {framework}: weight 'running_mean': the model does not train")
    assert said["precision"].startswith(f"unknown precision of {framework} 'fp8'")
    told = {
        "pytorch": "unknown knob of pytorch 'channels_first=on': did you mean 'channels_last=on'?",
        "mindspore": "unknown knob of mindspore 'channels_first=on':",
    }
    knob = said["knob"].partition(" (there are: ")[0]
    assert knob == told.get(framework, knob) != "accepted"


READ_BACK = {"pytorch": ["channels_last=True", "float32_matmul_precision=high"], "mindspore": ["launch_blocking=True"]}


@pytest.mark.parametrize("framework", READ_BACK)
def test_knobs_change_how_a_framework_computes_and_not_what(framework):
    plain, turned = case_of(framework, "eager", "cnn"), case_of(framework, "eager", "knobs")
    settings = given(framework, "eager").facts["settings"]
    before = [f"{name}={settings[name]}" for name in framework_session.KNOBS[framework] if name in settings]
    assert list(turned.pop("settings")) == READ_BACK[framework] != before, "read back after they were set"
    assert group(turned, "loaded").keys() == group(plain, "loaded").keys()
    for name, array in turned.items():
        assert difference(array, plain[name]) < GRADIENTS, name


@pytest.mark.skipif(any(Path("/dev").glob("davinci[0-9]*")), reason="there is an Ascend device here")
@pytest.mark.parametrize(("framework", "mode"), each(FACTS))
def test_a_device_that_is_not_there_is_refused(framework, mode):
    said = given(framework, mode).facts["refusals"]["device"]
    assert said.startswith("device 'npu':")
    assert "install" in said


@pytest.mark.parametrize(("framework", "mode"), each(FACTS))
def test_dropout_follows_the_seed_and_rests_in_evaluation(framework, mode):
    found = given(framework, mode).facts["dropout"]
    assert found["seed 1"] == found["seed 1 again"]
    assert found["seed 1"] != found["seed 2"]
    assert len(set(found["seed 1"])) == 3, "the mask is the same in every step"
    assert len(set(found["after evaluation"])) == 3, "after an evaluation, steps go without dropout"
    assert found["training varies by"] > 0.01
    assert found["evaluation varies by"] == 0


@pytest.mark.parametrize(("where", "layers"), [("conv", 2), ("dense", 1)])
@pytest.mark.parametrize(("framework", "mode"), each(FACTS))
def test_dropout_zeroes_the_share_of_the_hyperparameter_and_scales_the_rest(framework, mode, where, layers):
    found = given(framework, mode).facts["zeroed"][where]
    training, kept = np.array(found["training"]), (1 - DROPPED) ** layers
    deviation = np.sqrt(kept * (1 - kept) / training.size)
    assert (training == 0).mean() == pytest.approx(1 - kept, abs=5 * deviation)
    np.testing.assert_allclose(training[training != 0], 1 / kept, rtol=1e-5)
    np.testing.assert_array_equal(found["evaluation"], 1.0)


@pytest.mark.parametrize(("framework", "mode"), each([run for run in RUNS if run[0] == "mindspore"]))
def test_mindspore_is_looked_into(framework, mode):
    """Masks are taken as they are given, layers are those of the model, and products those of its shapes."""
    found = given(framework, mode).facts["looked into"]
    assert found["drawn"] == 5 * [[0, [8, 50, 4, 4], 0.25], [1, [8, 100, 2, 2], 0.25], [2, [8, 512], 0.5]]
    assert found["learning"] == [7]
    assert found["outputs"][0] == found["outputs"][1]
    logits, (_, labels) = np.array(found["outputs"][0]), set_up("cnn")[3][0]
    entropy = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(8), labels]
    assert found["losses"] == pytest.approx([entropy.mean()] * 2, rel=1e-5)
    assert len({*found["losses"], *found["losses after"]}) == 4, "masks are for ever"
    names = ["conv1", "conv2", "conv3", "conv4", "dense1", "dense2"]
    assert found["layers"] == [*(f"{side} of {name}" for name in names for side in SIDES), "loss"]
    assert found["second input"]
    convolutions = 64 * 50 * 3 + 64 * 50 * 50 + 16 * 100 * 50 + 16 * 100 * 100
    forward = 9 * convolutions + 400 * 512 + 512 * 10
    assert found["multiply-adds"] == (8 * (3 * forward - 9 * 64 * 50 * 3) if mode == "graph" else None)
    assert found["compilations"] == (1 if mode == "graph" else 0)


@pytest.mark.parametrize(("framework", "mode"), each(FACTS))
def test_mixed_precision_is_near_fp32_and_not_fp32(framework, mode):
    found = given(framework, mode).facts["mixed"]
    assert found.keys() == set(framework_session.mixed_precisions(framework, mode))
    for precision, apart in found.items():
        kind = precision.partition("-")[0]
        if framework == "mindspore" and kind == "bf16":
            assert "why" in apart, "MindSpore has bf16 on the CPU now: what says that it has not must go"
            continue
        assert "why" not in apart, apart
        # Of this batch gradients agree to 64 roundings: nearer than the gate can ask of any batch. Of the weights that
        # fp32 has trained predictions agree to 4: what steps in bf16 move otherwise makes the most of their difference.
        rounding = {"bf16": 2.0**-8, "fp16": 2.0**-11}[kind]
        rounded = {"gradients": 64 * rounding, "predictions": 4 * rounding}
        allowed = {"state": 0.1, "evaluation outputs": 0.1, **MIXED_TOLERANCES[kind], **rounded}
        for name, difference in apart.items():
            assert difference < allowed[name], (precision, name)
        assert apart["outputs"] > 1e-5, "it was computed in fp32"


# On a busy machine a reading may take long for no reason of the framework's, but the shortest of several does not; and
# work may be done before anybody reads, but not each time.


@pytest.mark.parametrize("work", ["cnn", "linear"])
@pytest.mark.parametrize(("framework", "mode"), each(FACTS))
def test_synchronize_waits_for_all_work(framework, mode, work):
    times = given(framework, mode).facts["waits"][work]
    waited = min(times["reading after"]) - min(times["reading again"])  # which takes what copying and turning take
    assert waited < 0.2 * min(times["step and synchronize"])


@pytest.mark.parametrize(("mode", "work"), [("eager", "linear"), ("graph", "cnn"), ("graph", "linear")])
def test_mindspore_queues_work_in_eager_mode_and_a_graph_is_done_when_its_call_is(mode, work):
    times = given("mindspore", mode).facts["waits"][work]
    waited = sorted(times["reading without"])
    assert (waited[-3] > 5 * min(times["reading after"])) == (mode == "eager"), "three of the readings had to wait"


@pytest.mark.parametrize(("framework", "mode"), each(FACTS))
def test_a_step_does_its_backward_pass_even_where_nobody_looks_at_the_gradients(framework, mode):
    times = given(framework, mode).facts["passes"]
    assert times["forward+backward"] > 1.6 * times["forward"]  # it is three times the work


@pytest.mark.slow
def test_graph_mode_of_pytorch_is_one_graph_for_each_workload():
    facts = given("pytorch", "graph").facts
    assert (facts["graphs"], facts["graph breaks"]) == (len(COMPILED), 0)


def test_settings_are_read_back():
    assert given("pytorch", "eager").facts["settings"]["threads"] == 1
    settings = given("mindspore", "graph").facts["settings"]
    assert settings["kernel_threads"] >= 1
    if " avx2 " in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        assert settings["onednn_isa"] == "AVX2"


@pytest.mark.parametrize(("framework", "mode"), each(RUNS))
def test_versions_name_the_framework_and_what_it_computes_with(framework, mode):
    found = given(framework, mode).facts["versions"]
    assert found[frameworks.package(framework)].split("+")[0].count(".") == 2
    assert framework not in ("pytorch", "mindspore") or found["onednn"].count(".") == 2
    assert given(framework, mode).facts["device memory"] == {}
