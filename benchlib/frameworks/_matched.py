"""A model whose weights have other names or layouts than its workload's: a session that computes with the one and
answers with the other. What is timed is the session's own step; only weights, gradients and layers are translated.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from benchlib.frameworks import NoMasks, Session
from benchlib.workloads import Values, Weight, Workload

Arrays = Mapping[str, np.ndarray]
Part = Mapping[str, Any]
"""An array of the model (``own``, of ``own_shape``) and the workload's weights that it is made of (``of``).

Several are put behind each other (``how="concat"``), or added (``"sum"``: all but the first are not trained). Of one,
rows may be taken (``rows``: first and last, as in a slice). Then come ``shape``, ``order`` (of equal blocks of rows),
``axes`` and ``flip`` (axes of the result), where they are given.
"""


def build(
    parts: Sequence[Part],
    session: Session,
    workload: Workload,
    module: ModuleType,
    values: Values,
    learning_rate: float | None,
) -> None:
    """Build a workload whose weights are those of ``parts`` in the model. While they are looked for, ``values`` has a
    ``match`` to try, or a file to ``describe`` the model in.
    """
    for name in _TRANSLATED:
        vars(session).pop(name, None)  # an earlier translation's
    if "describe" in values:
        _describe(session, workload, module, values, learning_rate)
        return
    weights = {
        name: Weight(tuple(shape), "zeros", trained=trained) for name, shape, trained in values.get("weights", ())
    }
    translation = Translation(values.get("match", parts), weights or workload.weights(values), session.weights)
    own = replace(workload, weights=lambda _: translation.own)
    type(session).build(session, own, module, values, learning_rate)
    for name in _TRANSLATED:
        if hasattr(session, name):
            setattr(session, name, partial(getattr(translation, name), getattr(session, name)))


_TRANSLATED = ("load", "weights", "gradients", "update", "layers")


class Translation:
    """Arrays by the workload's names from those by the model's, and back."""

    def __init__(
        self, parts: Sequence[Part], weights: Mapping[str, Weight], own_weights: Callable[[], Arrays] = dict
    ) -> None:
        self._parts, self._weights, self._own_weights = parts, weights, own_weights
        self.own = {
            one["own"]: Weight(tuple(one["own_shape"]), "zeros", trained=weights[one["of"][0]].trained) for one in parts
        }
        layers = {one["own"].rpartition(".")[0]: one["of"][0].rpartition(".")[0] for one in reversed(parts)}
        inner = {
            one for one in layers for other in layers if one.startswith(f"{other}.") and layers[one] == layers[other]
        }
        self._layers = {own: its for own, its in layers.items() if own and own not in inner}
        self._kept = {}  # type: dict[str, np.ndarray]

    def load(self, load: Any, weights: Arrays, *arguments: Any) -> None:
        self._kept = {name: np.array(array) for name, array in weights.items()}
        load(self.to_own(weights), *arguments)
        is_double = any(array.dtype == np.float64 for array in self._own_weights().values())
        if is_double and any(one.get("how") == "sum" for one in self._parts):  # added in double precision, too
            load(self.to_own({name: np.array(array, float) for name, array in weights.items()}), *arguments)

    def weights(self, weights: Any) -> dict[str, np.ndarray]:
        return self.to_workload(weights(), self._kept)

    def gradients(self, gradients: Any, batch: Any) -> dict[str, np.ndarray]:
        trained = [name for name, weight in self._weights.items() if weight.trained]
        found = self.to_workload(gradients(batch), {})
        return {name: found[name] for name in trained}

    def update(self, update: Any, gradients: Sequence[Arrays], steps: int) -> None:
        none = {name: np.zeros(weight.shape, np.float32) for name, weight in self._weights.items()}
        asked = {one["own"] for one in self._parts if set(one["of"]) & set(gradients[0])}
        own = [self.to_own({**none, **one}) for one in gradients]
        update([{name: array for name, array in one.items() if name in asked} for one in own], steps)

    def layers(self, layers: Any, batch: Any) -> list[tuple[str, np.ndarray]]:
        found = []
        for name, array in layers(batch):
            put, of, layer = name.rpartition("put of ")
            found.append((f"{put}{of}{self._layers.get(layer, layer)}", array))
        return found

    def to_own(self, weights: Arrays) -> dict[str, np.ndarray]:
        return {one["own"]: _to_own(one, weights) for one in self._parts}

    def to_workload(self, own: Arrays, kept: Arrays) -> dict[str, np.ndarray]:
        """The arrays by the workload's names; of a sum, all but the first are as ``kept`` (where not, left out)."""
        found = {}  # type: dict[str, np.ndarray]
        for one in self._parts:
            if one["own"] not in own:
                continue
            given = _from_own(one, own[one["own"]], [self._weights[name].shape for name in one["of"]])
            if one.get("how") == "sum":
                rest = {name: kept[name] for name in one["of"][1:] if name in kept}
                found.update({one["of"][0]: given - sum(rest.values()), **rest})
            elif one.get("how") == "concat":
                rows = np.cumsum([self._weights[name].shape[0] for name in one["of"]])[:-1]
                found.update(zip(one["of"], np.split(given, rows)))
            elif "rows" in one:
                name, (first, last) = one["of"][0], one["rows"]
                if name not in found:
                    found[name] = np.empty(self._weights[name].shape, given.dtype)
                found[name][first:last] = given
            else:
                found[one["of"][0]] = given
        return {name: np.ascontiguousarray(found[name]) for name in self._weights if name in found}


def _to_own(part: Part, weights: Arrays) -> np.ndarray:
    every = [np.asarray(weights[name]) for name in part["of"]]
    array = sum(every[1:], every[0]) if part.get("how") == "sum" else np.concatenate(every) if every[1:] else every[0]
    if "rows" in part:
        array = array[slice(*part["rows"])]
    array = array.reshape(part.get("shape", array.shape))
    array = _in_order(array, part.get("order", ()))
    array = np.flip(array.transpose(part.get("axes", range(array.ndim))), part.get("flip", ()))
    return np.ascontiguousarray(array.reshape(part["own_shape"]))


def _from_own(part: Part, array: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """The array as the workload has it, before several are taken apart."""
    source = list(shapes[0])
    if "rows" in part:
        source[0] = part["rows"][1] - part["rows"][0]
    if part.get("how") == "concat":
        source[0] = sum(shape[0] for shape in shapes)
    shape = tuple(part.get("shape", source))
    axes = list(part.get("axes", range(len(shape))))
    array = np.flip(array.reshape([shape[axis] for axis in axes]), part.get("flip", ()))
    array = array.transpose(np.argsort(axes))
    return _in_order(array, np.argsort(part.get("order", ()))).reshape(source)


def _in_order(array: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """Equal blocks of rows in another order."""
    if not len(order):
        return array
    blocks = np.split(array, len(order))
    return np.concatenate([blocks[place] for place in order])


class _Found(Exception):
    """The model's weights are known: nothing else is to be built of it."""


def _describe(
    session: Session, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None
) -> None:
    """Write a description of the model, as JSON, to the file that ``values`` name, and build it: its own weights by
    the session's names (shape, is it trained?), its probabilities of dropout, the shape of its outputs.
    """
    file, shapes = values["describe"], {}  # type: Any, dict[str, tuple[int, ...]]
    its = sys.modules[type(session).__module__]
    usual = vars(its)["check_weights"], vars(its)["check_trained"]

    def see(where: str, expected: Any, given: Mapping[str, Sequence[int]]) -> None:
        shapes.update({name: tuple(map(int, shape)) for name, shape in given.items()})
        raise _Found

    def see_trained(where: str, declared: Any, trained: Any) -> None:
        raise _Found({name for name in shapes if name in trained})

    def build(own: dict[str, Weight]) -> None:
        type(session).build(session, replace(workload, weights=lambda _: own), module, values, learning_rate)

    try:
        vars(its).update(check_weights=see)
        try:
            build({})
        except _Found:
            vars(its).update(check_weights=usual[0], check_trained=see_trained)
        try:
            build({name: Weight(shape, "zeros") for name, shape in shapes.items()})
        except _Found as found:
            trained = found.args[0]
    finally:
        vars(its).update(zip(("check_weights", "check_trained"), usual))
    build({name: Weight(shape, "zeros", trained=name in trained) for name, shape in shapes.items()})
    rng = np.random.RandomState(0)
    session.load({name: np.abs(rng.standard_normal(shape)).astype("f") / 8 for name, shape in shapes.items()})
    with np.load(values["samples"]) as samples:
        arrays = {field: samples[f"train_{field}"] for field in workload.fields}
    if "data" in values:
        made, wanted = values["data"]
        arrays = {name: np.asarray(array) for name, array in module.own.data(wanted, 0).items()}
        np.savez(made, **arrays)
    kinds = {"f": np.float32, "i": np.int32}
    batch = session.put(tuple(arrays[name][:4].astype(kinds[arrays[name].dtype.kind]) for name in workload.fields))
    outputs = session.outputs(batch, training=False)
    found = {
        "weights": [[name, shape, name in trained] for name, shape in shapes.items()],
        "layers": list(dict.fromkeys(name.rpartition("put of ")[2] for name, _ in session.layers(batch))),
        "outputs": [one.shape for one in outputs],
        "dropouts": _dropouts(session, batch),
    }
    Path(file).write_text(json.dumps(found), encoding="utf-8")
    session.load, session.weights = lambda *arguments: None, dict  # type: ignore[method-assign,assignment]


def _dropouts(session: Session, batch: Any) -> list[float]:
    """The probability of each dropout of a step, in order."""
    found = {}  # type: dict[int, float]

    def draw(place: int, shape: tuple[int, ...], p: float) -> np.ndarray:
        found[place] = p
        return np.ones(shape, bool)

    try:
        with session.given_masks(draw):
            session.outputs(batch, training=True)
        return [found[place] for place in sorted(found)]
    except NoMasks:  # by their shares of zeros, then
        left = [(given, left) for _, given, left in session.dropouts(batch, True)]
        return [round(20 * float(np.mean(left[given != 0] == 0))) / 20 for given, left in left]
