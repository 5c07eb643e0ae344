"""What a session of MXNet gives where MXNet is not like the others, asked in an environment that has it:
``python mxnet_session.py MODE FILE`` writes a JSON document.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import mxnet as mx
import numpy as np

from benchlib import frameworks, workloads
from benchlib.workloads._gluon import Adam

RNG = np.random.default_rng(0)


def built(mode: str, name: str, precision: str = "fp32", **given) -> tuple:
    """A session with a workload, its hyperparameters and some weights, loaded."""
    workload = workloads.load(name)
    values = workload.values(given)
    session = frameworks.session_class("mxnet")("cpu", mode, precision, 0)
    rate = 0.01 if workload.kind == "training" else None
    session.build(workload, importlib.import_module(f"benchlib.workloads.{name}.mxnet"), values, rate)
    weights = {
        name: (RNG.uniform(-0.1, 0.1, weight.shape) + (weight.init in ("ones", "between"))).astype(np.float32)
        for name, weight in workload.weights(values).items()
    }
    session.load(weights)
    return session, workload, values, weights


def running_variance(mode: str) -> dict[str, float]:
    """How far it is from PyTorch's rule after batches of two sizes, as it is read and as evaluation uses it."""
    session, workload, values, weights = built(mode, "batchnorm2d", channels=3, image_size=2, momentum=0.3)
    mean, variance = weights["running_mean"].astype(float), weights["running_var"].astype(float)
    for size in (2, 2, 5, 2):
        inputs, gradient = workload.inputs(values, size, RNG)
        session.step(session.put((inputs, gradient)))
        mean = 0.7 * mean + 0.3 * inputs.mean((0, 2, 3), dtype=float)
        variance = 0.7 * variance + 0.3 * inputs.var((0, 2, 3), dtype=float, ddof=1)
    inputs, gradient = workload.inputs(values, 2, RNG)
    evaluated = session.outputs(session.put((inputs, gradient)), training=False)[0]
    scale, shift = (weights[name][:, None, None] for name in ("weight", "bias"))
    expected = (inputs - mean[:, None, None]) / np.sqrt(variance[:, None, None] + 1e-5) * scale + shift
    read = session.weights()
    return {
        "mean": float(np.abs(read["running_mean"] - mean).max()),
        "variance": float(np.abs(read["running_var"] - variance).max()),
        "evaluation": float(np.abs(evaluated - expected).max()),
        "of the batch, beside it": float(np.abs(variance - 7 / 8 * variance).max()),
    }


def statistics_moved(mode: str) -> list[str]:
    """Which running statistics change where a batch goes forward alone, in training behaviour."""
    session, workload, values, weights = built(mode, "batchnorm2d", channels=3, image_size=2, passes="forward")
    for _ in range(3):
        session.step(session.put(workload.inputs(values, 4, RNG)))
    return [name for name, array in session.weights().items() if not np.array_equal(array, weights[name])]


def adam() -> dict[str, float]:
    """How far our Adam, and MXNet's own, are after 3 steps with gradients of about epsilon from Kingma and Ba's."""
    gradients = RNG.uniform(0.5, 2.0, (3, 20)) * 1e-3
    expected, mean, variance = np.ones(20), np.zeros(20), np.zeros(20)
    for step, gradient in enumerate(gradients, 1):
        mean, variance = 0.9 * mean + 0.1 * gradient, 0.999 * variance + 0.001 * gradient**2
        expected -= 0.1 * (mean / (1 - 0.9**step)) / (np.sqrt(variance / (1 - 0.999**step)) + 1e-3)
    apart = {}
    for name, one in {"ours": Adam(0.1, epsilon=1e-3), "MXNet's": mx.optimizer.Adam(0.1, epsilon=1e-3)}.items():
        weight, update = mx.nd.ones(20), mx.optimizer.get_updater(one)
        for gradient in gradients:
            update(0, mx.nd.array(gradient), weight)
        apart[name] = float(np.abs(weight.asnumpy() - expected).max())
    return apart


def some_weights(mode: str) -> list[str]:
    """Which weights ``update`` moves, decay included, if it is given one's gradient right after those of all."""
    session, _, _, weights = built(mode, "resnet50", image_size=32, weight_decay=1.0)
    images = RNG.standard_normal((2, 3, 32, 32), dtype=np.float32)
    session.gradients(session.put((images, np.array([3, 4], np.int32))))
    session.update([{"dense.bias": np.ones(10, np.float32)}], 3)
    return [name for name, array in session.weights().items() if not np.array_equal(array, weights[name])]


def clipped_alone(mode: str) -> list[float]:
    """How far an update with the gradient of one weight, shorter than clipping allows, moves its first number: by
    itself, and with the gradients of all just computed, which are longer.
    """
    sizes = {"words": 9, "target_words": 9, "length": 4, "embedding": 5, "hidden": 6}
    session, _, _, weights = built(mode, "seq2seq", clip=1e-3, epsilon=1e-3, **sizes)
    source, target, labels = RNG.integers(1, 9, (3, 2, 4)).astype(np.int32)
    batch = session.put((source, np.array([4, 4], np.int32), target, labels))
    moved = []
    for computed in (False, True):
        session.load(weights)
        if computed:
            session.gradients(batch)
        session.update([{"combined.bias": np.full(6, 3e-4, np.float32)}], 1)
        moved.append(float((session.weights()["combined.bias"] - weights["combined.bias"])[0]))
    return moved


def tokens(length: int, batch: int = 4) -> tuple[np.ndarray, np.ndarray]:
    return (RNG.integers(1, 20, (batch, length)).astype(np.int32), RNG.integers(0, 10, batch).astype(np.int32))


def many_steps(mode: str) -> dict[str, list[float]]:
    """Losses of steps that nobody waits for between, and of the same, each read at once."""
    session, _, _, weights = built(mode, "gru", length=8, embedding=5, hidden=6)
    batches = [session.put(tokens(8)) for _ in range(4)]
    queued = [session.step(batches[number % 4]) for number in range(40)]
    losses = [float(session.to_numpy(loss)) for loss in queued]
    session.load(weights)
    return {
        "queued": losses,
        "one by one": [float(session.to_numpy(session.step(batches[number % 4]))) for number in range(40)],
    }


def dropouts(mode: str) -> dict[str, object]:
    """What is seen to be dropped, and losses of single steps from the same weights."""
    session, _, _, weights = built(mode, "cnn", image_size=8)
    images = RNG.standard_normal((16, 3, 8, 8), dtype=np.float32)
    batch = session.put((images, RNG.integers(0, 10, 16).astype(np.int32)))
    seen = {training: session.dropouts(batch, training) for training in (True, False)}
    losses = []
    for _ in range(3):
        session.load(weights)
        losses.append(float(session.to_numpy(session.step(batch))))
    return {
        "shares": [float((left[given != 0] == 0).mean()) for _, given, left in seen[True]],
        "changed in evaluation": [not np.array_equal(given, left) for _, given, left in seen[False]],
        "losses": losses,
    }


def given_masks(mode: str) -> dict[str, object]:
    """A gradient and losses in double precision with masks that are given, two of them beside the weights by so little
    that no ReLU has its kink between; losses without, which differ; how often the timed network was compiled.
    """
    session, _, _, weights = built(mode, "cnn", "fp64", image_size=8)
    batch = session.put((RNG.standard_normal((16, 3, 8, 8)), RNG.integers(0, 10, 16).astype(np.int32)))
    taken = []

    def draw(place: int, shape: tuple[int, ...], p: float) -> np.ndarray:
        taken.append([place, *shape, p])
        return np.random.RandomState(place).random_sample(shape) >= p

    def loss(change: float = 0.0) -> float:
        session.load({**weights, "dense1.bias": weights["dense1.bias"] + change})
        return float(session.to_numpy(session.step(batch)))

    weights = {name: array.astype(float) for name, array in weights.items()}
    with session.given_masks(draw):
        gradient = session.gradients(batch)["dense1.bias"].sum()
        losses = [loss(change) for change in (1e-8, -1e-8, 0.0, 0.0)]
    return {
        "taken": taken[:3],
        "passes": len(taken) / 3,
        "losses": losses,
        "gradient": float(gradient),
        "without": [loss(), loss()],
        "settings": session.settings(),
    }


def layers(mode: str) -> dict[str, object]:
    """The names of layers in order, the shapes of what goes in and out, and the multiply-adds of a step."""
    session, _, _, _ = built(mode, "gru", length=8, embedding=5, hidden=6)
    batch = session.put(tokens(8))
    shapes = [f"{name} {array.shape}" for name, array in session.layers(batch)]
    return {"shapes": shapes, "multiply_adds": session.multiply_adds(batch)}


def evaluated_gradient(mode: str) -> dict[str, float]:
    """The gradient of a model in evaluation behaviour along a direction, and the same from two forward passes."""
    session, workload, values, weights = built(mode, "resnet50_inference", image_size=32)
    batch = session.put(workload.inputs(values, 2, RNG))
    session.gradients(batch)
    of_bias = session.gradients(batch)["stem.norm.bias"]
    direction, sums = np.sign(of_bias), []
    for way in (1, -1):
        session.load({**weights, "stem.norm.bias": weights["stem.norm.bias"] + np.float32(way * 1e-3) * direction})
        outputs = session.outputs(batch, training=False)[0].astype(float)
        sums.append(float((outputs * batch[1].asnumpy()).sum()))
    return {"gradient": float((of_bias * direction).sum()), "difference": (sums[0] - sums[1]) / 2e-3}


def main() -> None:
    mode, file = sys.argv[1:]
    facts = {
        "running variance": running_variance(mode),
        "statistics moved forward": statistics_moved(mode),
        "adam": adam(),
        "moved": some_weights(mode),
        "clipped alone": clipped_alone(mode),
        "steps": many_steps(mode),
        "dropouts": dropouts(mode),
        "given masks": given_masks(mode),
        "layers": layers(mode),
        "evaluated gradient": evaluated_gradient(mode),
        "settings": built(mode, "linear")[0].settings(),
    }
    Path(file).write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
