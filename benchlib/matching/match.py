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
from benchlib.frameworks._layouts import layouts, plain

CLOSE = 1e-3
"""The largest relative distance of a layer's numbers, in single precision, that a matched layer has."""

COMBINATIONS = 64
"""Layouts of a layer's weights that are tried, at most."""

Part = dict[str, Any]
"""See ``benchlib.frameworks._matched.Part``."""

Layers = Sequence[tuple[str, np.ndarray]]
Compute = Callable[[list[Part]], Layers]


@dataclass(frozen=True)
class Described:
    """A model's own weights, as its session names them: shape and whether it is trained; and its layers in order."""

    weights: Mapping[str, tuple[tuple[int, ...], bool]]
    layers: Sequence[str]

    def by_call(self) -> list[str]:
        """The names of the weights in the order in which a forward pass comes to them."""
        called = {layer: number for number, layer in enumerate(self.layers)}
        places = {name: number for number, name in enumerate(self.weights)}
        roles = {name: number for number, name in enumerate(("weight", "bias", "running_mean", "running_var"))}

        def order(name: str) -> tuple[int, int, int]:
            layer, _, last = name.rpartition(".")
            return called.get(layer, -1), roles.get(plain(last), len(roles)), places[name]

        return sorted(self.weights, key=order)

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
    by_name = {plain(one): one for one in free}
    for name in list(left):
        one = by_name.get(plain(name))
        if one in free and its.size(name) == own.size(one) and its.weights[name][1] == own.weights[one][1]:
            take([name], one)
    frozen = _take_joined(its, own, left, free, take)
    _take_thirds(its, own, left, free, take)
    for size, trained in dict.fromkeys((its.size(name), its.weights[name][1]) for name in left):
        some = [name for name in left if (its.size(name), its.weights[name][1]) == (size, trained)]
        others = [one for one in free if (own.size(one), own.weights[one][1]) == (size, trained)]
        for name, one in zip(some, others, strict=False):
            take([name], one)
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
        for one in [one for one in biases if one in free and one.endswith("bias")]:
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
    for whole, thirds, is_its in ((its, own, True), (own, its, False)):
        names, others = (left, free) if is_its else (free, left)
        for name in list(names):
            apart: dict[tuple[str, str], dict[str, str]] = {}
            for one in others:
                layer, _, last = one.rpartition(".")
                path, _, called = layer.rpartition(".")
                role = called.removeprefix("to_").removeprefix("w")[:1]
                if role in ("q", "k", "v") and 3 * thirds.size(one) == whole.size(name):
                    apart.setdefault((path, plain(last)), {})[role] = one
            found = next(([some["q"], some["k"], some["v"]] for some in apart.values() if len(some) == 3), None)
            has_partner = sum(whole.size(one) == whole.size(name) for one in names) <= sum(
                thirds.size(one) == whole.size(name) for one in others
            )
            if found and not has_partner:
                take(*([[name], *found] if is_its else [found, name]), **({} if is_its else {"how": "concat"}))


def _unmatched(its: Described, own: Described, left: list[str], free: list[str], where: str) -> str:
    def listed(model: Described, names: list[str]) -> str:
        shown = ", ".join(f"{name} {model.weights[name][0]}" for name in names[:4])
        return f"{shown}{f' and {len(names) - 4} more' if names[4:] else ''}" if names else "none"

    return (
        f"{where}: {len(own.weights)} weights, the reference has {len(its.weights)}; those without a partner: here "
        f"{listed(own, free)}; in the reference {listed(its, left)}. Mend the model (padding and strides decide the "
        "size of a dense layer that follows), or say which belong together: "
        'WEIGHTS = {"name in the reference": "name here"}'
    )


def settle(
    its: Described, parts: list[Part], reference: Layers, compute: Compute, images: Iterable[int] = ()
) -> tuple[list[Part], str]:
    """The parts in the layouts with which layer after layer gives the ``reference``'s numbers, and the place where no
    layout does (empty: there is none). ``compute`` gives the model's layers; ``images`` are its inputs' channels.
    """
    wanted = _by_call(reference)
    channels = {*images, *(array.shape[1] for array in wanted.values() if array.ndim == 4)}
    possible = {
        _kind(part): list(layouts(part, [its.weights[name][0] for name in part["of"]], channels)) for part in parts
    }
    chosen = dict.fromkeys(possible, 0)

    def laid_out(choice: Mapping[Any, int]) -> list[Part]:
        return [{**part, **possible[_kind(part)][choice[_kind(part)]]} for part in parts]

    tried: set[str] = set()
    apart = _first_apart(wanted, compute(laid_out(chosen)))
    while apart and apart not in tried:
        tried.add(apart)
        kinds = list(dict.fromkeys(_kind(part) for part in _suspects(parts, wanted, apart)))
        every = itertools.islice(itertools.product(*(range(len(possible[kind])) for kind in kinds)), 20_000)
        for places in sorted(every, key=sum)[1 : COMBINATIONS + 1]:  # those nearest to the beginnings of all first
            changed = {**chosen, **dict(zip(kinds, places, strict=True))}
            later = _first_apart(wanted, compute(laid_out(changed)))
            if not later or list(wanted).index(later) > list(wanted).index(apart):
                chosen, apart = changed, later
                break
    return laid_out(chosen), apart


def _kind(part: Part) -> tuple[Any, ...]:
    """Arrays of one kind have one layout in all layers: those of one name, but for numbers, and of one shape."""
    names = [[one for one in name.split(".") if not one.isdigit()][-2:] for name in (part["own"], part["of"][0])]
    return str(names), str(part["own_shape"]), str(part.get("rows"))


def _by_call(layers: Layers) -> dict[str, np.ndarray]:
    names = [name for name, _ in layers]
    return {f"{name}/{names[:number].count(name)}": array for number, (name, array) in enumerate(layers)}


def _first_apart(wanted: Mapping[str, np.ndarray], layers: Layers) -> str:
    """The first of the reference's numbers that the model gives otherwise; empty: there are none. An output does not
    count where the next layer's input is the same: a framework may have the activation within the layer.
    """
    found = _by_call(layers)
    alike = {name: its for name, its in wanted.items() if name in found and found[name].size == its.size}
    close = {name: _close(found[name], its) for name, its in alike.items()}
    names = list(close)
    for place, name in enumerate(names):
        following = next((one for one in names[place + 1 :] if not one.startswith("output")), name)
        if not close[name] and not (name.startswith("output") and close[following]):
            return name
    return ""


def _close(ours: np.ndarray, its: np.ndarray) -> bool:
    """Are they the same numbers, in whatever layout?"""
    if not np.isfinite(ours).all():
        return False
    size = max(float(np.linalg.norm(its)), 1e-30)
    if ours.shape == its.shape and np.linalg.norm(ours - its) <= CLOSE * size:
        return True
    return bool(np.linalg.norm(np.sort(ours, axis=None) - np.sort(its, axis=None)) <= CLOSE * size / 10)


def _suspects(parts: list[Part], wanted: Mapping[str, np.ndarray], apart: str) -> Iterator[Part]:
    """The parts that may make the numbers apart: those of the layer, or of all before it, the last ones first."""
    before = list(wanted)[: list(wanted).index(apart) + 1]
    layers = list(dict.fromkeys(map(_layer, before)))
    if apart.startswith("input"):
        layers.pop()
    called = set(map(_layer, wanted))
    last = [part for part in parts if layers and part["of"][0].rpartition(".")[0] == layers[-1]]
    yield from last
    if apart.startswith("output"):
        return
    yield from (part for part in parts if part["of"][0].rpartition(".")[0] not in called and part not in last)


def _layer(name: str) -> str:
    return name.partition("/")[0].rpartition("put of ")[2]
