"""Run one framework's Session over every workload, small, and write down what it gives.

``python framework_session.py FRAMEWORK MODE FOLDER`` writes FOLDER/arrays.npz and FOLDER/facts.json. Each framework and
mode needs a process of its own: MindSpore prints, leaves files in the working directory, and is told its mode once.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
import time
from pathlib import Path

import numpy as np

from benchlib import frameworks, workloads
from benchlib.errors import BenchlibError

STEPS, BATCH, LEARNING_RATE = 5, 8, 0.05
DROPPED = 0.25  # not a half, of which nobody could tell whether it is the share dropped or kept
WITHOUT_DROPOUT = {"image_size": 8, "conv_dropout": 0.0, "dense_dropout": 0.0}
CASES = {
    "cnn": ("cnn", WITHOUT_DROPOUT),
    "conv2d": ("conv2d", {"in_channels": 3, "out_channels": 5, "image_size": 6}),
    "conv2d forward": ("conv2d", {"in_channels": 3, "out_channels": 5, "image_size": 6, "passes": "forward"}),
    "linear": ("linear", {"in_features": 7, "out_features": 5}),
    "linear forward": ("linear", {"in_features": 7, "out_features": 5, "passes": "forward"}),
    "batchnorm2d": ("batchnorm2d", {"channels": 3, "image_size": 4, "momentum": 0.3}),
    "batchnorm2d forward": ("batchnorm2d", {"channels": 3, "image_size": 4, "momentum": 0.3, "passes": "forward"}),
}
COMPILED = ("cnn", "batchnorm2d")  # by torch.compile, which takes a quarter of a minute for each


def initial(workload: workloads.Workload, values: workloads.Values) -> dict[str, np.ndarray]:
    """Weights that are all different from zero and one, so that none can stand in for another."""
    rng = np.random.default_rng(1)
    return {
        name: (rng.uniform(-0.1, 0.1, weight.shape) + (weight.init == "ones")).astype(np.float32)
        for name, weight in workload.weights(values).items()
    }


def batches(workload: workloads.Workload, values: workloads.Values, batch_size: int = BATCH) -> list[tuple]:
    """Batches for each step, as numpy."""
    rng = np.random.default_rng(2)
    if workload.kind == "operator":
        return [workload.inputs(values, batch_size, rng) for _ in range(STEPS)]
    shape = (batch_size, 3, values["image_size"], values["image_size"])
    return [
        (rng.standard_normal(shape, dtype=np.float32), rng.integers(0, 10, batch_size, dtype=np.int32))
        for _ in range(STEPS)
    ]


def passing(workload: workloads.Workload, values: workloads.Values) -> dict[str, np.ndarray]:
    """Weights of ``cnn`` with which every logit is the first pixel's first channel, each by a way of its own.

    The way goes through one activation at each dropout: it zeroes or scales the logit as it does that activation.
    """
    weights = {name: np.zeros(weight.shape, np.float32) for name, weight in workload.weights(values).items()}
    places = (values["image_size"] // 4) ** 2  # of a channel where it becomes part of the dense layer's input
    for way in range(10):
        weights["conv1.weight"][way, 0, 1, 1] = 1  # the middle of the kernel
        for name in ("conv2", "conv3", "conv4"):
            weights[f"{name}.weight"][way, way, 1, 1] = 1
        weights["dense1.weight"][way, way * places] = 1
        weights["dense2.weight"][way, way] = 1
    return weights


KNOBS = {
    "pytorch": {"channels_last": "on", "cudnn_benchmark": "on", "float32_matmul_precision": "high"},
    "mindspore": {"launch_blocking": "on"},
}
"""Those that sessions set, in eager mode."""


def mixed_precisions(framework: str, mode: str) -> list[str]:
    """Those that are tried: all in eager mode; of MindSpore's levels one where each has to be compiled."""
    offered = [one for one in frameworks.precisions(framework)[1:] if one != "fp64"]
    return [one for one in offered if (framework, mode) != ("mindspore", "graph") or one.endswith("-O2")]


class Probe:
    """A session of one framework and mode, and what is asked of it."""

    def __init__(self, framework: str, mode: str) -> None:
        self.framework, self.mode = framework, mode
        self.session = self.open()

    def open(self, device: str = "cpu", precision: str = "fp32", seed: int = 1, **knobs: str) -> frameworks.Session:
        return frameworks.session_class(self.framework)(device, self.mode, precision, seed, knobs)

    def build(self, name: str, given: dict, session: frameworks.Session | None = None) -> tuple:
        """Build a workload and load its initial weights; returns it with its hyperparameters."""
        session = session or self.session
        workload = workloads.load(name)
        values = workload.values(given)
        module = importlib.import_module(f"benchlib.workloads.{name}.{self.framework}")
        session.build(workload, module, values, LEARNING_RATE if workload.kind == "training" else None)
        session.load(initial(workload, values))
        return workload, values

    def case(self, name: str, given: dict) -> dict[str, np.ndarray]:
        """Outputs, gradients, steps and states of one workload."""
        session = self.session
        workload, values = self.build(name, given)
        ready = [session.put(arrays) for arrays in batches(workload, values)]
        found = _named("loaded", session.weights())
        found["outputs"] = session.outputs(ready[0], training=True)[0]
        found["evaluation outputs"] = session.outputs(ready[0], training=False)[0]
        found.update(_named("gradient", session.gradients(ready[0])))
        found.update(_named("untouched", session.weights()))
        found["steps"] = self._steps(ready[:1])
        found.update(_named("after one step", session.weights()))
        found["steps"] = np.stack([*found["steps"], *self._steps(ready[1:])])
        found.update(_named("after all steps", session.weights()))
        session.load(initial(workload, values))
        found.update(_named("loaded again", session.weights()))
        found["steps again"] = self._steps(ready)
        return found

    def _steps(self, ready: list) -> np.ndarray:
        results = [self.session.step(batch) for batch in ready]
        self.session.synchronize()
        return np.stack([self.session.to_numpy(result) for result in results])

    def refusals(self) -> dict[str, str | list[str]]:
        """What is said to wrong weights, models, devices and precisions."""
        workload, values = self.build("cnn", WITHOUT_DROPOUT)
        good = initial(workload, values)
        fewer = {name: array for name, array in good.items() if name != "conv2.bias"}
        other = dataclasses.replace(workload, weights=lambda values: dict(list(workload.weights(values).items())[:-1]))
        module = importlib.import_module(f"benchlib.workloads.cnn.{self.framework}")
        return {
            "missing": _refused(self.session.load, fewer),
            "unknown": _refused(self.session.load, {**good, "conv9.bias": good["conv2.bias"]}),
            "misshapen": _refused(self.session.load, {**good, "conv2.bias": good["conv2.bias"][:-1]}),
            "other model": _refused(self.session.build, other, module, values, 0.1),
            "trained": [self._declaring(name, trained) for name, trained in (("linear", False), ("batchnorm2d", True))],
            "device": _refused(self.open, device="npu"),
            "precision": _refused(self.open, precision="fp8"),
            "knob": _refused(self.open, channels_first="on"),
        }

    def _declaring(self, name: str, trained: bool) -> str:
        """What is said to a workload that says of all its weights that they are trained, or not."""
        workload = workloads.load(name)
        values = workload.values({})
        weights = {key: dataclasses.replace(one, trained=trained) for key, one in workload.weights(values).items()}
        module = importlib.import_module(f"benchlib.workloads.{name}.{self.framework}")
        return _refused(
            self.session.build, dataclasses.replace(workload, weights=lambda _: weights), module, values, None
        )

    def dropout(self) -> dict[str, list[float] | float]:
        """Losses of single steps from the same weights, with dropout, by seed; and what evaluation does."""
        found: dict[str, list[float] | float] = {}
        for name, seed in {"seed 1": 1, "seed 1 again": 1, "seed 2": 2}.items():
            session = self.open(seed=seed)
            workload, values = self.build("cnn", {"image_size": 8}, session)
            batch = session.put(batches(workload, values)[0])
            found[name] = [self._single(session, batch, initial(workload, values)) for _ in range(3)]
        before = [session.outputs(batch, training=False)[0] for _ in range(2)]
        found["evaluation varies by"] = float(np.abs(before[1] - before[0]).max())
        found["training varies by"] = float(
            np.abs(session.outputs(batch, training=True)[0] - session.outputs(batch, training=True)[0]).max()
        )
        found["after evaluation"] = [self._single(session, batch, initial(workload, values)) for _ in range(3)]
        return found

    def _single(self, session: frameworks.Session, batch: object, weights: dict[str, np.ndarray]) -> float:
        session.load(weights)
        return float(session.to_numpy(session.step(batch)))

    def zeroed(self) -> dict[str, dict[str, list[float]]]:
        """What images of value 1 become on their way through ``cnn``, by where there is dropout."""
        found = {}
        for where, given in {
            "conv": {"conv_dropout": DROPPED, "dense_dropout": 0.0},
            "dense": {"conv_dropout": 0.0, "dense_dropout": DROPPED},
        }.items():
            session = self.open()
            workload, values = self.build("cnn", {"image_size": 8, **given}, session)
            session.load(passing(workload, values))
            images = np.zeros((256, 3, 8, 8), dtype=np.float32)
            images[:, 0, 0, 0] = 1  # the one pixel that ``passing`` passes on
            batch = session.put((images, np.zeros(256, dtype=np.int32)))
            found[where] = {
                "training": np.concatenate([session.outputs(batch, training=True)[0] for _ in range(4)])
                .ravel()
                .tolist(),
                "evaluation": session.outputs(batch, training=False)[0].ravel().tolist(),
            }
        return found

    def looked_into(self) -> dict[str, object]:
        """What ``cnn`` makes of given masks that leave one number of its last dropout; its layers; what is counted."""
        session, drawn = self.open(), []
        workload, values = self.build("cnn", {"image_size": 8}, session)
        batch, weights = session.put(batches(workload, values)[0]), initial(workload, values)

        def draw(place: int, shape: tuple[int, ...], p: float) -> np.ndarray:
            drawn.append([place, list(shape), p])
            mask = np.random.RandomState(place).random_sample(shape) >= p
            return mask if place < 2 else mask & (np.arange(shape[1]) == 7)

        with session.given_masks(draw):
            outputs = [session.outputs(batch, training=True)[0].tolist() for _ in range(2)]
            gradients = session.gradients(batch)
            losses = [self._single(session, batch, weights) for _ in range(2)]
        found = {"drawn": drawn, "outputs": outputs, "losses": losses}
        found["learning"] = np.flatnonzero(gradients["dense2.weight"].any(axis=0)).tolist()
        found["losses after"] = [self._single(session, batch, weights) for _ in range(3)]
        layers = dict(session.layers(batch))
        found["layers"] = [*layers]
        found["second input"] = np.array_equal(layers["input of conv2"], np.maximum(layers["output of conv1"], 0))
        found["compilations"], found["multiply-adds"] = session.settings()["compilations"], session.multiply_adds(batch)
        return found

    def knobs(self) -> dict[str, np.ndarray]:
        """Outputs and gradients of ``cnn`` with every knob that the framework's session sets. It is the last that is
        asked: knobs are for the whole process.
        """
        session = self.open(**KNOBS[self.framework])
        workload, values = self.build("cnn", WITHOUT_DROPOUT, session)
        batch = session.put(batches(workload, values)[0])
        found = {"loaded:" + name: array for name, array in session.weights().items()}
        found["outputs"] = session.outputs(batch, training=True)[0]
        found.update(_named("gradient", session.gradients(batch)))
        settings = session.settings()
        asked = [name for name in KNOBS[self.framework] if name in settings]
        return {**found, "settings": np.array([f"{name}={settings[name]}" for name in asked])}

    def mixed(self) -> dict[str, dict[str, float | str]]:
        """By precision: how far outputs, gradients and losses of ``cnn`` are from fp32's, relative to the largest; or
        why it cannot be run. ``predictions`` are those of the weights that fp32 has trained.
        """
        exact, trained = self._few_steps("fp32")
        found: dict[str, dict[str, float | str]] = {}
        for precision in mixed_precisions(self.framework, self.mode):
            try:
                mine, _ = self._few_steps(precision, trained)
            except Exception as error:  # what a framework cannot do here is an answer
                found[precision] = {"why": f"{type(error).__name__}: {error}"[:300]}
                continue
            apart = {name: float(np.abs(mine[name] - exact[name]).max() / np.abs(exact[name]).max()) for name in exact}
            found[precision] = apart
        return found

    def _few_steps(
        self, precision: str, trained: dict[str, np.ndarray] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """What comes of them, and the weights after them; ``trained`` are others to predict with."""
        session = self.open(precision=precision)
        workload, values = self.build("cnn", WITHOUT_DROPOUT, session)
        ready = [session.put(arrays) for arrays in batches(workload, values)]
        found = {"outputs": session.outputs(ready[0], training=True)[0]}
        gradients = session.gradients(ready[0])
        found["gradients"] = np.concatenate([array.ravel() for array in gradients.values()])
        found["losses"] = np.array([float(session.to_numpy(session.step(batch))) for batch in ready])
        weights = {name: np.array(array) for name, array in session.weights().items()}
        found["state"] = np.concatenate([array.ravel() for array in weights.values()])
        found["evaluation outputs"] = session.outputs(ready[0], training=False)[0]
        session.load(trained or weights)
        found["predictions"] = session.outputs(ready[0], training=False)[0]
        if precision != "fp32" and not {"autocast", "mixed_precision"} & session.settings().keys():
            raise RuntimeError("the settings do not say that the precision is mixed")
        return found, weights

    def passes(self) -> dict[str, float]:
        """CPU seconds that the cheapest of some steps takes, by passes: what a step does must not be optimised away.

        Of the process and not of the clock, which on a busy machine counts other programs too.
        """
        steps = {}
        for passes in ("forward", "forward+backward"):
            session = self.open()
            given = {"in_features": 1024, "out_features": 1024, "passes": passes}
            batch = session.put(batches(*self.build("linear", given, session), 256)[0])
            steps[passes] = (session, batch, [])
        for _ in range(30):
            for session, batch, times in steps.values():
                started = time.process_time()
                session.step(batch)
                session.synchronize()
                times.append(time.process_time() - started)
        return {passes: min(times) for passes, (_, _, times) in steps.items()}

    def waits(self) -> dict[str, dict[str, list[float]]]:
        """Seconds that reading a result takes after a step, without and with ``synchronize`` between, each time.

        Training is judged by its weights, which a step changes last; an operator by its output.
        """
        return {
            "cnn": self._wait("cnn", {"image_size": 16}, 32, lambda result: self.session.weights()),
            "linear": self._wait(
                "linear", {"in_features": 1024, "out_features": 1024, "passes": "forward"}, 512, self.session.to_numpy
            ),
        }

    def _wait(self, name: str, given: dict, batch_size: int, read) -> dict[str, list[float]]:
        workload, values = self.build(name, given)
        batch = self.session.put(batches(workload, values, batch_size)[0])
        read(self.session.step(batch))
        without, total, after, again = [], [], [], []
        for _ in range(9):
            result = self.session.step(batch)
            queued = time.perf_counter()
            read(result)
            without.append(time.perf_counter() - queued)
            started = time.perf_counter()
            result = self.session.step(batch)
            self.session.synchronize()
            total.append(time.perf_counter() - started)
            read(result)
            after.append(time.perf_counter() - started - total[-1])
            started = time.perf_counter()
            read(result)
            again.append(time.perf_counter() - started)
        times = {"reading without": without, "step and synchronize": total, "reading after": after}
        return {**times, "reading again": again}


def _named(group: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{group}:{name}": array for name, array in arrays.items()}


def _refused(action, *arguments, **named) -> str:
    try:
        action(*arguments, **named)
    except BenchlibError as error:
        return str(error)
    return "accepted"


def main() -> None:
    framework, mode, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    probe = Probe(framework, mode)
    compiled = framework == "pytorch" and mode == "graph"
    arrays = {
        f"{case}/{name}": array
        for case, (workload, given) in CASES.items()
        if not compiled or case in COMPILED
        for name, array in probe.case(workload, given).items()
    }
    facts = {"settings": probe.session.settings(), "versions": probe.session.versions()}
    facts["device memory"] = probe.session.device_memory()
    if compiled:
        from torch._dynamo.utils import counters

        facts["graphs"] = counters["stats"]["unique_graphs"]
        facts["graph breaks"] = sum(counters["graph_break"].values())
    else:
        facts.update({"refusals": probe.refusals(), "dropout": probe.dropout(), "zeroed": probe.zeroed()})
        facts.update({"passes": probe.passes(), "waits": probe.waits(), "mixed": probe.mixed()})
    if framework == "mindspore":
        facts["looked into"] = probe.looked_into()
    if mode == "eager" and framework in KNOBS:
        arrays.update({f"knobs/{name}": array for name, array in probe.knobs().items()})
    np.savez(folder / "arrays.npz", **arrays)
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
