"""TensorFlow's session and files: what is declared of it; and what only it can answer, in the environment of its
name.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import benchlib
from benchlib import environments, frameworks, workloads

HERE = Path(__file__).resolve().parent
PACKAGE = Path(benchlib.__file__).parent
NAME = "tensorflow"
FILES = [name for name in workloads.names() if NAME in workloads.load(name).frameworks()]
FUNCTIONS = {
    "relu",
    "gelu",
    "tanh",
    "flatten",
}  # layers without weights that PyTorch has: functions here, or part of others


def absent() -> str | None:
    """Why nothing of TensorFlow can be run here."""
    return environments.why_absent(NAME)


with_tensorflow = pytest.mark.skipif(
    absent() is not None, reason=f"TensorFlow is tried in an environment of its own: {absent()}"
)


@functools.cache
def ran() -> subprocess.CompletedProcess:
    """The session, in a process of its own."""
    surroundings = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PACKAGE.parent),
        "HOME": "/nonexistent",
        "KERAS_BACKEND": "jax",  # as a user's shell may have it
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    command = [environments.find(NAME).python, str(HERE / "tensorflow_session.py")]
    return subprocess.run(command, env=surroundings, capture_output=True, text=True)


def facts() -> dict:
    """What the session gave."""
    assert ran().returncode == 0, ran().stderr[-4000:]
    return json.loads(ran().stdout.splitlines()[-1])


def test_its_distribution_for_the_cpu_is_the_one_to_install():
    assert frameworks.package(NAME) == "tensorflow"
    assert frameworks.distributions(NAME)[0] == "tensorflow-cpu"
    assert set(frameworks.modes(NAME)) == {"eager", "graph", "graph-xla"}
    assert frameworks.precisions(NAME)[0] == "fp32"
    assert frameworks.launcher(NAME) == (), "no path to data-parallel training: docs/tensorflow.md says why"
    (need,) = frameworks.needs(NAME)
    assert "tensorflow-cpu" not in need["distributions"], "a build without CUDA uses no GPU"


def test_both_environments_are_pinned_to_the_same():
    cpu, cuda = (
        [
            line
            for line in environments.requirements_file(name)
            .read_text(encoding="utf-8")
            .partition("# All")[0]
            .splitlines()
            if line and not line.startswith("#")
        ]
        for name in (NAME, f"{NAME}-cuda")
    )
    assert all(re.fullmatch(r"\S+==[\d.]+", line) for line in (*cpu, *cuda))
    assert [line.replace("tensorflow[and-cuda]", "tensorflow-cpu") for line in cuda] == cpu


def test_it_has_a_file_for_each_workload_that_pytorch_has():
    assert [name for name in workloads.names() if "pytorch" in workloads.load(name).frameworks()] == FILES


def made(path: Path) -> tuple[list[str], dict[str, list[str]]]:
    """The public functions of a file, and what its classes make in ``__init__``, both in order."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    classes = {}
    for node in (node for node in body if isinstance(node, ast.ClassDef)):
        for method in (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"):
            assigned = [one.targets[0] for one in ast.walk(method) if isinstance(one, ast.Assign)]
            targets = [each for one in assigned for each in (one.elts if isinstance(one, ast.Tuple) else [one])]
            classes[node.name] = [one.attr.rstrip("_") for one in targets if isinstance(one, ast.Attribute)]
    return functions, classes


@pytest.mark.parametrize("name", FILES)
def test_its_files_can_be_read_beside_pytorchs(name):
    (functions, classes), (torchs_functions, torchs_classes) = (
        made(PACKAGE / "workloads" / name / f"{framework}.py") for framework in (NAME, "pytorch")
    )
    assert [one for one in functions if one in torchs_functions] == [
        one
        for one in torchs_functions
        if one != "schedule"  # which is the learning rate of a Keras optimizer
    ]
    for one, attributes in torchs_classes.items():
        wanted = [attribute for attribute in attributes if attribute not in FUNCTIONS]
        ours = [attribute for attribute in classes[one] if attribute in wanted]
        assert ours == wanted, f"{one}: what is made there and here has the same names in the same order"


@pytest.mark.parametrize("name", FILES)
def test_what_was_settled_for_it_is_said(name):
    text = (PACKAGE / "workloads" / name / f"{NAME}.py").read_text(encoding="utf-8")
    settled = " ".join(what for what in workloads.load(name).settled if what.startswith("TensorFlow: "))
    for used, what in {
        "BatchNormalization(": "batch normalisation",
        "Conv2D(": "padding",
        "AdamW(": "Adam",
        "SGD(": "SGD",
        "GRU(": "recurrent layers",
        " LSTM(": "recurrent layers",
        "Embedding(": "gradients of embeddings",
        "labels, 0)": "labels that are left out",
        "clipnorm": "clipping",
        "unsorted_segment_sum": "sum over neighbours",
        "DenseOfImage(": "dense layer of an image",
    }.items():
        assert used not in text or what in settled, used
    assert settled


@with_tensorflow
def test_keras_computes_with_tensorflow_whatever_the_shell_says():
    assert facts()["backend"] == "tensorflow"


def sgd(rates, weights, gradients, momentum, penalty):
    """As PyTorch documents torch.optim.SGD, in float64."""
    weights, velocity = weights.copy(), 0.0
    for number, rate in enumerate(rates):
        velocity = momentum * velocity + gradients[number % 2] + penalty * weights
        weights -= rate * velocity
    return weights


def adamw(rates, weights, gradients, epsilon, decay=0.0, clip=np.inf):
    """As PyTorch documents torch.optim.AdamW and torch.nn.utils.clip_grad_norm_, in float64."""
    weights, mean, square = weights.copy(), 0.0, 0.0
    for number, rate in enumerate(rates):
        gradient, step = gradients[number % 2], number + 1
        gradient = gradient * min(1, clip / np.linalg.norm(gradient))
        weights *= 1 - rate * decay
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        weights -= rate * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + epsilon)
    return weights


@with_tensorflow
def test_its_optimizers_are_pytorchs_over_a_schedule():
    given = [np.array(facts()["given"][name]) for name in ("rates", "weights", "gradients")]
    expected = {
        "SGD": sgd(*given, momentum=0.9, penalty=0.05),
        "AdamW": adamw(*given, epsilon=1e-3, decay=0.1),
        "clipped": adamw(*given, epsilon=1e-3, clip=0.5),
    }
    for name, exact in expected.items():
        np.testing.assert_allclose(facts()[name], exact, rtol=1e-6, atol=1e-6, err_msg=name)


@with_tensorflow
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_its_lstm_is_the_loop_written_out(mode):
    assert max(facts()["LSTM"][mode].values()) < 1e-5


@with_tensorflow
def test_a_step_of_an_lstm_rearranges_no_weights():
    assert not {"Transpose", "Split", "SplitV"} & {kind for kind, _ in facts()["operations of an LSTM"]}


@with_tensorflow
def test_weights_of_an_lstm_are_the_workload_s_wherever_they_are_seen():
    assert facts()["read back"]
    assert facts()["moved of a matrix"] == [[0, 0], [1, 1]]


@with_tensorflow
def test_a_convolution_says_its_padding_by_name_where_it_has_one():
    """Its operator has ways for these which it has not for the same number of pixels on each side."""
    of = {"1x1": ["VALID"], "3x3": ["SAME"], "3x3, stride 2": ["EXPLICIT"], "3x3, 2 pixels": ["EXPLICIT"]}
    assert facts()["operations of convolutions"] == of


@with_tensorflow
def test_images_that_a_step_hands_out_have_their_channels_first_and_its_gradients_are_those_compared():
    for which, seen in facts()["images"].items():
        assert seen == {"step": [2, 5, 4, 4], "outputs": [2, 5, 4, 4], "same": True, "steps": 1}, which


@with_tensorflow
def test_the_operator_that_is_gone_round_is_still_wrong():
    assert facts()["wrong LSTM"] > 0.1, "BlockLSTMV2 has its own gradient now: _keras.py can do without reordered gates"


@with_tensorflow
def test_every_way_to_drop_is_seen():
    assert facts()["dropouts"] == ["stateless_dropout", "stateless_dropout", "dropout", "stateless_dropout"]
    assert facts()["dropouts of evaluation"] == []


@with_tensorflow
def test_a_convolution_pads_on_each_side():
    assert facts()["first pixel"] == 4.0, "with padding='same' a kernel of 3 at a stride of 2 would begin on 9 pixels"


@with_tensorflow
def test_a_step_is_traced_once():
    assert facts()["traces"] == 1


@with_tensorflow
def test_gradients_of_an_embedding_are_dense():
    assert facts()["rows with gradients"] == [0, 3, 5]


@with_tensorflow
def test_an_update_of_some_weights_leaves_the_others():
    assert facts()["moved"] == ["dense.bias"]


@with_tensorflow
def test_a_step_that_overflows_in_half_precision_is_left_out_and_the_scale_halved():
    assert facts()["after an overflow"]
    assert facts()["loss scale"] == 0.5


@with_tensorflow
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_what_the_gate_asks_of_a_session(mode):
    found = facts()["gate"][mode]
    assert found["taken"] == 3 * [[0, [2, 512], 0.5]], "of gradients and of two steps; p = 0 draws none"
    np.testing.assert_allclose(*found["loss"], rtol=1e-6)
    assert found["of the masked"] == 0, "the way back has the same mask"
    assert found["compiled"] == (1 if mode == "graph" else None)
    names = ("conv1", "conv2", "conv3", "conv4", "dense1", "dense2")
    assert found["layers"] == [f"{way} of {name}" for name in names for way in ("input", "output")] + ["loss"]
    counted, expected = found["products"]
    assert counted == expected
    assert {"Conv2D", "MatMul", "MaxPoolGrad"} < set(found["operations"])
    assert found["stayed"]


@with_tensorflow
@pytest.mark.parametrize("name", ["batchnorm2d", "lstm"])
def test_double_precision_has_the_mathematics_of_the_operators_that_lack_it(name):
    found = facts()["double"][name]
    assert found["types"] == ["float64"]
    assert 0 < found["apart"] < 1e-5


@with_tensorflow
def test_settings_can_be_read_before_a_model_is_there():
    assert facts()["settings before a model"]["dtype_policy"] == "mixed_float16"


OLD = "tensorflow-2.3"
OF_OLD = """
import json, sys, tempfile
import numpy as np, tensorflow as tf
from benchlib.errors import BenchlibError
from benchlib.frameworks.tensorflow import Session, _drop_by, _layouts, keras
from benchlib.workloads._keras import Conv2D, built
class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.conv = Conv2D(2, 3, 2, pixels=1)
        self.dropout = keras.layers.Dropout(0.5)
    def call(self, x):
        return self.dropout(self.conv(x))
def refusal(*choice):
    try:
        Session(*choice, 0)
    except BenchlibError as error:
        return str(error)
session, model = Session("cpu", "graph", "fp32", 0), built(Model(), keras.Input((5, 5, 1)))
x = tf.constant(np.random.RandomState(0).standard_normal((1, 5, 5, 1)), tf.float32)
around = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
seen = []
with _drop_by(lambda name, drop, x, p, _: seen.append([name, p]) or x):
    found = model(x, training=True)
print(json.dumps({
    "names": [one.name for one in _layouts(model)],
    "apart": float(tf.reduce_max(tf.abs(found - tf.nn.conv2d(around, model.conv.kernel, 2, "VALID")))),
    "dropouts": seen,
    "written": [one for one in map(str, sys.modules.values()) if tempfile.gettempdir() in one],
    "refusals": [refusal("cpu", "graph", "bf16"), refusal("cpu", "eager", "fp16"), refusal("cuda", "graph", "fp32")],
}))
"""


@pytest.mark.skipif(environments.why_absent(OLD) is not None, reason=f"THE ENVIRONMENT {OLD} IS NOT HERE")
def test_an_old_version_has_the_same_models_and_says_what_it_lacks(tmp_path):
    surroundings = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "TMPDIR": str(tmp_path)}
    command = [environments.find(OLD).python, "-c", OF_OLD]
    ended = subprocess.run(command, env=surroundings, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["names"] == ["conv.weight", "conv.bias"]
    assert found["apart"] < 1e-6, "Keras 2 calls no convolution_op, and does not pad"
    assert found["dropouts"] == [["dropout_v2", 0.5]]
    assert not found["written"], "modules that AutoGraph writes are in no hash of the code"
    assert all("not in this version: tensorflow 2.3.0" in one for one in found["refusals"])
