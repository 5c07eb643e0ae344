"""Caffe2, as it is in the wheel of PyTorch 1.8.1: builds a workload and runs its steps, on the CPU.

A step is one run of a net: forward, gradients and the optimizer's changes. All nets of a model share its weights, as
blobs of the process's workspace, and have the names of their blobs in common.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
from caffe2.python import core, workspace
from caffe2.python.core import BlobReference
from caffe2.python.model_helper import ModelHelper

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import LOSS_SCALE, Draw, check_trained, check_weights, product
from benchlib.workloads import Values, Workload, _caffe2

TITLE = "Caffe2"
PACKAGE = "caffe2"
DISTRIBUTIONS = ("torch",)
DEVICES = ("cpu",)
MODES = ("graph",)
VARIABLES = ("CAFFE2_", "MKL_", "KMP_")
KNOBS = (
    {
        "name": "OMP_NUM_THREADS",
        "value": "{cores}",
        "devices": ("cpu",),
        "reason": "Caffe2 sets the number of threads to 1 when it starts, unless this is set",
        "source": "Caffe2's caffe2/core/init_omp.cc, Caffe2SetOpenMPThreads",
    },
)

_GATES = ("reset_gate_t", "update_gate_t", "output_gate_t")
_BLOBS = {  # the endings of the workload's names of weights, and those of Caffe2's
    "weight": ("_w",),
    "bias": ("_b",),
    "running_mean": ("_rm",),
    "running_var": ("_riv",),
    "weight_ih_l0": ("/i2h_w",),
    "bias_ih_l0": ("/i2h_b",),
    "weight_hh_l0": tuple(f"/{gate}_w" for gate in _GATES),
    "bias_hh_l0": tuple(f"/{gate}_b" for gate in _GATES),
}

core.GlobalInit(["caffe2", "--caffe2_log_level=2"])


class Session:
    """One workload in Caffe2, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        for what, chosen, known in (("precision", precision, ("fp32",)), ("mode", mode, MODES)):
            if chosen not in known:
                raise BenchlibError(no_such(f"{what} of caffe2", chosen, known))
        if device not in DEVICES:
            raise BenchlibError(
                f"device {device!r}: caffe2 has a path to cpu only; install a framework that has one to it, or choose "
                "device 'cpu'"
            )
        for name, value in knobs.items():
            raise BenchlibError(no_such("knob of caffe2", f"{name}={value}", []))
        _caffe2.seed = 1 + 1000 * seed  # for dropout only: weights and batches come from files

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model and optimizer from ``module``, the workload's file for Caffe2."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._name, self._module, self._targets = workload.name, module, workload.targets
        self._model = module.build(values)
        self._optimizer = module.optimizer(values, learning_rate) if self._trains else None
        self._nets: dict[Any, tuple[ModelHelper, list[Any]]] = {}
        self._masks: dict[Any, list[tuple[str, float]]] = {}
        self._draw: Draw | None = None
        self._created: set[str] = set()
        net, _ = self._net("step")
        workspace.RunNetOnce(net.param_init_net)
        there = {str(one) for one in net.GetAllParams()}
        self._blobs = {name: _blobs(name, there) for name in self._shapes}
        check_weights(
            f"{workload.name} in caffe2", self._shapes, {name: one.shape for name, one in self.weights().items()}
        )
        trained = {str(one) for one in net.GetParams()}
        self._trained = [name for name, blobs in self._blobs.items() if trained.issuperset(blobs)]
        check_trained(f"{workload.name} in caffe2", workload.weights(values), self._trained)

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for caffe2", self._shapes, {name: array.shape for name, array in weights.items()})
        workspace.RunNetOnce(self._net("step")[0].param_init_net)
        for name, array in weights.items():
            _feed(self._blobs[name], array)

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as copies."""
        return {name: _fetch(blobs) for name, blobs in self._blobs.items()}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """A batch: its arrays, which each step copies into the workspace, as Caffe2's ``FeedBlob`` does."""
        return tuple(map(np.array, arrays))

    def step(self, batch: tuple[np.ndarray, ...]) -> np.ndarray:
        """Take one step; return its loss (of a model that is only evaluated: its outputs)."""
        return self._run("step", batch)[0]

    def synchronize(self) -> None:
        """A step has done all its work when it returns."""

    def mark(self) -> None:
        """There is no event on the CPU."""

    def outputs(self, batch: tuple[np.ndarray, ...], training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs for a batch's inputs."""
        return tuple(self._run("training" if training and self._trains else "evaluation", batch))

    def gradients(self, batch: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (of a model that is only evaluated: of its outputs, also of ``input``)."""
        found = iter(self._run("gradients", batch))
        gradients = {} if self._trains else {"input": next(found)}
        for name in self._trained:
            gradients[name] = np.concatenate([next(found) for _ in self._blobs[name]])
        return gradients

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        names = [*gradients[0]]
        key = f"update {names}"
        if key not in self._nets:
            net = ModelHelper(key)
            for blob in (blob for name in names for blob in self._blobs[name]):
                self._optimizer(net.net, net.param_init_net, blob, BlobReference(f"{blob}_given"))
            self._nets[key] = net, []
        for number in range(steps):
            for name in names:
                given = gradients[number % len(gradients)][name]
                _feed([f"{blob}_given" for blob in self._blobs[name]], given)
            if key not in self._created:
                workspace.CreateNet(self._nets[key][0].net)
                self._created.add(key)
            workspace.RunNet(self._nets[key][0].net)

    def dropouts(self, batch: tuple[np.ndarray, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss."""
        found = self._run("dropouts" if training else "dropouts of evaluation", batch)
        return [("dropout", *found[place : place + 2]) for place in range(0, len(found), 2)]

    @contextmanager
    def given_masks(self, draw: Draw) -> Iterator[None]:
        """Every dropout of a step, of gradients and of outputs is a product with a mask of ``draw``, in nets of their
        own.
        """
        self._draw = draw
        try:
            yield
        finally:
            self._draw = None

    def layers(self, batch: tuple[np.ndarray, ...]) -> list[tuple[str, np.ndarray]]:
        """The input and the output of each layer that has weights of its own, and the loss: operator by operator,
        because one may write its output over its input.
        """
        owners = {blob: name.rpartition(".")[0] for name, blobs in self._blobs.items() for blob in blobs}
        net, outputs = self._net("loss" if self._trains else "evaluation")
        self._give(batch)
        seen: dict[str, list[np.ndarray]] = {}
        for op in net.net.Proto().op:
            owner = next((owners[blob] for blob in op.input if blob in owners), None)
            data = next(blob for blob in op.input if blob not in owners) if owner else ""
            if owner and owner not in seen:
                seen[owner] = [workspace.FetchBlob(data)]
            workspace.RunOperatorOnce(op)
            if owner:
                last = op.output[1 if op.type == "RecurrentNetwork" else 0]
                seen[owner][1:] = [workspace.FetchBlob(last)]
        found = [
            (f"{place} of {owner}", array)
            for owner, both in seen.items()
            for place, array in zip(("input", "output"), both)
        ]
        return [*found, ("loss", workspace.FetchBlob(outputs[0]))] if self._trains else found

    def multiply_adds(self, batch: tuple[np.ndarray, ...]) -> float:
        """Those of the products and convolutions of a step's net, from the shapes of its blobs: Caffe2 has no counter.
        The names of operators are left in ``operations``.
        """
        net, _ = self._net("step")
        self._give(batch)
        workspace.RunNet(net.net)
        ops = net.net.Proto().op
        self.operations = [op.type for op in ops]
        return float(sum(_PRODUCTS[op.type](op) for op in ops if op.type in _PRODUCTS))

    def to_numpy(self, value: Any) -> np.ndarray:
        """The result of :meth:`step`, as a copy."""
        return np.array(value)

    def settings(self) -> dict[str, str | int | float | bool]:
        """Threads of its OpenMP, and its BLAS: read back from them."""
        options = workspace.C.get_build_options()
        openmp = next(Path(find_spec("torch").origin).parent.glob("lib/libgomp-*"))
        return {
            "openmp_threads": ctypes.CDLL(str(openmp)).omp_get_max_threads(),
            "blas": options["BLAS_INFO"],
        }

    def device_memory(self) -> dict[str, float]:
        """Empty: there is no path to a device that has its own."""
        return {}

    @staticmethod
    def versions() -> dict[str, str]:
        """Caffe2 has no number of its own: that of PyTorch's wheel."""
        return {"caffe2": workspace.C.get_build_options()["TORCH_VERSION"]}

    def _run(self, what: str, batch: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        """Feed a batch, run a net, and fetch its results."""
        net, results = self._net(what)
        self._give(batch)
        masks = self._masks[what, self._draw is not None]
        if masks:
            draw, self._draw = self._draw, None
            shapes = [one.shape for one in self._run("dropouts", batch)[::2]]
            self._draw = draw
            for place, ((blob, p), shape) in enumerate(zip(masks, shapes)):
                workspace.FeedBlob(blob, (draw(place, shape, p) / (1 - p)).astype(np.float32))
        if net.name not in self._created:  # with all that it reads there
            workspace.CreateNet(net.net)
            self._created.add(net.name)
        workspace.RunNet(net.net)
        return [workspace.FetchBlob(one) for one in results]

    def _give(self, batch: tuple[np.ndarray, ...]) -> None:
        for name, array in zip(_BATCH, batch):
            workspace.FeedBlob(name, array)

    def _net(self, what: str) -> tuple[ModelHelper, list[BlobReference]]:
        """A net and the names of its results, made once as it is, and once with given masks."""
        key = what, self._draw is not None
        if key not in self._nets:
            net = ModelHelper(f"{what} {key[1]}", arg_scope={"use_cudnn": False})
            masks: list[tuple[str, float]] = []

            def mask(net: ModelHelper, x: BlobReference, p: float, training: bool) -> BlobReference:
                if not training:
                    return x
                masks.append((f"mask_{len(masks)}", p))
                return net.net.Mul([x, masks[-1][0]], f"{x}_dropout")

            with patch.object(_caffe2, "drop", mask if key[1] else _caffe2.drop):
                self._nets[key], self._masks[key] = (net, self._make(what, net)), masks
        return self._nets[key]

    def _make(self, what: str, net: ModelHelper) -> list[BlobReference]:
        """Put operators into an empty net; the names of its results."""
        batch = tuple(map(BlobReference, _BATCH))
        if what in ("dropouts", "dropouts of evaluation"):
            return self._make_dropouts(what, net, batch)
        if what in ("evaluation", "training") or (what == "step" and not self._trains):
            return [self._model(net, batch[0], what == "training")]
        if not self._trains:  # the gradients of outputs, whose own are given
            with patch.object(_caffe2, "norm", _norm):
                output = self._model(net, batch[0], False)
            net.net.AddExternalInput(batch[1])
            found = net.AddGradientOperators({output: batch[1]})
            return [found[blob] for blob in (_BATCH[0], *self._trained_blobs())]
        loss = self._module.loss(net, self._model, batch)
        if what == "loss":
            return [loss]
        found = net.AddGradientOperators([loss])
        if what == "gradients":
            return [found[blob] for blob in self._trained_blobs()]
        for blob in net.GetParams():
            self._optimizer(net.net, net.param_init_net, blob, found[str(blob)])
        return [loss]

    def _make_dropouts(self, what: str, net: ModelHelper, batch: tuple[BlobReference, ...]) -> list[BlobReference]:
        seen: list[BlobReference] = []
        usual = _caffe2.drop

        def drop(net: ModelHelper, x: BlobReference, p: float, training: bool) -> BlobReference:
            y = usual(net, x, p, training)
            seen.extend(net.net.Copy(one, f"seen_{len(seen)}_{one}") for one in (x, y))
            return y

        with patch.object(_caffe2, "drop", drop):
            if self._trains and what == "dropouts":
                self._module.loss(net, self._model, batch)
            else:
                self._model(net, batch[0], False)
        return seen

    def _trained_blobs(self) -> list[str]:
        return [blob for name in self._trained for blob in self._blobs[name]]


_BATCH = ("batch_0", "batch_1")


def _blobs(name: str, there: set[str]) -> tuple[str, ...]:
    """The blobs of a weight, by the workload's name; one of a GRU's is three in Caffe2."""
    layer, _, kind = name.rpartition(".")
    scale = f"{layer}_s"  # of batch normalisation
    return (scale,) if kind == "weight" and scale in there else tuple(f"{layer}{ending}" for ending in _BLOBS[kind])


def _fetch(blobs: Sequence[str]) -> np.ndarray:
    return np.concatenate([workspace.FetchBlob(blob) for blob in blobs])


def _feed(blobs: Sequence[str], array: np.ndarray) -> None:
    for blob, part in zip(blobs, np.split(np.array(array, np.float32), len(blobs))):
        workspace.FeedBlob(blob, part)


def _norm(net: ModelHelper, x: BlobReference, name: str, channels: int) -> BlobReference:
    """Batch normalisation in evaluation behaviour, written out: Caffe2's own has no way back from there."""
    scale, bias, mean, variance = (f"{name}_{ending}" for ending in ("s", "b", "rm", "riv"))
    each = {"broadcast": 1, "axis": 1}
    rounded = net.net.ConstantFill([], f"{name}_epsilon", shape=[1], value=1e-5)
    deviation = net.net.Sqrt(net.net.Add([variance, rounded], f"{name}_spread", broadcast=1), f"{name}_deviation")
    y = net.net.Sub([x, mean], f"{name}_centred", **each)
    y = net.net.Div([y, deviation], f"{name}_whitened", **each)
    return net.net.Add([net.net.Mul([y, scale], f"{name}_scaled", **each), bias], name, **each)


def _shape(blob: str) -> tuple[int, ...]:
    return workspace.FetchBlob(blob).shape


def _of_convolution(op: Any) -> int:
    """Forward, or of the gradients that it makes: of the kernel, and of the input unless that is the batch's."""
    gradients = [one for one in op.output if not one.endswith("_b_grad")] if op.type.endswith("Gradient") else [1]
    image = op.input[2] if op.type.endswith("Gradient") else op.output[0]
    return product(_shape(image)) * product(_shape(op.input[1])[1:]) * len(gradients)


def _of_dense(op: Any) -> int:
    gradients = len(op.output) - 1 if op.type.endswith("Gradient") else 1
    return product(_shape(op.input[0])) * _shape(op.input[1])[0] * gradients


def _of_recurrence(op: Any) -> int:
    length, batch, _ = _shape(next(one for one in op.input if one.endswith("/i2h")))
    steps = sum(product(_shape(one)) for one in op.input if one.endswith("_gate_t_w"))
    return length * batch * steps * (2 if op.type.endswith("Gradient") else 1)


_PRODUCTS: dict[str, Callable[[Any], int]] = {
    **dict.fromkeys(("Conv", "ConvGradient"), _of_convolution),
    **dict.fromkeys(("FC", "FCGradient"), _of_dense),
    **dict.fromkeys(("RecurrentNetwork", "RecurrentNetworkGradient"), _of_recurrence),
}
"""The multiply-adds of operators, from the shapes of their blobs."""
