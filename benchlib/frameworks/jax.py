"""JAX, with flax.nnx for the models and optax for the optimizers: builds a workload and runs its steps. It has been run
for minutes on one NVIDIA H200 (docs/gallery/gpu), else on CPUs.

Graph mode is ``jax.jit`` of the whole step (forward, loss, gradients and update) over dictionaries of arrays, whose
memory is donated. This is flax's functional training loop, which spares each step the walk through the model's objects.
Eager mode dispatches the same step operation by operation; only the loops of recurrent layers are one compiled
operation each. In JAX it serves to find errors, not to train; it is here because its ratio shows the worth of
compilation. Outputs and predictions are compiled as steps are.

Mixed precision is flax's: each layer computes in its ``dtype``, its weights stay fp32. That is bf16 alone: fp16, which
needs a scaled loss (``flax.training.dynamic_scale``), is for GPUs, and is not written. In fp64 layers, weights and
batches are float64. ``float`` in a workload's file is JAX's default type: float32, and in fp64 float64.

``nnx.Conv`` wants the channels innermost: batches are laid out so off the clock, and weights when they are loaded.

JAX documents no setting for its number of threads on the CPU: it takes the cores that its process may use. Its XLA
reads ``PJRT_NPROC``, which no lane sets. It hands out no events of a device's queue, so that blocks have no time by a
GPU's clock. Data-parallel training in JAX uses several devices in one process, on the CPU, too. A launcher's processes
do not work that way, so there is no ``LAUNCHER``.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import Array

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import LOSS_SCALE, Draw, NoMasks, check_trained, check_weights
from benchlib.workloads import Values, Workload

TITLE = "JAX"
PACKAGE = "jax"
DEVICES = ("cpu", "cuda")
MODES = ("graph", "eager")
PRECISIONS = ("fp32", "bf16", "fp64")
VARIABLES = ("JAX_", "XLA_", "PJRT_", "TF_CPP_", "TF_XLA_", "FLAX_")
CHANGING = ("threads",)
NEEDS = (
    {
        "device": "cpu",
        "modules": ("flax",),
        "otherwise": "{lacking} is not installed, which the models are made of: pip install flax",
    },
    {
        "device": "cpu",
        "modules": ("optax",),
        "otherwise": "{lacking} is not installed, which the optimizers are from: pip install optax",
    },
    {
        "device": "cuda",
        "modules": ("flax",),
        "otherwise": "{lacking} is not installed, which the models are made of: pip install flax",
    },
    {
        "device": "cuda",
        "modules": ("optax",),
        "otherwise": "{lacking} is not installed, which the optimizers are from: pip install optax",
    },
    {
        "device": "cuda",
        "modules": ("jax_cuda13_plugin", "jax_cuda12_plugin"),
        "otherwise": "there is no {lacking}: pip install 'jax[cuda13]', see environments/jax-cuda.txt; or use 'cpu'",
    },
)
KNOBS = (
    {
        "name": "JAX_PLATFORMS",
        "value": "cpu",
        "when": "always",
        "devices": ("cpu",),
        "reason": "a build for GPUs would take most of a GPU's memory, and print, where one is there and not asked for",
        "source": "JAX documentation, 'Configuration options'",
    },
    {
        "name": "XLA_PYTHON_CLIENT_PREALLOCATE",
        "value": "false",
        "when": "always",
        "devices": ("cuda",),
        "reason": (
            "a process takes the GPU's memory as it needs it: as installed the first takes three quarters, and those "
            "beside it, which are compared with it, find too little"
        ),
        "source": "JAX documentation, 'GPU memory allocation'",
    },
    {
        "name": "JAX_DEFAULT_PRNG_IMPL",
        "value": "rbg",
        "devices": ("cpu",),
        "reason": (
            "dropout's random numbers come from XLA's own generator, which takes less time for them than Threefry, the "
            "one as installed; keys are still made by Threefry"
        ),
        "source": "JAX documentation, 'jax.random', 'Advanced RNG configuration'",
    },
    {
        "name": "JAX_DEFAULT_MATMUL_PRECISION",
        "value": "highest",
        "when": "gate",
        "devices": ("cuda",),
        "reason": (
            "in the gate only: products and convolutions of fp32, which as installed round their factors to TF32 (10 "
            "bits after the point) in either lane, are computed as fp32, in XLA's own kernels, too"
        ),
        "source": "JAX documentation, 'jax.default_matmul_precision' and 'jax.lax.Precision'",
    },
)

_MIB = 2**20
_AS_INSTALLED = {"cpu": "float32", "gpu": "tensorfloat32, where the GPU has it"}  # as jax.lax.Precision.DEFAULT says
_BUILT_WITH = ("jax-cuda13-plugin", "jax-cuda12-plugin", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12")
_NAMES = {  # by type of module: flax's name to the workload's, where they differ
    nnx.Conv: {"kernel": "weight"},
    nnx.Linear: {"kernel": "weight"},
    nnx.LinearGeneral: {"kernel": "weight"},
    nnx.Embed: {"embedding": "weight"},
    nnx.LayerNorm: {"scale": "weight"},
    nnx.BatchNorm: {"scale": "weight", "mean": "running_mean", "var": "running_var"},
}

Place = tuple[str | int, ...]
"""The path of a variable in a model."""

Arrays = dict[str, Array]


class Session:
    """One workload in JAX, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if precision not in PRECISIONS:
            raise BenchlibError(no_such("precision of jax", precision, PRECISIONS))
        for name in knobs:
            raise BenchlibError(f"knob {name!r}: jax has no such setting")
        try:
            self._device = jax.devices(device)[0]
        except RuntimeError as error:
            raise BenchlibError(
                f"device {device!r}: jax {jax.__version__} cannot use it here ({str(error).splitlines()[0]}); install "
                "the build of jax for it and its driver, or choose device 'cpu'"
            ) from None
        jax.config.update("jax_default_device", self._device)
        jax.config.update("jax_enable_x64", precision == "fp64")
        self._graph = mode == "graph"
        self._precision = precision
        self._dtype = jnp.float64 if precision == "fp64" else jnp.float32  # of weights and batches
        self._seed = seed  # of dropout only: weights and batches come from files
        self._results: deque[Array] = deque()  # of steps not waited for yet, which no other array depends on
        self._trained: dict[str, Array] = {}
        self._kept: dict[str, Array] = {}
        self._state: Any = ()
        self._step: Any = None
        self._as_opened = jax.config.values

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the workload's file for JAX."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._name, self._trains = workload.name, workload.kind == "training"
        self._module, self._targets, self._evaluates = module, workload.targets, workload.evaluates
        model = nnx.eval_shape(lambda: module.build(values))  # the numbers are those that are loaded
        if self._precision != "fp32":
            for _, layer in nnx.iter_modules(model):
                if hasattr(layer, "dtype"):
                    layer.dtype = jnp.bfloat16 if self._precision == "bf16" else self._dtype
        self._layouts = _layouts(model)
        shapes = {name: layout.to_workload(np.empty(layout.shape)).shape for name, layout in self._layouts.items()}
        check_weights(f"{workload.name} in jax", self._shapes, shapes)
        trained = [name for name, layout in self._layouts.items() if layout.trained]
        check_trained(f"{workload.name} in jax", workload.weights(values), trained)
        self._split(model)
        self._kept = self._first_random()
        if self._trains:
            self._optimizer = optimizer = module.optimizer(values, learning_rate)

            def loss(trained: Arrays, kept: Arrays, batch: tuple[Array, ...]) -> tuple[Array, Arrays]:
                model = self._merge(trained, kept, training=not self._evaluates)
                value = module.loss(model, batch)
                return value, self._state_of(model)

            of_loss = jax.value_and_grad(loss, has_aux=True)

            def update(trained: Arrays, state: Any, gradients: Arrays) -> tuple[Arrays, Any]:
                updates, state = optimizer.update(gradients, state, trained)
                return optax.apply_updates(trained, updates), state

            def step(trained: Arrays, state: Any, kept: Arrays, batch: tuple[Array, ...]) -> tuple[Any, ...]:
                (value, kept), gradients = of_loss(trained, kept, batch)
                return *update(trained, state, gradients), kept, value

            def gradients(trained: Arrays, kept: Arrays, batch: tuple[Array, ...]) -> tuple[Any, ...]:
                (value, kept), gradients = of_loss(trained, kept, batch)
                return value, kept, gradients

            self._update = self._compile(update)
        else:
            backward = values["passes"] == "forward+backward"

            def forward(trained: Arrays, kept: Arrays, inputs: Array) -> tuple[Array, Arrays]:
                model = self._merge(trained, kept, training=not self._evaluates)
                return model(inputs), self._state_of(model)

            def gradients(trained: Arrays, kept: Arrays, batch: tuple[Array, Array]) -> tuple[Any, ...]:
                inputs, gradient = batch
                output, pull, kept = jax.vjp(
                    lambda trained, inputs: forward(trained, kept, inputs), trained, inputs, has_aux=True
                )
                of_weights, of_input = pull(gradient.astype(output.dtype))
                return output, kept, {"input": of_input, **of_weights}

            def step(trained: Arrays, kept: Arrays, batch: tuple[Array, Array]) -> tuple[Any, ...]:
                # A step returns the gradients, too: jax.jit would not compute unused results.
                return gradients(trained, kept, batch) if backward else forward(trained, kept, batch[0])

        self._step = self._compile(step, donate_argnums=(0, 1, 2) if self._trains else ())
        of_step = not self._trains and backward  # the measured step is the compared one
        self._gradients = self._step if of_step else self._compile(gradients)
        self._outputs = {training: self._compile(partial(self._run, training=training)) for training in (True, False)}
        self._predict = self._compile(self._decode) if hasattr(module, "predict") else None
        self._droppable = {"step": step, "gradients": gradients, "outputs": partial(self._run, training=True)}
        self._masked = {name: self._compile(partial(_run_masked, one)) for name, one in self._droppable.items()}
        self._places: dict[tuple, list[tuple[int, tuple[int, ...], float]]] = {}

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for jax", self._shapes, {name: array.shape for name, array in weights.items()})
        self.synchronize()
        self._trained, self._kept = {}, self._random(self._kept)  # dropout goes on
        for name, layout in self._layouts.items():
            where = self._trained if layout.trained else self._kept
            where[layout.key] = jnp.array(layout.to_framework(weights[name]), self._dtype)  # a copy: steps take it over
        if self._trains:
            self._optimize(self._trained)

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as copies."""
        arrays = self._trained | self._kept
        return {name: self._to_workload(name, arrays[self._layouts[name].key]) for name in self._shapes}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[Array, ...]:
        """A batch on the device, images with the channels innermost: the sample's arrays, whole numbers as int32; or
        (input, gradient of the output).
        """
        return tuple(
            jnp.array(_channels_last(array), self._dtype if array.dtype.kind == "f" else None) for array in arrays
        )

    def step(self, batch: tuple[Array, ...]) -> Array:
        """Queue one step; return its loss (an operator: its output)."""
        if self._trains:
            self._trained, self._state, self._kept, loss = self._step(self._trained, self._state, self._kept, batch)
            self._results.append(loss)
            return loss
        output, self._kept, *gradients = self._step(self._trained, self._kept, batch)
        while self._results and self._results[0].is_ready():  # they are as large as the input: let go of them
            self._results.popleft()
        self._results.extend(jax.tree.leaves((output, gradients)))
        return output

    def synchronize(self) -> None:
        """Wait until all queued work is done. In eager mode each array is there by itself, and says nothing of the
        others.
        """
        jax.block_until_ready((self._trained, self._kept, self._state, list(self._results)))
        self._results.clear()

    def mark(self) -> None:
        """JAX hands out no events of the device's queue."""

    def outputs(self, batch: tuple[Array, ...], training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs for a batch's inputs; weights and running statistics stay as they were."""
        if not self._trains and training:  # an operator's step is its output, and is measured
            outputs, *_ = jax.block_until_ready(self._step(self._trained, self._kept, batch))
        else:
            inputs = batch[: -self._targets]
            outputs, kept = jax.block_until_ready(self._outputs[training](self._trained, self._kept, inputs))
            self._kept |= self._random(kept)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return tuple(map(self.to_numpy, outputs))

    def predictions(self, batch: tuple[Array, ...]) -> np.ndarray:
        """The result of the file's ``predict`` for a batch's inputs, in evaluation behaviour."""
        return np.asarray(self._predict(self._trained, self._kept, batch[: -self._targets]))

    def gradients(self, batch: tuple[Array, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (an operator: also ``input``); weights and statistics stay as they were."""
        _, kept, gradients = jax.block_until_ready(self._gradients(self._trained, self._kept, batch))
        self._kept |= self._random(kept)
        of_input = {} if self._trains else {"input": self.to_numpy(gradients.pop("input"))}
        trained = [name for name in self._shapes if self._layouts[name].trained]
        return of_input | {name: self._to_workload(name, gradients[self._layouts[name].key]) for name in trained}

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        ready = [
            {
                self._layouts[name].key: jnp.array(self._layouts[name].to_framework(array), self._dtype)
                for name, array in one.items()
            }
            for one in gradients
        ]
        part = {key: self._trained[key] for key in ready[0]}
        if part.keys() != self._optimized:
            self._optimize(part)
        for number in range(steps):
            part, self._state = self._update(part, self._state, ready[number % len(ready)])
        self._trained |= part

    def dropouts(self, batch: tuple[Array, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss."""
        seen = []

        class Seen(nnx.Dropout):
            def __call__(self, inputs: Array, **how: Any) -> Array:
                left = nnx.Dropout.__call__(self, inputs, **how)
                seen.append(("nnx.Dropout", inputs, left))
                return left

        model = self._merge(self._trained, self._kept, training)
        for _, module in nnx.iter_modules(model):
            if type(module) is nnx.Dropout:
                module.__class__ = Seen
        if training:  # operation by operation: nothing can look into compiled code
            self._module.loss(model, batch)
        else:
            model(*batch[: -self._targets])
        self._kept |= self._random(self._state_of(model))
        return [(name, self.to_numpy(given), self.to_numpy(left)) for name, given, left in seen]

    @contextmanager
    def given_masks(self, draw: Draw) -> Iterator[None]:
        """Within it, masks are ``draw``'s; compiled functions make way for others, of which masks are inputs."""
        usual = self._step, self._gradients, self._outputs
        self._step, self._gradients = self._draw_for("step", draw), self._draw_for("gradients", draw)
        self._outputs = {**self._outputs, True: self._draw_for("outputs", draw)}
        try:
            yield
        finally:
            self._step, self._gradients, self._outputs = usual

    def layers(self, batch: tuple[Array, ...]) -> list[tuple[str, np.ndarray]]:
        """The inputs and outputs of the layers with weights, and the loss, operation by operation."""
        seen: list[tuple[str, Array]] = []
        owners = {name.rpartition(".")[0] for name in self._layouts}
        model = self._merge(self._trained, self._kept, training=not self._evaluates)
        modules = {_key(path): module for path, module in nnx.iter_modules(model)}
        names = {key: [key or self._name] for key in modules if key in owners and (key or not self._trains)}
        for loop in [key for key, module in modules.items() if isinstance(module, nnx.RNN)]:
            if cell := [key for key in names if key.startswith(f"{loop}." if loop else "")]:
                names[loop] = [name for key in cell for name in names.pop(key)]  # a loop that nothing can look into
        for key, own in names.items():
            modules[key].__class__ = _watch(type(modules[key]), own, seen)
        if self._trains:
            seen.append(("loss", self._module.loss(model, batch)))
        else:
            model(batch[0])
        self._kept |= self._random(self._state_of(model))
        return [(name, self.to_numpy(array)) for name, array in seen]

    def multiply_adds(self, batch: tuple[Array, ...]) -> float | None:
        """Those of the step as JAX has traced it. A product with padding is none, as in XLA's own cost analysis, which
        counts all operations in one sum. None: there is a loop whose length is not known before it runs.
        """
        state = (self._state,) if self._trains else ()
        self.operations: list[str] = []
        traced = jax.make_jaxpr(self._step)(self._trained, *state, self._kept, batch)
        counted = _multiply_adds(traced, self.operations)
        return None if math.isnan(counted) else counted

    def to_numpy(self, value: Array) -> np.ndarray:
        """An array that the model handed out, such as the result of :meth:`step`, as a copy. Images have their channels
        first, as in the arrays for :meth:`put`.
        """
        return _channels_first(self._copy(value))

    def settings(self) -> dict[str, str | int | float | bool]:
        """Threads, device, precisions and compilations, read back from JAX and the operating system.
        ``changed_settings`` are JAX's own that are others than when the session began.
        """
        settings: dict[str, str | int | float | bool] = {
            "cores": len(os.sched_getaffinity(0)),
            "threads": sum(name.startswith("tf_XLAEigen") for name in _thread_names()),
            "device_name": self._device.device_kind,
            "matmul_precision": str(jax.config.jax_default_matmul_precision or _AS_INSTALLED[self._device.platform]),
            "random_numbers": jax.config.jax_default_prng_impl,
            "default_dtype": jnp.result_type(float).name,
            "profiler": _profiles(),
            "changed_settings": ", ".join(
                f"{name}={value}"
                for name, value in sorted(jax.config.values.items())
                if value != self._as_opened.get(name, value)
            ),
        }
        if self._graph:
            settings["compilations"] = self._step._cache_size() if self._step else 0
        if self._precision == "bf16":
            settings["mixed_precision"] = self._precision
        return settings

    def device_memory(self) -> dict[str, float]:
        """Device memory in MiB as JAX's allocator counts it; empty on the CPU, where it counts none."""
        counted = self._device.memory_stats() or {}
        names = {"allocated": "bytes_in_use", "peak": "peak_bytes_in_use"}
        return {name: counted[key] / _MIB for name, key in names.items() if key in counted}

    @staticmethod
    def versions() -> dict[str, str]:
        """The versions of JAX, of its compiled part, of the libraries of models and optimizers, and of JAX's libraries
        for GPUs.
        """
        versions = {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "flax", "optax")}
        for name in _BUILT_WITH:
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
        return versions

    def _optimize(self, weights: Arrays) -> None:
        """Have a fresh optimizer of these weights."""
        self._optimized, self._state = frozenset(weights), self._optimizer.init(weights)

    def _compile(self, function: Callable, **how: Any) -> Callable:
        return jax.jit(function, **how) if self._graph else function

    def _draw_for(self, name: str, draw: Draw) -> Callable:
        """The function of this name with masks that ``draw`` gives."""
        function, masked = self._droppable[name], self._masked[name]

        def run(*arguments: Any) -> Any:
            images = any(array.ndim == 4 for array in arguments[-1])  # else (batch, heads, ...): an attention's
            draw_here = partial(_draw_channels_last, draw) if images else draw
            if not self._graph:
                with _dropping(draw_here):
                    return function(*arguments)
            places = self._find_places(name, arguments)
            return masked([jnp.asarray(draw_here(*place)) for place in places], *arguments)

        return run

    def _find_places(self, name: str, arguments: tuple[Any, ...]) -> list[tuple[int, tuple[int, ...], float]]:
        """Place, shape and probability of each dropout in a function, once for each shape of a batch."""
        key = (name, *(array.shape for array in arguments[-1]))
        if key not in self._places:
            found = []

            def note(*place: Any) -> np.ndarray:
                found.append(place)
                return np.ones(place[1], bool)

            def trace(*arguments: Any) -> Any:
                with _dropping(note):
                    return self._droppable[name](*arguments)

            jax.eval_shape(trace, *arguments)
            self._places[key] = found
        return self._places[key]

    def _split(self, model: nnx.Module) -> None:
        """Take a model apart: its structure in training and in evaluation, its weights, and its other variables."""
        model.eval()
        evaluating = nnx.graphdef(model)
        model.train()
        training, trained, kept = nnx.split(model, nnx.Param, ...)
        self._structures = {True: training, False: evaluating}
        self._trained_variables, self._kept_variables = (
            {_key(path): (path, variable) for path, variable in nnx.to_flat_state(state)} for state in (trained, kept)
        )

    def _merge(self, trained: Arrays, kept: Arrays, training: bool) -> nnx.Module:
        """The model with these weights, in training or in evaluation behaviour."""
        states = [
            nnx.from_flat_state({path: variable.replace(arrays[key]) for key, (path, variable) in variables.items()})
            for variables, arrays in ((self._trained_variables, trained), (self._kept_variables, kept))
        ]
        return nnx.merge(self._structures[training], *states)

    @staticmethod
    def _state_of(model: nnx.Module) -> Arrays:
        """The state of a model beside its weights: running statistics, and the numbers of dropout's draws."""
        kept = nnx.state(model, nnx.Not(nnx.Param))
        return {_key(path): variable.get_value() for path, variable in nnx.to_flat_state(kept)}

    def _first_random(self) -> Arrays:
        """Dropout's generators at their beginning, each with a key of its own."""
        variables = {key: variable for key, (_, variable) in self._kept_variables.items()}
        root = jax.random.key(self._seed)
        keys = [key for key, variable in variables.items() if isinstance(variable, nnx.RngKey)]
        counts = [key for key, variable in variables.items() if isinstance(variable, nnx.RngCount)]
        return {
            **{key: jax.random.fold_in(root, number) for number, key in enumerate(keys)},
            **{key: jnp.zeros((), jnp.uint32) for key in counts},
        }

    def _random(self, kept: Arrays) -> Arrays:
        """The part of a model's state that dropout's generators hold."""
        return {
            key: kept[key] for key, (_, variable) in self._kept_variables.items() if isinstance(variable, nnx.RngState)
        }

    def _run(self, trained: Arrays, kept: Arrays, inputs: tuple[Array, ...], *, training: bool) -> tuple[Any, Arrays]:
        model = self._merge(trained, kept, training)
        return model(*inputs), self._state_of(model)

    def _decode(self, trained: Arrays, kept: Arrays, inputs: tuple[Array, ...]) -> Array:
        return self._module.predict(self._merge(trained, kept, training=False), inputs)

    def _to_workload(self, name: str, array: Array) -> np.ndarray:
        return np.ascontiguousarray(self._layouts[name].to_workload(self._copy(array)))

    def _copy(self, array: Array) -> np.ndarray:
        return np.array(array.astype(self._dtype))


class _Layout:
    """The place of a weight of the workload in the model, and its layout there."""

    def __init__(self, path: Place, variable: nnx.Variable, module: nnx.Module) -> None:
        self.key, self.shape = _key(path), variable.get_value().shape
        self.trained = isinstance(variable, nnx.Param)
        self._turned = self._joined = False
        if path[-1] == "kernel":
            self._turned = isinstance(module, nnx.Conv | nnx.Linear)
            self._joined = isinstance(module, nnx.LinearGeneral)

    def to_framework(self, array: np.ndarray) -> np.ndarray:
        """From the workload's (outputs, inputs, ...) to (..., inputs, outputs)."""
        if self._joined:  # the workload has all places of an image, channel by channel, in one dimension
            *sides, channels, outputs = self.shape
            array = array.reshape(outputs, channels, *sides)
        return np.moveaxis(array, (0, 1), (-1, -2)) if self._turned or self._joined else array

    def to_workload(self, array: np.ndarray) -> np.ndarray:
        """From (..., inputs, outputs) to the workload's layout."""
        if not (self._turned or self._joined):
            return array
        array = np.moveaxis(array, (-1, -2), (0, 1))
        return array.reshape(len(array), -1) if self._joined else array


def _layouts(model: nnx.Module) -> dict[str, _Layout]:
    """The layouts of all weights and running statistics of a model, by the workload's names."""
    layouts = {}
    for path, module in nnx.iter_modules(model):
        names = next((names for kind, names in _NAMES.items() if isinstance(module, kind)), {})
        for name, variable in vars(module).items():
            if isinstance(variable, nnx.Param | nnx.BatchStat):
                layouts[_key((*path, names.get(name, name)))] = _Layout((*path, name), variable, module)
    return layouts


@contextmanager
def _dropping(draw: Draw) -> Iterator[None]:
    """Within it, the masks that layers ask JAX's generator for are ``draw``'s. What a layer makes of its mask, forward
    and backward, stays its own.
    """
    places, level, usual = itertools.count(), _level(), jax.random.bernoulli

    def give(key: Array, p: float = 0.5, shape: Sequence[int] | None = None, *_: Any, **__: Any) -> Array:
        if _level() is not level:  # it would be compiled into what is timed, or drawn once for a whole loop
            raise NoMasks("a dropout is in a loop or in another part that JAX compiles by itself")
        shape = np.shape(p) if shape is None else tuple(shape)
        return jnp.asarray(draw(next(places), shape, round(1 - float(p), 12)))  # 1 - 0.9 is not 0.1

    jax.random.bernoulli = give
    try:
        yield
    finally:
        jax.random.bernoulli = usual


def _level() -> Any:
    """The tracing that a new array belongs to; None where it is computed at once."""
    return getattr(jnp.zeros(()), "_trace", None)


def _run_masked(function: Callable, masks: Sequence[Array], *arguments: Any) -> Any:
    with _dropping(lambda place, shape, p: masks[place]):
        return function(*arguments)


def _draw_channels_last(draw: Draw, place: int, shape: tuple[int, ...], p: float) -> np.ndarray:
    if len(shape) != 4:
        return draw(place, shape, p)
    return _channels_last(draw(place, (shape[0], shape[3], *shape[1:3]), p))


def _watch(kind: type[nnx.Module], names: list[str], seen: list[tuple[str, Array]]) -> type[nnx.Module]:
    """A kind of layer that notes its first input and output by its names; a recurrent one's state comes before them."""
    is_cell, is_recurrent = issubclass(kind, nnx.RNNCellBase), issubclass(kind, nnx.RNNCellBase | nnx.RNN)

    class Watched(kind):
        def __call__(self, *inputs: Any, **named: Any) -> Any:
            seen.extend((f"input of {name}", (*inputs, *named.values())[is_cell]) for name in names)
            left = kind.__call__(self, *inputs, **named)
            first = left[-1 if is_recurrent else 0] if isinstance(left, tuple) else left
            seen.extend((f"output of {name}", first) for name in names)
            return left

    return Watched


def _multiply_adds(traced: Any, names: list[str]) -> float:
    """Multiply-adds of products and convolutions in traced code; NaN if they are in a loop of unknown length. ``names``
    gets its operations.
    """
    total = 0.0
    for equation in traced.eqns:
        names.append(equation.primitive.name)
        kind, how, left = equation.primitive.name, equation.params, [one.aval for one in equation.outvars]
        values = (one for value in how.values() for one in (value if isinstance(value, tuple | list) else (value,)))
        inner = [_multiply_adds(one, names) for one in values if hasattr(one, "eqns")]
        if kind == "dot_general":
            summed = how["dimension_numbers"][0][0]
            total += left[0].size * math.prod(equation.invars[0].aval.shape[axis] for axis in summed)
        elif kind == "conv_general_dilated":
            total += _of_convolution(equation.invars[1].aval.shape, left[0].shape, how)
        elif kind == "scan":
            total += how["length"] * sum(inner)
        elif kind == "while":
            total += math.nan if any(inner) else 0.0
        else:
            total += max(inner, default=0.0) if kind == "cond" else sum(inner)
    return total


def _of_convolution(kernel: Sequence[int], left: Sequence[int], how: Mapping[str, Any]) -> float:
    """Multiply-adds of a convolution, from its shapes, with padding; those between dilated numbers are none."""
    _, of_kernel, of_left = how["dimension_numbers"]
    total = float(left[of_left[0]] * left[of_left[1]] * kernel[of_kernel[1]])
    for axis, (before, _) in enumerate(how["padding"]):
        starts = np.arange(left[of_left[2 + axis]]) * how["window_strides"][axis] - before
        taps = np.arange(kernel[of_kernel[2 + axis]]) * how["rhs_dilation"][axis]
        total *= int(((starts[:, None] + taps) % how["lhs_dilation"][axis] == 0).sum())
    return total


def _profiles() -> bool:
    return jax._src.profiler._profile_state.profile_session is not None  # it has no public name


def _key(path: Place) -> str:
    return ".".join(map(str, path))


def _channels_last(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if array.ndim == 4 else array


def _channels_first(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, -1, 1)) if array.ndim == 4 else array


def _thread_names() -> list[str]:
    return [path.read_text(encoding="utf-8").strip() for path in Path("/proc/self/task").glob("*/comm")]
