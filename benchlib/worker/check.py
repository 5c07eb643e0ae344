"""A worker's computations for the equivalence gate: trials from the initial weights, each with a batch of its own. A
probe covers behaviour that trials do not show: the optimizer by itself and dropout at work.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from functools import partial
from typing import Any, Iterator, Sequence

import numpy as np

from benchlib.errors import BenchlibError
from benchlib.frameworks import GRADIENT_SCALE, Session, given_masks
from benchlib.workloads import Values, Workload

OF_ALL = 3  # steps of the probe with all weights; further ones are taken with a few, which cost next to nothing
FEW = 64  # numbers: of fewer, given gradients may all be 0, or nearly
SMALL_FROM = 30  # steps of the probe after which all gradients are small: a memory of larger ones shows
SAMPLED = 2000  # numbers of a weight that the probe hands out, at most, spread evenly
PERIOD = 4093  # numbers after which given weights and gradients repeat; a prime, so that no dimension falls in with it
ENOUGH = 10_000  # numbers that a dropout was given: then its share of zeros is known to 0.005 (a standard deviation)
LEAST_PASSES = 25  # masks that all have to differ
PASSES = 500  # to get there, at most: a place of 20 numbers a pass gets there
DROPPING = 3  # steps with dropout from the same weights and batch, each of which drops other numbers
FAR, LARGER, FARTHER = "far", 4.0, 1024.0  # the trial with weights, and a last layer, so many times as large
FAVOURED = (0, 1, 2, 3, "middle", -2, -1)  # columns that are made the likeliest there, in turn
LIVE = (3, 8)  # numbers of steps in a row after which the distance of the weights is taken


def compute_trial(
    session: Session,
    workload: Workload,
    values: Values,
    initial: dict[str, np.ndarray],
    batches: list[Any],
    steps: int,
    trial: str,
    again: bool,
    predicts: bool,
    masked: bool,
) -> dict[str, np.ndarray]:
    """Outputs and gradients of batch ``trial``, and the results of ``steps`` from it: losses, changes of weights and
    running statistics, evaluation outputs and predictions, named ``trial/quantity`` or ``trial/quantity:array``. An
    operator has the output of its first step in place of losses. Where there are fewer batches, the trial takes one
    again, with all weights larger by an eighth for each. One without a number takes the first; ``FAR`` has large
    weights. A trial made ``again`` asks a training workload for steps and evaluation only, with traces of an earlier
    one. It ``predicts`` if the workload's file does. ``masked``: each step drops by given masks.
    """
    number = int(trial) if trial.isdigit() else 0
    if number >= len(batches):  # the batch has been met: other weights meet other kinks
        initial = {name: array * np.float32(1 + number / 8) for name, array in initial.items()}
    batches = [*batches[number % len(batches) :], *batches[: number % len(batches)]]
    session.load(initial)
    favoured = {}  # type: dict[str, np.ndarray]
    if trial == FAR:
        initial, favoured = _enlarge(workload, values, initial, session.outputs(batches[0], training=False))
        session.load(initial)
    masked = masked and any(p > 0 for _, p in workload.dropouts(values))
    drops = partial(given_masks, session) if masked else lambda step: ExitStack()
    arrays = {}
    if workload.kind != "training" or not again:
        with drops(0):
            arrays.update(_numbered("outputs", session.outputs(batches[0], training=True)))
        session.load(initial)
        with drops(0):
            gradients = session.gradients(batches[0])
        arrays.update({f"gradient:{name}": array for name, array in gradients.items()})
        arrays.update({f"gradient size:{name}": _size([array]) for name, array in gradients.items()})
    session.load(initial, GRADIENT_SCALE)  # a forward pass may have moved running statistics; no step may be left out
    results = []
    for step in range(steps):
        with drops(step):
            results.append(session.step(batches[step % len(batches)]))
    session.synchronize()
    if workload.kind == "operator":
        arrays["outputs:step"] = session.to_numpy(results[0])
    else:
        arrays["losses"] = np.array([float(session.to_numpy(loss)) for loss in results])
        arrays["first loss"] = arrays["losses"][:1]
    arrays.update(_changes(session.weights(), initial, workload, values))
    if trial == FAR:
        session.load(initial)
    evaluated = session.outputs(batches[0], training=False)
    arrays.update(_numbered("evaluation outputs", evaluated))
    if workload.kind == "training" and not again:
        arrays["predictions"] = session.predictions(batches[0]) if predicts else evaluated[0].argmax(axis=-1)
    for place in FAVOURED if favoured else ():
        most = 4 * np.float32(max(np.abs(output).max() for output in evaluated))
        session.load({**initial, **{name: _favour(one, place, most) for name, one in favoured.items()}})
        arrays[f"predictions:{place}"] = predict(session, batches[0], predicts)
    return {f"{trial}/{name}": array for name, array in arrays.items()}


def predict(session: Session, batch: Any, predicts: bool) -> np.ndarray:
    """The predictions for a batch: by the file's own code if it ``predicts``, else the classes of its first output."""
    return session.predictions(batch) if predicts else session.outputs(batch, training=False)[0].argmax(axis=-1)


def _enlarge(
    workload: Workload, values: Values, initial: dict[str, np.ndarray], outputs: tuple[np.ndarray, ...]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Larger weights, and the biases of the last layer as they were: the last with a number for each output column."""
    shapes = {name: weight.shape for name, weight in workload.weights(values).items() if weight.trained}
    factors = {name: LARGER for name, shape in shapes.items() if len(shape) > 1}
    for columns in [output.shape[-1] for output in outputs]:
        for dimensions in (1, 2):
            alike = [name for name, shape in shapes.items() if shape[0] == columns and len(shape) == dimensions]
            factors.update(dict.fromkeys(alike[-1:], FARTHER))
    larger = {name: array * np.float32(factors.get(name, 1)) for name, array in initial.items()}
    return larger, {name: initial[name] for name in factors if len(shapes[name]) == 1}


def _favour(bias: np.ndarray, place: Any, most: np.float32) -> np.ndarray:
    """A bias that makes one column the likeliest, beside outputs of a quarter of ``most``."""
    favoured = bias.copy()
    favoured[(len(bias) // 2 if place == "middle" else place) % len(bias)] += most
    return favoured


def _changes(
    weights: dict[str, np.ndarray], initial: dict[str, np.ndarray], workload: Workload, values: Values
) -> dict[str, np.ndarray]:
    """The change of each array: ``update:NAME`` of a trained one, ``state:NAME`` of the others. ``weight size:NAME`` is
    the largest number of each before, beside which rounding makes itself felt.
    """
    trains = workload.kind == "training"
    trained = {name for name, weight in workload.weights(values).items() if weight.trained and trains}
    changes = {name: array - initial[name] for name, array in weights.items()}
    arrays = {f"{'update' if name in trained else 'state'}:{name}": change for name, change in changes.items()}
    arrays.update({f"weight size:{name}": np.abs(initial[name]).max(keepdims=True) for name in changes})
    if trained:
        arrays["update size"] = _size([change for name, change in changes.items() if name in trained])
    return arrays


def probe(
    session: Session,
    workload: Workload,
    values: Values,
    initial: dict[str, np.ndarray],
    batch: Any,
    records: Sequence[int],
) -> dict[str, np.ndarray]:
    """Probe a training workload, built with the hyperparameters that it is measured with. ``probe/weights STEP:NAME``
    are ``SAMPLED`` numbers of each weight after each of ``records``, up to ``OF_ALL`` steps. Steps are the optimizer's,
    with given gradients from given weights. ``probe/weights STEP:NAME alone`` are those after each of ``records``, of
    one weight of each kind alone. ``probe/evaluation outputs`` are from the initial weights. For ``dropout/...`` see
    :func:`observe_dropout`, for ``dropout/step losses`` and ``dropout/moved STEPS`` :func:`take_steps`.
    """
    for method in (one for one in ("update", "dropouts") if not hasattr(session, one)):
        lacks = f"its Session has no method {method!r}: see Session in benchlib/frameworks/__init__.py"
        raise BenchlibError(f"{type(session).__module__}: {lacks}")
    session.load(initial)
    evaluated = session.outputs(batch, training=False)
    arrays = {f"probe/{name}": array for name, array in _numbered("evaluation outputs", evaluated).items()}
    arrays.update(observe_dropout(session, batch))  # after an evaluation, which must not have switched it off
    again = session.outputs(batch, training=False)
    for name, outputs in (("evaluation", evaluated), ("evaluation again", again)):
        arrays.update({f"dropout/{one}": array for one, array in _numbered(name, outputs).items()})
    shapes = {name: weight.shape for name, weight in workload.weights(values).items() if weight.trained}
    arrays.update(take_steps(session, initial, batch, list(shapes), any(p > 0 for _, p in workload.dropouts(values))))
    for of, suffix, until in ((shapes, "", OF_ALL), (_of_each_kind(shapes), " alone", max(records))) if records else ():
        session.load({**initial, **_given_weights(shapes)})
        gradients, before = list(_given_gradients(of, values.get("clip"))), 0
        for step in (0, *(one for one in records if one <= until)):
            if step:
                turn = [gradients[number % len(gradients)] for number in range(before, step)]
                session.update(turn[: len(gradients)] if before < SMALL_FROM else gradients[-1:], step - before)
            before = step
            state = session.weights()
            arrays.update({f"probe/weights {step}:{name}{suffix}": _sample(state[name]) for name in of})
    return arrays


def take_steps(
    session: Session, initial: dict[str, np.ndarray], batch: Any, trained: Sequence[str], drops: bool
) -> dict[str, np.ndarray]:
    """Take steps as they are timed, which nothing else looks into, because a framework may have compiled them.
    ``dropout/step losses`` are those of one step, or ``DROPPING`` where it ``drops``, each from the initial weights and
    with the same batch. ``dropout/moved STEPS`` are the norms by which the ``trained`` weights have moved after so many
    steps in a row (``LIVE``). The last step of the losses is the first of these.
    """
    losses = []
    for _ in range(DROPPING if drops else 1):
        session.load(initial)
        losses.append(session.to_numpy(session.step(batch)))
    arrays, taken = {"dropout/step losses": np.array(losses, dtype=float)}, 1
    for steps in LIVE:
        for _ in range(steps - taken):
            session.step(batch)
        taken = steps
        session.synchronize()
        state = session.weights()
        moved = [_size([state[name].astype(float) - initial[name]]) for name in trained]
        arrays[f"dropout/moved {steps}"] = np.concatenate(moved)
    return arrays


def _of_each_kind(shapes: dict[str, tuple]) -> dict[str, tuple]:
    """Choose one weight of each number of dimensions: the smallest of ``FEW`` numbers or more, else the largest. Rules
    that treat weights differently, such as decay, go by that number, or have shown in the first steps, of all.
    """

    def order(name: str) -> tuple[bool, int, str]:
        size = int(np.prod(shapes[name]))
        return size < FEW, -size if size < FEW else size, name

    kinds = {len(shapes[name]): name for name in sorted(shapes, key=order, reverse=True)}  # the first of each stays
    return {name: shapes[name] for name in shapes if name in kinds.values()}


def _given_weights(shapes: dict[str, tuple]) -> dict[str, np.ndarray]:
    """Weights of either sign, between 0.5 and 1: far from 0, where decay and rounding could not be distinguished."""
    random = np.random.RandomState(1)  # not default_rng, whose numbers may change with numpy's version
    table = _signs(random) * random.uniform(0.5, 1.0, PERIOD)
    return {name: _spread(table, number, shape) for number, (name, shape) in enumerate(shapes.items())}


def _given_gradients(shapes: dict[str, tuple], clip: float | None) -> Iterator[dict[str, np.ndarray]]:
    """Three sets, which take turns. A number in ten is always 0; one in five of the others is 0 in two of the sets. The
    rest is of any size from 3e-9 (beside which epsilon counts) to 3, and changes by up to ten times from set to set.
    The third is small: where gradients are clipped to the norm ``clip``, this one is left alone.

    All have their weight's sign, so that decay never cancels them.
    """
    random = np.random.RandomState(1)
    signs = _signs(random)
    random.uniform(0.5, 1.0, PERIOD)  # the weights'
    sizes = 10 ** random.uniform(-8.5, 0.5, PERIOD)
    never, sparse = random.uniform(0, 1, (2, PERIOD)) < [[0.1], [0.2]]
    for number in range(3):
        here = sizes * 10 ** random.uniform(-0.5, 0.5, PERIOD) * ~(never | (sparse & (number > 0))) * signs
        given = {name: _spread(here, place, shape) for place, (name, shape) in enumerate(shapes.items())}
        if number == 2:
            norm = math.sqrt(sum(float(np.square(array, dtype=float).sum()) for array in given.values()))
            least = 0.1 if clip is None else min(0.1, 0.5 * clip / max(norm, 1e-12))
            given = {name: array * np.float32(least) for name, array in given.items()}
        yield given


def _signs(random: np.random.RandomState) -> np.ndarray:
    return random.randint(0, 2, PERIOD) * 2 - 1


def _spread(table: np.ndarray, number: int, shape: tuple) -> np.ndarray:
    """A table as an array of any shape; array after array begins at another place of it."""
    return np.resize(np.roll(table, -977 * number), shape).astype(np.float32)


def _sample(array: np.ndarray) -> np.ndarray:
    numbers = array.reshape(-1)
    return numbers[np.unique(np.linspace(0, numbers.size - 1, min(numbers.size, SAMPLED)).astype(int))]


def observe_dropout(session: Session, batch: Any) -> dict[str, np.ndarray]:
    """The effect of dropout on a batch, over passes. ``dropout/places`` are the fewest and the most places of any pass.
    Of each place, in order, ``given`` counts its numbers in a pass, and ``root mean square`` is over all passes.
    ``numbers`` counts those that were not 0 before, ``zeros`` those of them that are 0 after. ``least scale`` and
    ``greatest scale`` are of the numbers left. ``neighbours`` is how far joint drops of adjacent numbers are from
    chance, in standard deviations. ``repeats`` counts pairs of passes that drop the same, up to ``LEAST_PASSES`` apart,
    ``twins`` the earlier places that do. ``evaluation places`` counts those that change anything in evaluation.
    """
    places = []  # type: list[_Place]
    counts = []
    for number in range(PASSES):
        masks = [
            _Mask(given, left) for _, given, left in session.dropouts(batch, True) if not np.array_equal(given, left)
        ]
        counts.append(len(masks))
        places += [_Place() for _ in masks[len(places) :]]
        for place, mask in zip(places, masks):
            place.add(mask, masks[: masks.index(mask)])
        if number + 1 >= LEAST_PASSES and all(place.numbers >= ENOUGH for place in places):
            break
    arrays = {"places": np.array([min(counts), max(counts)])}
    if places:
        rows = np.array([place.row() for place in places], dtype=float)
        arrays.update(zip(_Place.ROW, rows.T))
    evaluated = session.dropouts(batch, False)
    arrays["evaluation places"] = np.array([sum(not np.array_equal(given, left) for _, given, left in evaluated)])
    return {f"dropout/{name}": array for name, array in arrays.items()}


class _Mask:
    """The mask of one dropout: ``seen`` are the numbers whose drop could be seen, because they were not 0 before, and
    ``zero`` those dropped.
    """

    def __init__(self, given: np.ndarray, left: np.ndarray) -> None:
        self.squares = float(np.square(given, dtype=float).sum())
        self.seen = given != 0
        self.zero = self.seen & (left == 0)
        kept = self.seen & (left != 0) & (np.abs(given) > np.finfo(np.float32).tiny * 2**24)
        self.scales = left[kept].astype(float) / given[kept]

    def is_like(self, other: _Mask) -> bool:
        if self.seen.shape != other.seen.shape:
            return False
        both = self.seen & other.seen
        return bool(both.sum() >= 64 and (self.zero == other.zero)[both].all() and self.zero[both].any())


class _Place:
    """A place of a model where numbers are dropped, over several passes."""

    ROW = ("given", "root mean square", "numbers", "zeros", "least scale", "greatest scale")
    ROW += ("neighbours", "repeats", "twins")

    def __init__(self) -> None:
        self.given, self.numbers, self.zeros, self.repeats, self.twins = 0, 0, 0, 0, 0
        self.passes, self.squares = 0, 0.0
        self.least, self.greatest = math.inf, -math.inf
        self.together = {}  # type: dict[int, list[float]]
        self.before = []  # type: list[_Mask]

    def add(self, mask: _Mask, others: list[_Mask]) -> None:
        self.given = mask.seen.size
        self.passes += 1
        self.squares += mask.squares
        self.numbers += int(mask.seen.sum())
        self.zeros += int(mask.zero.sum())
        if mask.scales.size:
            self.least = min(self.least, float(mask.scales.min()))
            self.greatest = max(self.greatest, float(mask.scales.max()))
        self.repeats += sum(map(mask.is_like, self.before))
        self.twins = max(self.twins, sum(mask.is_like(other) for other in others))
        self.before = [*self.before, mask][-LEAST_PASSES:]
        share = mask.zero.sum() / max(1, mask.seen.sum())
        if not 0 < share < 1:
            return
        apart = np.where(mask.seen, mask.zero - share, 0.0) / math.sqrt(share * (1 - share))
        for axis in range(apart.ndim):
            a, b = (np.take(apart, range(*ends), axis) for ends in ((apart.shape[axis] - 1,), (1, apart.shape[axis])))
            sums = self.together.setdefault(axis, [0.0, 0.0])
            sums[0] += float((a * b).sum())
            sums[1] += float(((a != 0) & (b != 0)).sum())

    def row(self) -> tuple[float, ...]:
        neighbours = max((abs(total) / math.sqrt(pairs) for total, pairs in self.together.values() if pairs), default=0)
        mean = math.sqrt(self.squares / max(1, self.passes * self.given))
        given = self.given, mean, self.numbers
        return (*given, self.zeros, self.least, self.greatest, neighbours, self.repeats, self.twins)


def _size(arrays: list[np.ndarray]) -> np.ndarray:
    """The Euclidean norm of all together."""
    return np.array([math.sqrt(sum(float(np.square(array, dtype=float).sum()) for array in arrays))])


def _numbered(quantity: str, arrays: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    return {f"{quantity}:{number}": array for number, array in enumerate(arrays)}
