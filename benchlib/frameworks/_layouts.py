"""The names and layouts that frameworks have for the same weights: candidates, of which a match takes those that give
the same numbers.
"""

from __future__ import annotations

import itertools
from typing import Any, Iterable, Iterator, Mapping, Sequence

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
RECURRENT = ("_ih", "_hh", "recurrent", "cell", "lstm", "gru", "rnn")  # in names of weights that have gates


def plain(name: str) -> str:
    head, dot, last = name.rpartition(".")
    return f"{head}{dot}{SYNONYMS.get(last, last)}"


def layouts(
    part: Mapping[str, Any], shapes: Sequence[tuple[int, ...]], channels: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """The layouts that an array may have in a model, the likeliest first, each once, as they are added to its part
    (``_matched.Part``). It is made of weights of these ``shapes``; ``channels`` are those of the model's images.
    """
    source = list(shapes[0])
    if "rows" in part:
        source[0] = part["rows"][1] - part["rows"][0]
    if part.get("how") == "concat":
        source[0] = sum(shape[0] for shape in shapes)
    own, seen = tuple(part["own_shape"]), set()
    is_recurrent = any(word in f"{part['own']} {part['of'][0]}".lower() for word in RECURRENT)
    gates = _gates(tuple(source), own) if is_recurrent else ()
    for how in (*_changes(tuple(source), own, channels), *gates):
        key = repr(sorted(how.items()))
        if key not in seen:
            seen.add(key)
            yield how


def _changes(source: tuple[int, ...], own: tuple[int, ...], channels: Iterable[int]) -> Iterator[dict[str, Any]]:
    same, axes = source == own, range(len(source))
    if same:
        yield {}
    orders = KERNELS if len(source) == 4 else itertools.permutations(axes) if len(source) < 4 else ()
    fitting = [list(one) for one in orders if tuple(source[axis] for axis in one) == own and list(one) != list(axes)]
    yield from ({"axes": one} for one in fitting)
    if not same and not fitting:
        if len(source) == len(own) == 2 and source[0] % own[0] == 0:
            yield {"shape": [source[0] // own[0], own[0], source[1]], "axes": [1, 0, 2]}  # heads, as flax has them
        yield {}  # the same numbers in another shape
    if len(source) == 4:  # a transposed convolution's kernel, which some turn round
        for one in ([*axes], *fitting):
            if tuple(source[axis] for axis in one) == own:
                sides = [place for place, axis in enumerate(one) if axis > 1]
                yield {"axes": one, "flip": sides}
    yield from _flattened(source, own, channels)
    yield from _heads(source)


def _gates(source: tuple[int, ...], own: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """A recurrent layer's gates in another order."""
    turned = {"axes": [1, 0]} if len(source) == 2 and source != own else {}
    for number, orders in GATES.items():
        yield from ({"order": list(order), **turned} for order in orders if source[0] % number == 0)


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


def _heads(source: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Matrices of an attention with several heads, which some keep as an axis of its own."""
    if len(source) != 2:
        return
    for heads in (2, 3, 4, 6, 8, 12, 16):
        for side in (0, 1):
            if heads > 1 and source[side] % heads == 0 and heads < source[side]:
                split = [heads, source[side] // heads]
                shape = [*split, source[1]] if side == 0 else [source[0], *split]
                for axes in ((1, 0, 2), (2, 0, 1), (0, 2, 1), (1, 2, 0)):
                    yield {"shape": shape, "axes": list(axes)}
