"""The weights of one model in two frameworks, matched: by what the user says, by name, else by order and size; layouts
are those with which each layer gives the reference's numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchlib.errors import BenchlibError, no_such

CLOSE = 1e-3
"""The largest relative distance of a layer's numbers, in single precision, that a matched layer has."""

COMBINATIONS = 64
"""Layouts of a layer's weights that are tried, at most."""

SYNONYMS = {
    **dict.fromkeys(("kernel", "scale", "gamma", "embedding", "embeddings", "embedding_table"), "weight"),
    "beta": "bias",
    **dict.fromkeys(("mean", "moving_mean"), "running_mean"),
    **dict.fromkeys(("var", "moving_var", "moving_variance"), "running_var"),
}
"""By a framework's last part of a weight's name: PyTorch's."""

GATES = {4: ((0, 1, 3, 2), (0, 2, 1, 3), (1, 0, 2, 3)), 3: ((1, 0, 2), (2, 0, 1), (1, 2, 0))}
"""Other orders of a recurrent layer's gates, by their number."""

KERNELS = ((2, 3, 1, 0), (2, 3, 0, 1), (0, 2, 3, 1), (1, 0, 2, 3), (3, 2, 0, 1), (0, 1, 2, 3))

Part = dict[str, Any]
"""See ``benchlib.frameworks._matched.Part``."""

Layers = Sequence[tuple[str, np.ndarray]]


@dataclass(frozen=True)
class Described:
    """A model's own weights, as its session names them: shape and whether it is trained; and its layers in order."""

    weights: Mapping[str, tuple[tuple[int, ...], bool]]
    layers: Sequence[str]

    def by_call(self) -> list[str]:
        """The names of the weights in the order in which a forward pass comes to them."""
        called = {layer: number for number, layer in enumerate(self.layers)}
        places = {name: number for number, name in enumerate(self.weights)}
        return sorted(self.weights, key=lambda name: (called.get(name.rpartition(".")[0], -1), places[name]))

    def size(self, name: str) -> int:
        return int(np.prod(self.weights[name][0], dtype=int))


def pair(its: Described, own: Described, given: Mapping[str, str], where: str) -> tuple[list[Part], list[str]]:
    """The parts of a model's weights among the reference's, in no layout yet, and the weights that are frozen: second
    biases, where this model has them joined with the first. A BenchlibError names the weights without a partner.
    """
    parts: list[Part] = []
    left, free = its.by_call(), own.by_call()

    def take(names: Sequence[str], *owns: str, **how: Any) -> None:
        rows = np.cumsum([0, *([its.weights[names[0]][0][0] // len(owns)] * len(owns) if owns[1:] else [])])
        for number, one in enumerate(owns):
            part: Part = {"own": one, "of": list(names), "own_shape": list(own.weights[one][0]), **how}
            parts.append(part | ({"rows": [int(rows[number]), int(rows[number + 1])]} if owns[1:] else {}))
            free.remove(one)
        for name in names:
            left.remove(name)

    for name, one in given.items():
        name, one = (name, one) if name in its.weights else (one, name)
        for what, known in ((name, its.weights), (one, own.weights)):
            if what not in known:
                raise BenchlibError(f"{where}: WEIGHTS: {no_such('weight', what, known)}")
        take([name], one)
    plain = {_plain(one): one for one in free}
    for name in list(left):
        one = plain.get(_plain(name))
        if one in free and its.size(name) == own.size(one) and its.weights[name][1] == own.weights[one][1]:
            take([name], one)
    frozen = _take_joined(its, own, left, free, take)
    for size, trained in dict.fromkeys((its.size(name), its.weights[name][1]) for name in left):
        some = [name for name in left if (its.size(name), its.weights[name][1]) == (size, trained)]
        others = [one for one in free if (own.size(one), own.weights[one][1]) == (size, trained)]
        for name, one in zip(some, others, strict=False):
            take([name], one)
    _take_thirds(its, own, left, free, take)
    if left or free:
        raise BenchlibError(_unmatched(its, own, left, free, where))
    order = {one: place for place, one in enumerate(own.by_call())}
    return sorted(parts, key=lambda part: order[part["own"]]), frozen


def _take_joined(its: Described, own: Described, left: list[str], free: list[str], take: Callable) -> list[str]:
    """Recurrent layers whose two biases are one array there: added, or behind each other."""
    frozen = []
    pairs = [(name, name.replace("bias_ih", "bias_hh")) for name in left if "bias_ih" in name]
    biases = [one for one in free if len(own.weights[one][0]) == 1 or own.weights[one][0][0] == 2]
    for first, second in pairs:
        ends = SYNONYMS | {}  # the biases of recurrent layers are called bias everywhere but in PyTorch and MindSpore
        for one in [one for one in biases if one in free and ends.get(one, one).endswith("bias")]:
            if own.size(one) == its.size(first) + its.size(second):
                take([first, second], one, how="concat")
                break
            alike = sum(own.size(other) == its.size(first) for other in biases if other in free)
            rivals = sum(its.size(name) == its.size(first) for name in left if len(its.weights[name][0]) == 1)
            if own.size(one) == its.size(first) and alike < rivals:
                take([first, second], one, how="sum")
                frozen.append(second)
                break
    return frozen


def _take_thirds(its: Described, own: Described, left: list[str], free: list[str], take: Callable) -> None:
    """Attention whose query, key and value are one array here and three there, or the other way round."""
    for name in list(left):
        size = its.size(name)
        others = [one for one in free if own.size(one) * 3 == size and own.weights[one][1] == its.weights[name][1]]
        if len(others) >= 3:
            take([name], *others[:3])
    for one in list(free):
        size = own.size(one)
        some = [name for name in left if its.size(name) * 3 == size and own.weights[one][1] == its.weights[name][1]]
        if len(some) >= 3:
            take(some[:3], one, how="concat")


def _plain(name: str) -> str:
    head, dot, last = name.rpartition(".")
    return f"{head}{dot}{SYNONYMS.get(last, last)}"


def _unmatched(its: Described, own: Described, left: list[str], free: list[str], where: str) -> str:
    def listed(model: Described, names: list[str]) -> str:
        shown = ", ".join(f"{name} {model.weights[name][0]}" for name in names[:4])
        return f"{shown}{f' and {len(names) - 4} more' if names[4:] else ''}" if names else "none"

    return (
        f"{where}: {len(own.weights)} weights, but the reference has {len(its.weights)}; those without a partner: here "
        f"{listed(own, free)}; in the reference {listed(its, left)}. Mend the model, or say which belong together: "
        'WEIGHTS = {"name in the reference": "name here"}'
    )


def settle(
    its: Described, parts: list[Part], reference: Layers, compute: Callable[[list[Part]], Layers]
) -> tuple[list[Part], str]:
    """The parts in the layouts with which layer after layer gives the ``reference``'s numbers, and the place where no
    layout does (empty: there is none). ``compute`` gives the layers of the model with the weights of some parts.
    """
    wanted = _by_call(reference)
    channels = {array.shape[1] for array in wanted.values() if array.ndim == 4}
    every = {part["own"]: list(_layouts(its, part, channels)) for part in parts}
    parts = [every[part["own"]][0] for part in parts]
    settled: set[str] = set()
    parted, apart = "", _first_apart(wanted, compute(parts))
    while apart and apart != parted:
        suspects = _suspects(parts, wanted, apart, settled)
        choices = [every[parts[number]["own"]] for number in suspects]
        for tried in itertools.islice(_combinations(choices), COMBINATIONS):
            changed = list(parts)
            for number, layout in zip(suspects, tried, strict=True):
                changed[number] = layout
            later = _first_apart(wanted, compute(changed))
            if later != apart and _is_later(wanted, apart, later):
                parts, apart = changed, later
                break
        else:
            parted = apart
        settled |= {parts[number]["own"] for number in suspects}
    return parts, parted


def _combinations(choices: list[list[Part]]) -> Iterator[tuple[Part, ...]]:
    """All choices, those first in which the least changes."""
    every = itertools.islice(itertools.product(*(range(len(some)) for some in choices)), 20_000)
    for chosen in sorted(every, key=sum)[1:]:
        yield tuple(some[place] for some, place in zip(choices, chosen, strict=True))


def _layouts(its: Described, part: Part, channels: Iterable[int]) -> Iterator[Part]:
    """The layouts that an array may have in the model, the likeliest first, each once."""
    shapes = [its.weights[name][0] for name in part["of"]]
    source = list(shapes[0])
    if "rows" in part:
        source[0] = part["rows"][1] - part["rows"][0]
    if part.get("how") == "concat":
        source[0] = sum(shape[0] for shape in shapes)
    own, seen = part["own_shape"], set()
    for how in _changes(tuple(source), tuple(own), channels):
        key = repr(sorted(how.items()))
        if key not in seen:
            seen.add(key)
            yield {**part, **how}


def _changes(source: tuple[int, ...], own: tuple[int, ...], channels: Iterable[int]) -> Iterator[dict[str, Any]]:
    same, axes = source == own, range(len(source))
    if same:
        yield {}
    orders = KERNELS if len(source) == 4 else itertools.permutations(axes) if len(source) < 4 else ()
    fitting = [list(one) for one in orders if tuple(source[axis] for axis in one) == own and list(one) != list(axes)]
    yield from ({"axes": one} for one in fitting)
    if not same and not fitting:
        yield {}  # the same numbers in another shape
    if len(source) == 4:  # a transposed convolution's kernel, which some turn round
        for one in ([*axes], *fitting):
            if tuple(source[axis] for axis in one) == own:
                sides = [place for place, axis in enumerate(one) if axis > 1]
                yield {"axes": one, "flip": sides}
    turned = [1, 0] if len(source) == 2 and not same else [*axes]
    for order in GATES.get(4 if source[0] % 4 == 0 else 3, ()) if source[0] % 4 == 0 or source[0] % 3 == 0 else ():
        yield {"order": list(order), **({"axes": turned} if len(source) == 2 else {})}
    yield from _flattened(source, own, channels)
    yield from _heads(source, own)


def _flattened(source: tuple[int, ...], own: tuple[int, ...], channels: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Inputs or outputs of a dense layer that are an image's places, channel by channel here and last there."""
    for side, size in enumerate(source[:2]):
        for channel in sorted(channels):
            height = round((size / channel) ** 0.5)
            if channel * height * height != size or height < 2:
                continue
            image, moved = [channel, height, height], [1, 2, 0]
            if len(source) == 1:
                yield {"shape": image, "axes": moved}
            elif side == 1 and len(source) == 2:
                shape, order = [source[0], *image], [0, 2, 3, 1]
                yield {"shape": shape, "axes": order}
                yield {"shape": shape, "axes": [2, 3, 1, 0]}
            elif len(source) == 2:
                yield {"shape": [*image, source[1]], "axes": [1, 2, 0, 3]}
                yield {"shape": [*image, source[1]], "axes": [3, 1, 2, 0]}


def _heads(source: tuple[int, ...], own: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Matrices of an attention with several heads, which some keep as an axis of its own."""
    if len(source) != 2 or len(own) < 2:
        return
    for heads in (own[0], own[1], 2, 3, 4, 6, 8, 12, 16):
        for side in (0, 1):
            if heads > 1 and source[side] % heads == 0 and heads < source[side]:
                split = [heads, source[side] // heads]
                shape = [*split, source[1]] if side == 0 else [source[0], *split]
                for axes in ((1, 0, 2), (2, 0, 1), (0, 2, 1), (1, 2, 0)):
                    yield {"shape": shape, "axes": list(axes)}


def _by_call(layers: Layers) -> dict[str, np.ndarray]:
    names = [name for name, _ in layers]
    return {f"{name}/{names[:number].count(name)}": array for number, (name, array) in enumerate(layers)}


def _first_apart(wanted: Mapping[str, np.ndarray], layers: Layers) -> str:
    """The first of the reference's numbers that the model gives otherwise; empty: there are none."""
    found = _by_call(layers)
    return next((name for name, array in wanted.items() if name in found and not _close(found[name], array)), "")


def _close(ours: np.ndarray, its: np.ndarray) -> bool:
    """Are they the same numbers, in whatever layout?"""
    if ours.size != its.size or not np.isfinite(ours).all():
        return False
    size = max(float(np.linalg.norm(its)), 1e-30)
    if ours.shape == its.shape and np.linalg.norm(ours - its) <= CLOSE * size:
        return True
    return bool(np.linalg.norm(np.sort(ours, axis=None) - np.sort(its, axis=None)) <= CLOSE * size / 10)


def _is_later(wanted: Mapping[str, np.ndarray], before: str, now: str) -> bool:
    names = list(wanted)
    return not now or names.index(now) > names.index(before)


def _suspects(parts: list[Part], wanted: Mapping[str, np.ndarray], apart: str, settled: set[str]) -> list[int]:
    """The parts that may make the numbers apart: those of the layer, or of all before it that are in no layer."""
    before = list(wanted)[: list(wanted).index(apart) + 1]
    layers = {name.partition("/")[0].rpartition("put of ")[2] for name in before if name.startswith("output")}
    called = {name.partition("/")[0].rpartition("put of ")[2] for name in wanted}
    found = []
    for number, part in enumerate(parts):
        layer = part["of"][0].rpartition(".")[0]
        if part["own"] not in settled and (layer in layers or layer not in called):
            found.append(number)
    last = [number for number in found if parts[number]["of"][0].rpartition(".")[0] == list(layers)[-1]] if layers else []
    return last if apart.startswith("output") and last else found
