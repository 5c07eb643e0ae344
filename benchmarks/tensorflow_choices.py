"""What the session and the layers for TensorFlow choose, against what they could have chosen: milliseconds of CPU time.

    PYTHONPATH=. taskset -c 0 .environments/tensorflow/bin/python benchmarks/tensorflow_choices.py

Each is a forward and backward pass (of ``cnn`` a whole step, of an optimizer its update), on one core, the least of
many: of CPU time, which other programs on the machine change little.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable

from benchlib.frameworks.tensorflow import Session

# isort: split
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib import workloads
from benchlib.workloads._keras import GRU, LSTM, SGD, AdamW, BatchNormalization, Conv2D

SECONDS = 3.0  # of each


class Padded(layers.Layer):
    """A layer behind one that pads with zeros."""

    def __init__(self, pixels: int, layer: layers.Layer) -> None:
        super().__init__()
        self.around, self.layer = layers.ZeroPadding2D(pixels), layer

    def call(self, x: Tensor) -> Tensor:
        return self.layer(self.around(x))


class Pooled(layers.Layer):
    """Max pooling whose operator pads."""

    def call(self, x: Tensor) -> Tensor:
        return tf.nn.max_pool2d(x, 3, 2, [[0, 0], [1, 1], [1, 1], [0, 0]])


def main() -> None:
    """Print a line for each choice and alternative."""
    for mode, jit in (("graph", False), ("graph", True), ("eager", False)):
        _cnn(mode, jit)
    sequences, images = (64, 64, 100), (32, 32, 32, 64)
    _layers("GRU", sequences, {"ours": GRU(100), "layers.GRU": layers.GRU(100, return_sequences=True)}, jit=True)
    _layers("LSTM", sequences, {"ours": LSTM(100), "layers.LSTM": layers.LSTM(100, return_sequences=True)})
    norms = {"ours": BatchNormalization(), "layers.BatchNormalization": layers.BatchNormalization()}
    _layers("batch normalisation", images, norms)
    padded = Padded(3, layers.Conv2D(64, 7, 2, use_bias=False))
    convolutions = {"ours": Conv2D(64, 7, 2, pixels=3, use_bias=False), "layers.ZeroPadding2D and Conv2D": padded}
    _layers("convolution 7x7 of stride 2", (32, 64, 64, 3), convolutions)
    pools = {"layers.ZeroPadding2D and MaxPooling2D (ours)": Padded(1, layers.MaxPooling2D(3, 2)), "padded": Pooled()}
    _layers("pooling", images, pools)
    flattened = keras.Sequential([layers.Flatten(), layers.Dense(512)])
    dense = {"layers.Flatten and Dense (ours)": flattened}
    dense["layers.EinsumDense"] = layers.EinsumDense("bhwc,hwco->bo", 512, bias_axes="o")
    _layers("dense layer of images", (64, 8, 8, 100), dense)
    _optimizer("our SGD", SGD(0.01, momentum=0.9))
    _optimizer("keras.optimizers.SGD", keras.optimizers.SGD(0.01, momentum=0.9))
    _optimizer("our AdamW", AdamW(0.01, epsilon=1e-6))
    _optimizer("keras.optimizers.Adam", keras.optimizers.Adam(0.01))


def _cnn(mode: str, jit: bool) -> None:
    workload, random = workloads.load("cnn"), np.random.default_rng(0)
    session = Session("cpu", mode, "fp32", 1)
    session.build(workload, importlib.import_module("benchlib.workloads.cnn.tensorflow"), workload.values({}), 0.01)
    if jit:
        session._step = tf.function(session._step.python_function, autograph=False, jit_compile=True)
    images = random.standard_normal((64, 3, 32, 32), np.float32)
    batch = session.put((images, random.integers(0, 10, 64, np.int32)))
    _print("a step of cnn", "jit_compile" if jit else "ours", mode, lambda: session.step(batch))


def _layers(what: str, shape: tuple[int, ...], ways: dict[str, layers.Layer], jit: bool = False) -> None:
    x = tf.constant(np.random.default_rng(0).standard_normal(shape), tf.float32)
    for way, layer in ways.items():
        _layer(what, way, layer, x, jit)


def _layer(what: str, way: str, layer: layers.Layer, x: Tensor, jit: bool) -> None:
    layer(x)
    weights = [weight.value for weight in layer.trainable_weights]

    def passes() -> list[Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = layer(x, training=True)
            outputs = outputs[0] if isinstance(outputs, tuple) else outputs
        return tape.gradient(outputs, [x, *weights])

    _print(what, way, "eager", passes)
    _print(what, way, "graph", tf.function(passes, autograph=False))
    if jit:
        _print(what, f"{way}, jit_compile", "graph", tf.function(passes, autograph=False, jit_compile=True))


def _optimizer(way: str, optimizer: keras.optimizers.Optimizer) -> None:
    """Of the weights of ``bert`` with its usual sizes."""
    workload = workloads.load("bert")
    shapes = [weight.shape for weight in workload.weights(workload.values({})).values()]
    variables = [keras.Variable(np.ones(shape, np.float32)) for shape in shapes]
    gradients = [tf.ones(shape) for shape in shapes]
    optimizer.build(variables)

    def update() -> None:
        optimizer.apply(gradients, variables)

    _print(f"update of {len(shapes)} weights", way, "eager", update)
    _print(f"update of {len(shapes)} weights", way, "graph", tf.function(update, autograph=False))


def _print(what: str, way: str, mode: str, run: Callable[[], object]) -> None:
    run()
    until, times = time.monotonic() + SECONDS, []
    while time.monotonic() < until or len(times) < 5:
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    print(f"{what}: {way}, {mode}: {1000 * min(times):.1f} ms", flush=True)


if __name__ == "__main__":
    main()
