"""TensorFlow, with Keras 3 for models and optimizers: builds a workload and runs its steps. Run on the CPU only so far.

Graph mode is ``tf.function`` of the whole step: forward, loss, gradients and update. ``graph-xla`` is the same with
``jit_compile=True``, which on the CPU is slower where there are convolutions and has no kernel for our LSTM
(docs/tensorflow.md). Eager mode dispatches the same step operation by operation.

Models are Keras layers in a training step of our own, with ``tf.GradientTape``; optimizers are Keras's by their class,
and PyTorch's by their mathematics (``benchlib/workloads/_keras.py``). Gradients of embeddings are made dense, as
PyTorch's are: clipping and Adam would otherwise see others.

Keras's convolutions want the channels innermost: batches are laid out so off the clock, and weights when they are
loaded.

Mixed precision is Keras's: ``mixed_bfloat16``, and ``mixed_float16`` with ``LossScaleOptimizer``.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

os.environ["KERAS_BACKEND"] = "tensorflow"  # Keras reads it once, when it is imported

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor
from tensorflow.python.util import _pywrap_util_port  # private: nothing public says whether oneDNN is in force

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import GRADIENT_SCALE, LOSS_SCALE, check_trained, check_weights
from benchlib.workloads import Values, Workload

TITLE = "TensorFlow"
PACKAGE = "tensorflow"
DISTRIBUTIONS = ("tensorflow-cpu", "tensorflow")
DEVICES = ("cpu", "cuda")
NEEDS = (
    {
        "device": "cuda",
        "distributions": ("tensorflow", "tf-nightly"),
        "otherwise": (
            "{lacking} is not installed, but a build without CUDA: environments/tensorflow-cuda.txt is one with it; "
            "else use 'cpu'"
        ),
    },
)
MODES = ("graph", "eager", "graph-xla")
PRECISIONS = ("fp32", "bf16", "fp16")
VARIABLES = ("TF_", "TENSORFLOW", "KERAS", "XLA_FLAGS")
KNOBS = (
    {
        "name": "TF_FORCE_GPU_ALLOW_GROWTH",
        "value": "true",
        "when": "always",
        "devices": ("cuda",),
        "reason": (
            "as installed TensorFlow takes nearly all of a GPU's memory when it starts, and the processes that are "
            "compared would find none"
        ),
        "source": "TensorFlow guide, 'Use a GPU', 'Limiting GPU memory growth'",
    },
)

_MIB = 2**20
_POLICIES = {"fp32": "float32", "bf16": "mixed_bfloat16", "fp16": "mixed_float16"}
_NAMES = {  # Keras's name of a variable to the workload's, where they differ
    "kernel": "weight",
    "embeddings": "weight",
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
_DROPS = ((tf.nn, "dropout"), (tf.nn.experimental, "stateless_dropout"), (tf.nn.experimental, "general_dropout"))


class Session:
    """One workload in TensorFlow, in this process; ``benchlib.frameworks.Session`` describes each method."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if precision not in PRECISIONS:
            raise BenchlibError(no_such("precision of tensorflow", precision, PRECISIONS))
        for name in knobs:
            raise BenchlibError(f"knob {name!r}: tensorflow has no such setting")
        self._device = _select_device(device)
        self._mode = mode
        self._half = precision == "fp16"
        keras.config.set_dtype_policy(_POLICIES[precision])
        keras.utils.set_random_seed(seed)  # for dropout only: weights and batches come from files

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the workload's file for TensorFlow."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._module, self._targets, training = module, workload.targets, not workload.evaluates
        self._model = model = module.build(values)
        every = {layout.name: layout for layout in _layouts(model)}
        shapes = {name: layout.to_workload(np.empty(layout.variable.shape)).shape for name, layout in every.items()}
        check_weights(f"{workload.name} in tensorflow", self._shapes, shapes)
        self._layouts = {name: every[name] for name in self._shapes}
        self._trained = {name: one.variable for name, one in self._layouts.items() if one.variable.trainable}
        self._untrained = [one.variable for one in self._layouts.values() if not one.variable.trainable]
        check_trained(f"{workload.name} in tensorflow", workload.weights(values), self._trained)
        weights = [variable.value for variable in self._trained.values()]
        if self._trains:
            self._optimizer = optimizer = module.optimizer(model, values, learning_rate)
            if self._half:
                self._optimizer = optimizer = keras.optimizers.LossScaleOptimizer(
                    optimizer, initial_scale=LOSS_SCALE, dynamic_growth_steps=2000
                )
            optimizer.build([*self._trained.values()])
            # Each of its variables is the same number everywhere, at the start.
            self._start = [(one, float(np.ravel(one.numpy())[0])) for one in optimizer.variables]
            factor = GRADIENT_SCALE if self._half else 1.0

            def update(gradients: dict[str, Tensor]) -> None:
                optimizer.apply([*gradients.values()], [self._trained[name] for name in gradients])

            def step(batch: tuple[Tensor, ...]) -> Tensor:
                with tf.GradientTape() as tape:
                    loss = module.loss(model, batch)
                    scaled = optimizer.scale_loss(loss)
                update(dict(zip(self._trained, _dense(tape.gradient(scaled, weights)), strict=True)))
                return loss

            def gradients(batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
                with tf.GradientTape() as tape:
                    scaled = module.loss(model, batch) * factor
                found = _dense(tape.gradient(scaled, weights))
                return {name: gradient / factor for name, gradient in zip(self._trained, found, strict=True)}

            self._update = self._compile(update)
        else:
            backward = values["passes"] == "forward+backward"

            def output_and_gradients(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
                inputs, gradient = batch
                with tf.GradientTape() as tape:
                    tape.watch(inputs)
                    output = model(inputs, training=training)
                found = tape.gradient(output, [inputs, *weights], output_gradients=tf.cast(gradient, output.dtype))
                return output, dict(zip(("input", *self._trained), found, strict=True))

            def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
                # A step returns the gradients, too: a graph would leave out unused results.
                return output_and_gradients(batch) if backward else (model(batch[0], training=training), {})

            def gradients(batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
                return output_and_gradients(batch)[1]

        self._step = self._compile(step)
        self._of_step = not self._trains and backward  # the measured step is the compared one
        self._gradients = self._compile(gradients)
        self._outputs = {
            training: self._compile(lambda inputs, training=training: model(*inputs, training=training))
            for training in (True, False)
        }
        predict = getattr(module, "predict", None)
        self._predict = self._compile(lambda inputs: predict(model, inputs)) if predict else None

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for tensorflow", self._shapes, {name: array.shape for name, array in weights.items()})
        for name, layout in self._layouts.items():
            layout.variable.assign(layout.to_framework(np.asarray(weights[name], np.float32)))
        if self._trains:
            for variable, number in self._start:
                variable.assign(tf.fill(variable.shape, tf.cast(number, variable.dtype)))
            if self._half:
                self._optimizer.dynamic_scale.assign(loss_scale)

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as float32 copies."""
        return {name: layout.to_workload(layout.variable.numpy()) for name, layout in self._layouts.items()}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[Tensor, ...]:
        """A batch on the device, images with the channels innermost: the sample's arrays, whole numbers as int32; or
        (input, gradient of the output).
        """
        return tuple(tf.constant(_channels_last(np.asarray(array))) for array in arrays)

    def step(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Queue one step; return its loss (an operator: its output)."""
        return self._step(batch) if self._trains else self._step(batch)[0]

    def synchronize(self) -> None:
        """Wait until all queued work is done. On the CPU a step has done all its work when it returns."""
        tf.test.experimental.sync_devices()

    def mark(self) -> None:
        """TensorFlow hands out no events of the device's queue."""

    def outputs(self, batch: tuple[Tensor, ...], training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs for a batch's inputs; weights and running statistics stay as they were."""
        with self._restore_untrained():
            if not self._trains and training:
                outputs = self.step(batch)  # an operator's step is its output, and is measured
            else:
                outputs = self._outputs[training](batch[: -self._targets])
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return tuple(map(self.to_numpy, outputs))

    def predictions(self, batch: tuple[Tensor, ...]) -> np.ndarray:
        """The predictions for a batch's inputs, in evaluation behaviour."""
        if self._predict is None:
            return self.outputs(batch, training=False)[0].argmax(axis=-1)
        return self._predict(batch[: -self._targets]).numpy()

    def gradients(self, batch: tuple[Tensor, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (an operator: also ``input``); weights and statistics stay as they were."""
        with self._restore_untrained():
            gradients = dict(self._step(batch)[1] if self._of_step else self._gradients(batch))
        of_input = {} if self._trains else {"input": self.to_numpy(gradients.pop("input"))}
        return of_input | {name: self._layouts[name].to_workload(_copy(array)) for name, array in gradients.items()}

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        scale = self._optimizer.dynamic_scale.numpy() if self._half else np.float32(1)
        ready = [
            {name: tf.constant(self._layouts[name].to_framework(array) * scale) for name, array in one.items()}
            for one in gradients
        ]
        for number in range(steps):
            self._update(ready[number % len(ready)])

    def dropouts(self, batch: tuple[Tensor, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss. The model's own
        code runs in eager mode for this, because nothing can look into a graph.
        """
        with self._restore_untrained(), _record_dropouts() as seen:
            if training:
                self._module.loss(self._model, batch)
            else:
                self._model(*batch[: -self._targets], training=False)
        return [(name, self.to_numpy(given), self.to_numpy(left)) for name, given, left in seen]

    def to_numpy(self, value: Tensor) -> np.ndarray:
        """A tensor that the model handed out, such as the result of :meth:`step`, as a float32 copy. Images have their
        channels first, as in the arrays for :meth:`put`.
        """
        return _channels_first(_copy(value))

    def settings(self) -> dict[str, str | int | float | bool]:
        """Threads, libraries and precision in force, read back from TensorFlow, Keras and the operating system.

        As installed, TensorFlow computes an operation with a thread for each core that its process may use
        (``intra_op_parallelism``: 0). It has as many to launch operations (``launching_threads``: those there are).
        """
        names = [path.read_text(encoding="utf-8").strip() for path in Path("/proc/self/task").glob("*/comm")]
        settings = {
            "cores": len(os.sched_getaffinity(0)),
            "intra_op_parallelism": tf.config.threading.get_intra_op_parallelism_threads(),
            "inter_op_parallelism": tf.config.threading.get_inter_op_parallelism_threads(),
            "launching_threads": sum(name.startswith("tf_Compute") for name in names),
            "onednn": _pywrap_util_port.IsMklEnabled(),
            "jit": tf.config.optimizer.get_jit() or "off",
            "device": self._device,
        }
        if self._device == "GPU":
            settings["tf32"] = tf.config.experimental.tensor_float_32_execution_enabled()
        policy = keras.config.dtype_policy()
        if policy.compute_dtype != policy.variable_dtype:
            settings["mixed_precision"] = policy.compute_dtype
            scaled = self._trains and self._half
            settings["loss_scale"] = float(self._optimizer.dynamic_scale.numpy()) if scaled else 1.0
        return settings

    def device_memory(self) -> dict[str, float]:
        """Device memory in MiB as TensorFlow's allocator counts it; empty on the CPU, where it counts none."""
        if self._device == "CPU":
            return {}
        counted = tf.config.experimental.get_memory_info("GPU:0")
        return {"allocated": counted["current"] / _MIB, "peak": counted["peak"] / _MIB}

    @staticmethod
    def versions() -> dict[str, str]:
        """The versions of TensorFlow and Keras, and of the libraries for GPUs that it was built with."""
        built = tf.sysconfig.get_build_info()
        versions = {"tensorflow": tf.__version__, "keras": importlib.metadata.version("keras")}
        names = {"cuda": "cuda_version", "cudnn": "cudnn_version"}
        return {**versions, **{name: str(built[key]) for name, key in names.items() if key in built}}

    def _compile(self, function: Callable) -> Callable:
        if self._mode == "eager":
            return function
        return tf.function(function, autograph=False, jit_compile=True if self._mode == "graph-xla" else None)

    @contextmanager
    def _restore_untrained(self) -> Iterator[None]:
        before = [variable.numpy() for variable in self._untrained]
        yield
        for variable, array in zip(self._untrained, before, strict=True):
            variable.assign(array)


class _Layout:
    """A weight of the workload: its variable in the model, and its layout there."""

    def __init__(self, path: str, variable: keras.Variable, layer: keras.Layer) -> None:
        self.name = f"{path}{_NAMES.get(variable.name, variable.name)}"
        self.variable = variable
        recurrent = not getattr(layer, "as_cudnn", True)
        self._gates = layer.gates if recurrent else ()
        self._turned = len(variable.shape) > 1 and (recurrent or isinstance(layer, layers.Conv2D | layers.Dense))
        self._image = getattr(layer, "image", None) if self._turned else None

    def to_framework(self, array: np.ndarray) -> np.ndarray:
        """From the workload's (outputs, inputs, ...) to (..., inputs, outputs)."""
        if self._image:  # the workload has all places of an image, channel by channel, in one dimension
            *sides, channels = self._image
            array = np.moveaxis(array.reshape(-1, channels, *sides), 1, -1).reshape(len(array), -1)
        array = self._in_order(array, self._gates)
        return np.ascontiguousarray(np.moveaxis(array, (0, 1), (-1, -2))) if self._turned else array

    def to_workload(self, array: np.ndarray) -> np.ndarray:
        """From (..., inputs, outputs) to the workload's layout, as a copy."""
        if self._turned:
            array = np.moveaxis(array, (-1, -2), (0, 1))
        if self._image:
            array = np.moveaxis(array.reshape(-1, *self._image), -1, 1).reshape(len(array), -1)
        return np.array(self._in_order(array, np.argsort(self._gates)), order="C")

    def _in_order(self, array: np.ndarray, gates: Sequence[int]) -> np.ndarray:
        """The rows of a recurrent layer's gates in another order."""
        if not self._gates:
            return array
        every = np.split(array, len(gates))
        return np.concatenate([every[gate] for gate in gates])


def _layouts(layer: keras.Layer, path: str = "") -> Iterator[_Layout]:
    """The layouts of all weights and running statistics of a model, by the names of its layers' attributes."""
    inner = list(_layers_of(layer))
    of_inner = {id(variable) for _, one in inner for variable in one.weights}
    for variable in layer.weights:
        if id(variable) not in of_inner:
            yield _Layout(path, variable, layer)
    for name, one in inner:
        yield from _layouts(one, f"{path}{name}.")


def _layers_of(layer: keras.Layer) -> Iterator[tuple[str, keras.Layer]]:
    """A layer's own ones, by attribute; ``layers_`` is ``layers``, which Keras has another use for."""
    for attribute, value in vars(layer).items():
        name = attribute.rstrip("_")
        if attribute.startswith("_"):
            continue
        if isinstance(value, keras.Layer):
            yield name, value
        elif isinstance(value, list):
            yield from ((f"{name}.{place}", one) for place, one in enumerate(value) if isinstance(one, keras.Layer))


def _copy(value: Tensor) -> np.ndarray:
    return tf.cast(value, tf.float32).numpy().copy()


def _dense(gradients: Sequence[Tensor | tf.IndexedSlices]) -> list[Tensor]:
    return [tf.convert_to_tensor(gradient) for gradient in gradients]


@contextmanager
def _record_dropouts() -> Iterator[list[tuple[str, Tensor, Tensor]]]:
    """Record each call of a function that drops, a layer's or a model's own: its name, its input and its output."""
    seen: list[tuple[str, Tensor, Tensor]] = []

    def watched(name: str, drop: Callable) -> Callable:
        def dropping(x: Tensor, *arguments: Any, **named: Any) -> Tensor:
            left = drop(x, *arguments, **named)
            seen.append((name, x, left))
            return left

        return dropping

    before = [(module, name, getattr(module, name)) for module, name in _DROPS]
    for module, name, drop in before:
        setattr(module, name, watched(name, drop))
    try:
        yield seen
    finally:
        for module, name, drop in before:
            setattr(module, name, drop)


def _select_device(device: str) -> str:
    """Have this process use a device, and no other; return TensorFlow's name of it."""
    if device not in DEVICES:
        raise BenchlibError(
            f"device {device!r}: tensorflow has a path to {' and '.join(DEVICES)} only; install a framework that has "
            "one to it, or choose device 'cpu'"
        )
    if device == "cpu":
        if tf.config.get_visible_devices("GPU"):
            tf.config.set_visible_devices([], "GPU")
        return "CPU"
    if not tf.config.get_visible_devices("GPU"):
        raise BenchlibError(
            f"device {device!r}: tensorflow {tf.__version__} finds no GPU here; install the build of tensorflow for it "
            "(environments/tensorflow-cuda.txt) and its driver, or choose device 'cpu'"
        )
    return "GPU"


def _channels_last(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if array.ndim == 4 else array


def _channels_first(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, -1, 1)) if array.ndim == 4 else array
