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

TensorFlow 2.3, whose own Keras 2 goes by Keras 3's names here (``benchlib/workloads/_keras2.py``), has fp32 and fp64,
and on the CPU only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

os.environ["KERAS_BACKEND"] = "tensorflow"  # Keras reads it once, when it is imported

import tensorflow as tf
from tensorflow import Tensor

# Private, as nothing public says: callbacks of operations, whether they are deterministic, a profiler, oneDNN.
from tensorflow.python.eager import context
from tensorflow.python.framework import config, op_callbacks, test_util
from tensorflow.python.profiler import profiler_v2

from benchlib.errors import BenchlibError, NotInThisVersion, no_such
from benchlib.frameworks import GRADIENT_SCALE, LOSS_SCALE, Draw, NoMasks, check_trained, check_weights, product
from benchlib.workloads import Values, Workload, _keras2
from benchlib.workloads._keras2 import keras, raw

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
PRECISIONS = ("fp32", "bf16", "fp16", "fp64")
VARIABLES = ("TF_", "TENSORFLOW", "KERAS", "XLA_FLAGS")
ROUNDS = 1e-6  # Keras's own optimizers make numbers of Python, such as a momentum, fp32 first, whatever the precision
CHANGING = ("launching_threads", "loss_scale")
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
_POLICIES = {"fp32": "float32", "bf16": "mixed_bfloat16", "fp16": "mixed_float16", "fp64": "float64"}
_NAMES = {  # Keras's name of a variable to the workload's, where they differ
    "kernel": "weight",
    "embeddings": "weight",
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
_UNCOUNTED = ("Einsum", "CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")  # products for which we have no formula


class Session:
    """One workload in TensorFlow, in this process; ``benchlib.frameworks.Session`` describes each method."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if precision not in PRECISIONS:
            raise BenchlibError(no_such("precision of tensorflow", precision, PRECISIONS))
        if _keras2.IN_USE and precision not in ("fp32", "fp64"):
            raise NotInThisVersion(
                f"precision {precision!r}: not in this version: tensorflow {tf.__version__} has mixed precision as an "
                "experiment, with another interface"
            )
        for name in knobs:
            raise BenchlibError(f"knob {name!r}: tensorflow has no such setting")
        self._device = _select_device(device)
        self._mode = mode
        self._half = precision == "fp16"
        self._step: Any = None
        self._optimizer: Any = None
        keras.config.set_floatx("float64" if precision == "fp64" else "float32")
        keras.config.set_dtype_policy(_POLICIES[precision])
        keras.utils.set_random_seed(seed)  # for dropout only: weights and batches come from files

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the workload's file for TensorFlow."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._name = workload.name
        self._module, self._targets, training = module, workload.targets, not workload.evaluates
        self._model = model = module.build(values)
        every = {layout.name: layout for layout in _layouts(model)}
        shapes = {name: layout.to_workload(np.empty(layout.variable.shape)).shape for name, layout in every.items()}
        check_weights(f"{workload.name} in tensorflow", self._shapes, shapes)
        self._layouts = {name: every[name] for name in self._shapes}
        self._trained = {name: one.variable for name, one in self._layouts.items() if one.variable.trainable}
        self._untrained = [one.variable for one in self._layouts.values() if not one.variable.trainable]
        check_trained(f"{workload.name} in tensorflow", workload.weights(values), self._trained)
        weights = [raw(variable) for variable in self._trained.values()]
        if self._trains:
            optimizer = module.optimizer(model, values, learning_rate)
            if self._half:
                optimizer = keras.optimizers.LossScaleOptimizer(
                    optimizer, initial_scale=LOSS_SCALE, dynamic_growth_steps=2000
                )
            optimizer.build([*self._trained.values()])
            self._optimizer = optimizer
            # Each of its variables is the same number everywhere, at the start.
            self._start = [(one, np.ravel(one.numpy())[0]) for one in optimizer.variables]
            factor = GRADIENT_SCALE if self._half else 1.0

            def update(gradients: dict[str, Tensor]) -> None:
                optimizer.apply([*gradients.values()], [self._trained[name] for name in gradients])

            def step(batch: tuple[Tensor, ...]) -> Tensor:
                with tf.GradientTape() as tape:
                    loss = module.loss(model, batch)
                    scaled = optimizer.scale_loss(loss)
                update(dict(zip(self._trained, _dense(tape.gradient(scaled, weights)))))
                return loss

            def gradients(batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
                with tf.GradientTape() as tape:
                    scaled = module.loss(model, batch) * factor
                found = _dense(tape.gradient(scaled, weights))
                return {name: gradient / factor for name, gradient in zip(self._trained, found)}

            self._update = self._compile(update)
        else:
            backward = values["passes"] == "forward+backward"

            def output_and_gradients(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
                inputs, gradient = batch
                with tf.GradientTape() as tape:
                    tape.watch(inputs)
                    output = model(inputs, training=training)
                found = tape.gradient(output, [inputs, *weights], output_gradients=tf.cast(gradient, output.dtype))
                return output, dict(zip(("input", *self._trained), found))

            def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
                # A step returns the gradients, too: a graph would leave out unused results.
                return output_and_gradients(batch) if backward else (model(batch[0], training=training), {})

            def gradients(batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
                return output_and_gradients(batch)[1]

        def forward(inputs: tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...]:
            return model(*inputs, training=True)

        self._plain = {"step": step, "gradients": gradients, "outputs": forward}
        self._masked = {name: self._compile(_with_masks(function)) for name, function in self._plain.items()}
        self._places: dict[tuple, list[tuple[tuple[int, ...], float]]] = {}
        self._training = training
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
            layout.variable.assign(layout.to_framework(np.asarray(weights[name], keras.config.floatx())))
        if self._trains:
            for variable, number in self._start:
                variable.assign(tf.fill(variable.shape, number))
            if self._half:
                self._optimizer.dynamic_scale.assign(loss_scale)

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as copies in float32 (in ``fp64``: float64)."""
        return {name: layout.to_workload(layout.variable.numpy()) for name, layout in self._layouts.items()}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[Tensor, ...]:
        """A batch on the device, images with the channels innermost: the sample's arrays, whole numbers as int32; or
        (input, gradient of the output).
        """
        return tuple(tf.constant(_channels_last(_as_floatx(array))) for array in arrays)

    def step(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Queue one step; return its loss (an operator: its output)."""
        return self._step(batch) if self._trains else self._step(batch)[0]

    def synchronize(self) -> None:
        """Wait until all queued work is done. On the CPU a step has done all its work when it returns."""
        if not _keras2.IN_USE:
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
        """The result of the file's ``predict`` for a batch's inputs, in evaluation behaviour."""
        return self._predict(batch[: -self._targets]).numpy()

    def gradients(self, batch: tuple[Tensor, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (an operator: also ``input``); weights and statistics stay as they were."""
        with self._restore_untrained():
            gradients = dict(self._step(batch)[1] if self._of_step else self._gradients(batch))
        of_input = {} if self._trains else {"input": self.to_numpy(gradients.pop("input"))}
        of_weights = {name: self._layouts[name].to_workload(_copy(array)) for name, array in gradients.items()}
        return {**of_input, **of_weights}

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        scale = self._optimizer.dynamic_scale.numpy() if self._half else 1

        def ready_one(name: str, array: np.ndarray) -> Tensor:
            return tf.constant(_as_floatx(self._layouts[name].to_framework(array) * scale))

        ready = [{name: ready_one(name, array) for name, array in one.items()} for one in gradients]
        for number in range(steps):
            self._update(ready[number % len(ready)])

    def dropouts(self, batch: tuple[Tensor, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss. The model's own
        code runs in eager mode for this, because nothing can look into a graph.
        """
        seen: list[tuple[str, Tensor, Tensor]] = []

        def record(name: str, drop: Callable[[], Tensor], x: Tensor, *_: Any) -> Tensor:
            left = drop()
            seen.append((name, x, left))
            return left

        with self._restore_untrained(), _drop_by(record):
            if training:
                self._module.loss(self._model, batch)
            else:
                self._model(*batch[: -self._targets], training=False)
        return [(name, self.to_numpy(given), self.to_numpy(left)) for name, given, left in seen]

    @contextmanager
    def given_masks(self, draw: Draw) -> Iterator[None]:
        """Within it, every dropout takes a mask of ``draw``. In a graph masks are inputs of a function of its own."""

        def masked(name: str) -> Callable:
            def call(batch: tuple[Tensor, ...]) -> Any:
                images = any(len(field.shape) == 4 for field in batch)  # four dimensions of others are an attention's
                masks = []
                for place, (shape, p) in enumerate(self._places_of(name, batch)):
                    if images and len(shape) == 4:
                        masks.append(_channels_last(draw(place, (shape[0], shape[3], *shape[1:3]), p)))
                    else:
                        masks.append(draw(place, shape, p))
                return self._masked[name](batch, [tf.constant(mask) for mask in masks])

            return call

        usual = self._step, self._gradients, self._outputs
        self._step, self._gradients = masked("step"), masked("gradients")
        self._outputs = {**self._outputs, True: masked("outputs")}
        try:
            yield
        finally:
            self._step, self._gradients, self._outputs = usual

    def layers(self, batch: tuple[Tensor, ...]) -> list[tuple[str, np.ndarray]]:
        """The input and the output, before its activation, of each layer with weights, and the loss of training."""
        whole = "" if self._trains else self._name  # an operator is a layer of its own
        names = {id(layout.layer): [layout.name.rpartition(".")[0] or whole] for layout in self._layouts.values()}
        for loop in _loops(self._model):
            cells = dict.fromkeys(id(layout.layer) for layout in _layouts(loop))
            names[id(loop)] = [name for cell in cells for name in names.pop(cell, ())] or names[id(loop)]
        seen: list[tuple[str, np.ndarray]] = []
        usual = keras.Layer.__call__

        def call(layer: keras.Layer, *arguments: Any, **named: Any) -> Any:
            own = [name for name in names.get(id(layer), ()) if name]
            if not own:
                return usual(layer, *arguments, **named)
            given = self.to_numpy((*arguments, *named.values())[0])
            image = getattr(layer, "image", None)
            if image:
                given = np.moveaxis(given.reshape(-1, *image), -1, 1).reshape(given.shape)
            seen.extend((f"input of {name}", given) for name in own)
            with _before_activation(layer) as before:
                output = usual(layer, *arguments, **named)
            first = before or tf.nest.flatten(output)
            seen.extend((f"output of {name}", self.to_numpy(first[0])) for name in own)
            return output

        with self._restore_untrained(), _operation_by_operation():
            keras.Layer.__call__ = call
            try:
                if self._trains:
                    loss = self._module.loss(self._model, batch)
                    seen.append(("loss", self.to_numpy(loss)))
                else:
                    self._model(*batch[: -self._targets], training=self._training)
            finally:
                keras.Layer.__call__ = usual
        return seen

    def multiply_adds(self, batch: tuple[Tensor, ...]) -> float | None:
        """The multiply-adds of one step: of each operation by its shapes, as TensorFlow runs the step one by one."""
        found: list[float | None] = []
        self.operations: list[str] = []

        def count(kind: str | bytes, inputs: Sequence[Any], attributes: Any, outputs: Sequence[Any], *_: Any) -> None:
            self.operations.append(tf.compat.as_str(kind))
            found.append(_multiply_adds(tf.compat.as_str(kind), inputs, outputs))

        optimizers: list[Any] = self._optimizer.variables if self._optimizer else []
        variables = [*(layout.variable for layout in self._layouts.values()), *optimizers]
        before = [variable.numpy() for variable in variables]
        with _operation_by_operation():
            op_callbacks.add_op_callback(count)
            try:
                self._plain["step"](batch)
            finally:
                op_callbacks.remove_op_callback(count)
        for variable, array in zip(variables, before):
            variable.assign(array)
        return None if None in found else float(sum(found))

    def to_numpy(self, value: Tensor) -> np.ndarray:
        """A tensor that the model handed out, such as the result of :meth:`step`, as a copy in float32 (in ``fp64``:
        float64). Images have their channels first, as in the arrays for :meth:`put`.
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
            "onednn": test_util.IsMklEnabled(),
            "jit": tf.config.optimizer.get_jit() or "off",
            "optimizer_options": json.dumps(tf.config.optimizer.get_experimental_options(), sort_keys=True),
            "floatx": keras.config.floatx(),
            "dtype_policy": keras.config.dtype_policy().name,
            "functions_run_eagerly": tf.config.functions_run_eagerly(),
            "operation_callbacks": len(context.context().op_callbacks),  # such as those that look for NaN
            "synchronous": tf.config.experimental.get_synchronous_execution(),
            "log_device_placement": tf.debugging.get_log_device_placement(),
            "profiler": profiler_v2._profiler is not None,
            "device": self._device,
        }
        if hasattr(config, "is_op_determinism_enabled"):  # 2.8
            settings["deterministic_operations"] = config.is_op_determinism_enabled()
        launching = sum(name.startswith("tf_Compute") for name in names)
        if launching:
            settings["launching_threads"] = launching  # which TensorFlow starts with its first operation
        if hasattr(self._step, "experimental_get_tracing_count"):
            settings["compilations"] = self._step.experimental_get_tracing_count()
        if self._device == "GPU":
            settings["tf32"] = tf.config.experimental.tensor_float_32_execution_enabled()
        policy = keras.config.dtype_policy()
        if policy.compute_dtype != policy.variable_dtype:
            settings["mixed_precision"] = policy.compute_dtype
            scaled = self._optimizer and self._half
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
        versions = {"tensorflow": tf.__version__, "keras": keras.__version__}
        names = {"cuda": "cuda_version", "cudnn": "cudnn_version"}
        return {**versions, **{name: str(built[key]) for name, key in names.items() if key in built}}

    def _compile(self, function: Callable) -> Callable:
        if self._mode == "eager":
            return function
        name = "experimental_compile" if tf.__version__.startswith("2.3.") else "jit_compile"
        return tf.function(function, autograph=False, **{name: True if self._mode == "graph-xla" else None})

    def _places_of(self, name: str, batch: tuple[Tensor, ...]) -> list[tuple[tuple[int, ...], float]]:
        """Shape and probability of each dropout in a forward pass with batches of these shapes."""
        key = name == "outputs", *(tuple(field.shape) for field in batch)
        if key not in self._places:
            seen: list[tuple[tuple[int, ...], float]] = []

            def look(name: str, drop: Callable[[], Tensor], x: Tensor, p: float, _: Any) -> Tensor:
                if p > 0:
                    seen.append((tuple(x.shape), float(p)))
                return x

            with self._restore_untrained(), _drop_by(look):
                if name != "outputs" and self._trains:
                    self._module.loss(self._model, batch)
                else:
                    self._plain[name](batch)
            self._places[key] = seen
        return self._places[key]

    @contextmanager
    def _restore_untrained(self) -> Iterator[None]:
        before = [variable.numpy() for variable in self._untrained]
        yield
        for variable, array in zip(self._untrained, before):
            variable.assign(array)


class _Layout:
    """A weight of the workload: its variable in the model, and its layout there."""

    def __init__(self, path: str, variable: keras.Variable, layer: keras.Layer) -> None:
        name = variable.name.rpartition("/")[2].partition(":")[0]  # in Keras 2: conv1/kernel:0
        self.name = f"{path}{_NAMES.get(name, name)}"
        self.variable, self.layer = variable, layer
        recurrent = not getattr(layer, "as_cudnn", True)
        self._gates = layer.gates if recurrent else ()
        turned = keras.layers.Conv2D, keras.layers.Dense
        self._turned = len(variable.shape) > 1 and (recurrent or isinstance(layer, turned))
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
    """A layer's own ones, by attribute; ``layers_`` is ``layers``, which Keras has another use for. Those of a model
    that was made of tensors, or in a sequence, are no attributes: by Keras's names.
    """
    if isinstance(layer, keras.Sequential) or type(layer).__name__ == "Functional":  # which has no public name
        yield from ((one.name, one) for one in layer.layers)
        return
    for attribute, value in vars(layer).items():
        name = attribute.rstrip("_")
        if attribute.startswith("_"):
            continue
        if isinstance(value, keras.Layer):
            yield name, value
        elif isinstance(value, list):
            yield from ((f"{name}.{place}", one) for place, one in enumerate(value) if isinstance(one, keras.Layer))


_LOOPS = keras.layers.RNN, keras.layers.Bidirectional
"""Kinds of layers whose weights are those of cells, which Keras calls within a loop."""


def _loops(layer: keras.Layer) -> Iterator[keras.Layer]:
    if isinstance(layer, _LOOPS):
        yield layer
        return
    for _, one in _layers_of(layer):
        yield from _loops(one)


def _copy(value: Tensor) -> np.ndarray:
    return tf.cast(value, keras.config.floatx()).numpy().copy()


def _as_floatx(array: np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    return array.astype(keras.config.floatx(), copy=False) if array.dtype.kind == "f" else array


def _dense(gradients: Sequence[Tensor | tf.IndexedSlices]) -> list[Tensor]:
    return [tf.convert_to_tensor(gradient) for gradient in gradients]


@contextmanager
def _drop_by(by: Callable) -> Iterator[None]:
    """Have ``by`` called in place of each function that drops, a layer's or a model's own: with its name, a call of it
    as usual, its input, its probability and the shape of its mask where that is given.
    """

    def replaced(name: str, drop: Callable) -> Callable:
        def dropping(x: Tensor, rate: float, *arguments: Any, **named: Any) -> Tensor:
            return by(name, lambda: drop(x, rate, *arguments, **named), x, rate, named.get("noise_shape"))

        return dropping

    before = [(module, name, getattr(module, name)) for module, name in _keras2.DROPS]
    for module, name, drop in before:
        setattr(module, name, replaced(name, drop))
    try:
        with _operation_by_operation():
            yield
    finally:
        for module, name, drop in before:
            setattr(module, name, drop)


def _with_masks(function: Callable) -> Callable:
    """The same function with masks as a second argument, which its dropouts take in turn."""

    def with_masks(batch: tuple[Tensor, ...], masks: Sequence[Tensor]) -> Any:
        left = list(masks)

        def take(name: str, drop: Callable[[], Tensor], x: Tensor, p: float, shape: Sequence[int] | None) -> Tensor:
            if p == 0:
                return x
            if not left:
                raise NoMasks("its dropouts are not the same ones in each pass")
            mask = left.pop(0)
            if shape is not None:  # whole channels, by the first number of each
                mask = tf.slice(mask, [0] * len(mask.shape), shape)
            return x * tf.cast(mask, x.dtype) / (1 - p)

        with _drop_by(take):
            found = function(batch)
        if left:
            raise NoMasks("a dropout is in a loop, which a graph has once for all its rounds")
        return found

    return with_masks


@contextmanager
def _operation_by_operation() -> Iterator[None]:
    """Functions that a model's file has compiled run as they are written."""
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


@contextmanager
def _before_activation(layer: keras.Layer) -> Iterator[list[Tensor]]:
    """The numbers that a layer gives to its own activation, which elsewhere is no part of the layer."""
    given: list[Tensor] = []
    activation = getattr(layer, "activation", None)
    if activation is None or isinstance(layer, _LOOPS):
        yield given
        return

    def keep(x: Tensor) -> Tensor:
        given.append(x)
        return activation(x)

    layer.activation = keep
    try:
        yield given
    finally:
        layer.activation = activation


def _multiply_adds(kind: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> float | None:
    """Those of an operation that is a product or a convolution, else 0; None if there is no formula for it."""
    if kind in _UNCOUNTED:
        return None
    if kind == "MatMul" or kind.startswith("BatchMatMul"):
        *several, _, _ = inputs[0].shape
        return product(outputs[0].shape) * product(inputs[0].shape) / product(several) / outputs[0].shape[-2]
    if kind.startswith(("Conv", "DepthwiseConv")):
        through = inputs[2] if "Backprop" in kind else outputs[0]
        kernel = outputs[0] if "BackpropFilter" in kind else inputs[1]
        return product(through.shape) * product(kernel.shape[: -2 if kind.startswith("Depthwise") else -1])
    if kind == "BlockLSTM" or kind == "BlockLSTMGrad":
        _, x, _, _, weight, *_ = inputs  # (length, batch, inputs), (inputs + units, 4 * units)
        return product(x.shape[:2]) * product(weight.shape) * (1 if kind == "BlockLSTM" else 2)
    return 0


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
    if _keras2.IN_USE:
        raise NotInThisVersion(
            f"device {device!r}: not in this version: tensorflow {tf.__version__} has nothing to wait for a GPU with"
        )
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
