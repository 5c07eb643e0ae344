"""What the session of TensorFlow gives where only TensorFlow can answer, as JSON on the last line of standard output.

``python tensorflow_session.py``, with the interpreter of an environment that has TensorFlow.
"""

from __future__ import annotations

import importlib
import json
from types import SimpleNamespace

from benchlib.frameworks.tensorflow import Session, _layouts  # first: it says what Keras computes with

# isort: split
import keras
import numpy as np
import tensorflow as tf
from keras import layers

from benchlib import workloads
from benchlib.workloads._keras import LSTM, SGD, AdamW, Conv2D

RATES = (0.1, 0.1, 0.03, 0.01, 0.2, 0.2)
WEIGHTS, GRADIENTS = np.array([0.5, -1.0, 2.0]), np.array([[1e-3, -2.0, 0.0], [3e-3, 1.0, 1e-7]])


class Changing(keras.optimizers.schedules.LearningRateSchedule):
    """Another rate in each step."""

    def __call__(self, step):
        return tf.gather(tf.constant(RATES, tf.float32), tf.cast(step, tf.int32))


def stepped(optimizer) -> list[float]:
    """The weights after a step with each of the rates."""
    variable = keras.Variable(WEIGHTS.astype(np.float32))
    for number in range(len(RATES)):
        optimizer.apply([tf.constant(GRADIENTS[number % 2], tf.float32)], [variable])
    return variable.numpy().tolist()


def steps_apart(mode: str) -> dict[str, float]:
    """Of an LSTM, over (length, batch, inputs): outputs and gradients from those of a loop that is written out, with
    the workload's weights.
    """
    random = np.random.default_rng(0)
    x, gradient = (tf.constant(random.standard_normal((5, 3, size)), tf.float32) for size in (4, 2))
    layer = LSTM(2)
    layer.build((5, 3, 4))
    plain = [tf.constant(random.standard_normal(shape), tf.float32) for shape in ((8, 4), (8, 2), (8,), (8,))]
    layouts = list(_layouts(layer))
    for layout, weight in zip(layouts, plain, strict=True):
        layout.variable.assign(layout.to_framework(weight.numpy()))
    variables = [layout.variable.value for layout in layouts]

    def loop(x):
        weight_ih, weight_hh, bias_ih, bias_hh = plain
        state = cell = tf.zeros((3, 2))
        outputs = []
        for given in tf.unstack(x):
            gates = given @ tf.transpose(weight_ih) + bias_ih + state @ tf.transpose(weight_hh) + bias_hh
            entry, forget, new, exit_ = tf.split(gates, 4, axis=1)
            cell = tf.sigmoid(forget) * cell + tf.sigmoid(entry) * tf.tanh(new)
            state = tf.sigmoid(exit_) * tf.tanh(cell)
            outputs.append(state)
        return tf.stack(outputs)

    def of_both(x):
        return [with_gradients(layer, x, variables), with_gradients(loop, x, plain)]

    def with_gradients(function, x, weights):
        with tf.GradientTape() as tape:
            tape.watch([x, *weights])
            outputs = function(x)
        return [outputs, *tape.gradient(outputs, [x, *weights], output_gradients=gradient)]

    ours, loops = (tf.function(of_both, autograph=False) if mode == "graph" else of_both)(x)
    outside = [np.asarray, np.asarray, *(layout.to_workload for layout in layouts)]
    pairs = ((of(a.numpy()), b.numpy()) for of, a, b in zip(outside, ours, loops, strict=True))
    return {str(place): float(np.abs(a - b).max()) for place, (a, b) in enumerate(pairs)}


def fused_lstm_of_another_layout() -> float:
    """By how much the gradient of BlockLSTMV2 is wrong, relative to the largest: in one step from no state, without an
    input, a bias's is the output's by the chain rule.
    """
    bias, zeros = tf.Variable([0.3, -0.4, 0.5, 0.6]), tf.zeros((1, 1))
    with tf.GradientTape() as tape:
        none = tf.zeros((1,))
        output = tf.raw_ops.BlockLSTMV2(
            seq_len_max=1,
            x=tf.zeros((1, 1, 1)),
            cs_prev=zeros,
            h_prev=zeros,
            w=tf.zeros((2, 4)),
            wci=none,
            wcf=none,
            wco=none,
            b=bias,
        ).h
    found = tape.gradient(output, bias).numpy()
    with tf.GradientTape() as tape:
        entry, _, new, exit_ = tf.unstack(bias)
        output = tf.sigmoid(exit_) * tf.tanh(tf.sigmoid(entry) * tf.tanh(new))
    expected = tape.gradient(output, bias).numpy()
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def operations(layer, shape) -> list[list]:
    """Of a layer's forward pass as a graph: types, and how they pad where they do."""
    graph = tf.function(layer).get_concrete_function(tf.TensorSpec(shape, tf.float32)).graph
    return sorted(
        {
            (one.type, one.get_attr("padding").decode() if "padding" in one.node_def.attr else "")
            for one in graph.get_operations()
        }
    )


class Dropping(keras.Model):
    """Drops in four ways."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = layers.Dropout(0.5)
        self.seeds = keras.random.SeedGenerator(1)

    def call(self, x, training=False):
        x = self.dropout(x)
        if training:
            x = keras.random.dropout(x, 0.5, seed=self.seeds)
            x = tf.nn.experimental.stateless_dropout(tf.nn.dropout(x, 0.5), 0.5, seed=(1, 2))
        return x


def as_pytorch_has_them(name: str, mode: str, given: dict) -> dict:
    """Of an operator of images, after two different steps asked for gradients and outputs: shapes of what a step and
    ``outputs`` hand out, whether both have the same numbers, and how many steps were asked for gradients.
    """
    session, _ = opened(name, given, mode)
    batch = session.put(workloads.load(name).inputs(workloads.load(name).values(given), 2, np.random.default_rng(2)))
    step, outputs = session.to_numpy(session.step(batch)), session.outputs(batch, True)[0]
    own, calls = session._step, []
    session._step = lambda batch: calls.append(batch) or own(batch)
    session.gradients(batch)
    return {"step": step.shape, "outputs": outputs.shape, "same": bool((step == outputs).all()), "steps": len(calls)}


def opened(name: str, given: dict, mode: str, precision: str = "fp32"):
    """A session of a workload, its initial weights and its module."""
    session = Session("cpu", mode, precision, 1)
    workload = workloads.load(name)
    values = workload.values(given)
    module = importlib.import_module(f"benchlib.workloads.{name}.tensorflow")
    session.build(workload, module, values, 0.01)
    random = np.random.default_rng(1)
    shapes = {weight: one.shape for weight, one in workload.weights(values).items()}
    initial = {weight: random.uniform(-0.2, 0.2, shape).astype(np.float32) for weight, shape in shapes.items()}
    session.load(initial)
    return session, initial


def asked_by_the_gate(mode: str) -> dict:
    """Of a cnn: the masks that it takes, losses where they keep nothing, how often its step was compiled, its layers
    and multiply-adds; whether its weights stayed as they were for these.
    """
    session, initial = opened("cnn", {"image_size": 8, "conv_dropout": 0.0}, mode)
    batch = session.put((np.ones((2, 3, 8, 8), np.float32), np.array([1, 2], np.int32)))
    taken = []

    def nothing(place, shape, p):
        taken.append((place, shape, p))
        return np.zeros(shape, bool)

    layers, products = session.layers(batch), session.multiply_adds(batch)
    stayed = all(np.array_equal(one, initial[name]) for name, one in session.weights().items())
    with session.given_masks(nothing):
        gradients = session.gradients(batch)
        losses = [float(session.step(batch)), float(session.step(batch))]
    bias, labels = initial["dense2.bias"].astype(float), [1, 2]
    session.load(initial)
    session.step(batch)
    return {
        "taken": taken,
        "loss": [losses[0], float(np.log(np.exp(bias).sum()) - bias[labels].mean())],
        "of the masked": float(np.abs(gradients["dense1.weight"]).max()),
        "compiled": session.settings().get("compilations"),
        "layers": [name for name, _ in layers],
        "operations": session.operations,
        "products": [
            products,
            3 * 2 * (64 * 27 * 50 + 64 * 450 * 50 + 16 * 450 * 100 + 16 * 900 * 100 + 400 * 512 + 5120),
        ],
        "stayed": stayed,
    }


def apart_of_precisions(name: str, given: dict, arrays: tuple) -> dict:
    """The types of what is handed out in double precision, and how far it lies from single precision."""
    found = []
    for precision in ("fp32", "fp64"):
        session, _ = opened(name, given, "graph", precision)
        batch = session.put(arrays)
        every = [*session.outputs(batch, True), *session.gradients(batch).values()]
        session.step(batch)
        found.append([*every, *session.weights().values()])
    keras.config.set_floatx("float32")
    types = sorted({str(array.dtype) for array in found[1]})
    return {"types": types, "apart": max(float(np.abs(a - b).max()) for a, b in zip(*found, strict=True))}


def facts() -> dict:
    given = {"rates": RATES, "weights": WEIGHTS.tolist(), "gradients": GRADIENTS.tolist()}
    found = {"given": given, "backend": keras.backend.backend(), "wrong LSTM": fused_lstm_of_another_layout()}
    found["SGD"] = stepped(SGD(Changing(), momentum=0.9, penalty=0.05))
    found["AdamW"] = stepped(AdamW(Changing(), epsilon=1e-3, weight_decay=0.1))
    found["clipped"] = stepped(AdamW(Changing(), epsilon=1e-3, global_clipnorm=0.5))
    found["LSTM"] = {mode: steps_apart(mode) for mode in ("eager", "graph")}
    session = Session("cpu", "eager", "fp32", 1)
    session._targets, session._untrained, session._model = 1, [], Dropping()
    session._module = SimpleNamespace(loss=lambda model, batch: model(batch[0], training=True))
    batch = (tf.ones((4, 4)), tf.zeros((4,)))
    found["dropouts"] = [name for name, *_ in session.dropouts(batch, True)]
    found["dropouts of evaluation"] = [name for name, *_ in session.dropouts(batch, False)]
    found["images"] = {
        f"{name} {mode}": as_pytorch_has_them(name, mode, given)
        for name, given in {
            "conv2d": {"in_channels": 3, "out_channels": 5, "image_size": 4},
            "batchnorm2d": {"channels": 5, "image_size": 4},
        }.items()
        for mode in ("eager", "graph")
    }
    found["operations of an LSTM"] = operations(LSTM(3), (4, 2, 5))
    found["operations of convolutions"] = {
        name: [padding for kind, padding in operations(layer, (2, 4, 4, 3)) if kind == "Conv2D"]
        for name, layer in {
            "1x1": Conv2D(3, 1),
            "3x3": Conv2D(3, 3, pixels=1),
            "3x3, stride 2": Conv2D(3, 3, 2, pixels=1),
            "3x3, 2 pixels": Conv2D(3, 3, pixels=2),
        }.items()
    }
    convolution = Conv2D(1, 3, strides=2, pixels=1, use_bias=False, kernel_initializer="ones")
    found["first pixel"] = float(convolution(tf.ones((1, 4, 4, 1)))[0, 0, 0, 0])

    session, initial = opened("gru", {"length": 4}, "graph")
    tokens = np.array([[3, 3, 3, 5], [5, 3, 0, 0]], np.int32)
    batch = session.put((tokens, np.array([1, 2], np.int32)))
    for _ in range(3):
        session.load(initial)
        session.step(batch)
    found["traces"] = session._step.experimental_get_tracing_count()
    rows = np.abs(session.gradients(batch)["embedding.weight"]).sum(1) > 0
    found["rows with gradients"] = np.flatnonzero(rows).tolist()
    session.load(initial)
    session.update([{"dense.bias": np.ones(10, np.float32)}], 2)
    moved = {name: float(np.abs(array - initial[name]).max()) for name, array in session.weights().items()}
    found["moved"] = [name for name, by in moved.items() if by > 0]

    session, initial = opened("lstm", {"length": 4, "embedding": 3, "hidden": 2}, "eager")
    read = session.weights()
    found["read back"] = all(np.array_equal(read[name], array) for name, array in initial.items())
    session.update([{"layer1.back.weight_hh_l0": np.eye(8, 2, dtype=np.float32)}], 1)
    moved = session.weights()["layer1.back.weight_hh_l0"] != initial["layer1.back.weight_hh_l0"]
    found["moved of a matrix"] = np.argwhere(moved).tolist()

    found["gate"] = {mode: asked_by_the_gate(mode) for mode in ("eager", "graph")}
    random = np.random.default_rng(3)
    images = tuple(random.standard_normal((2, 2, 5, 3, 3)).astype(np.float32))
    sequences = (
        np.array([[3, 4, 5, 6], [5, 3, 0, 0]], np.int32),
        np.array([4, 2], np.int32),
        np.array([1, 2], np.int32),
    )
    found["double"] = {
        "batchnorm2d": apart_of_precisions("batchnorm2d", {"channels": 5, "image_size": 3}, images),
        "lstm": apart_of_precisions("lstm", {"length": 4, "embedding": 3, "hidden": 2, "dropout": 0.0}, sequences),
    }
    found["settings before a model"] = Session("cpu", "graph", "fp16", 1).settings()
    session, initial = opened("cnn", {"image_size": 8}, "eager", "fp16")
    batch = session.put((np.ones((2, 3, 8, 8), np.float32), np.array([1, 2], np.int32)))
    session.load(initial, 2.0**126)  # so large that gradients overflow
    session.step(batch)
    found["after an overflow"] = all(np.array_equal(one, initial[name]) for name, one in session.weights().items())
    found["loss scale"] = session.settings()["loss_scale"] / 2.0**126
    return found


if __name__ == "__main__":
    print(json.dumps(facts()))
