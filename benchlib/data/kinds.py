"""The kinds of data set: how samples of each become the arrays that workers map."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchlib import workloads
from benchlib.data import Chosen, Kind, Prepared, corpus, graphs, images, sequences, translations
from benchlib.errors import BenchlibError
from benchlib.worker import files


def _images(module: ModuleType, condition: Chosen) -> Prepared:
    loaded, size = module.load(), condition.hyperparameters["image_size"]
    (train, repeat), (test, _) = (images.fit_to_size(one, size) for one in (loaded.train_images, loaded.test_images))
    train, test, means, deviations = images.standardise(train, test)
    chosen = _select_balanced(loaded.train_labels, condition.train_samples)
    arrays = {"train_inputs": train[chosen], "train_labels": loaded.train_labels[chosen]}
    arrays |= {"test_inputs": test, "test_labels": loaded.test_labels, "repeat": np.array([repeat], dtype=np.int32)}
    return arrays, {**_describe(loaded), "mean": means, "standard_deviation": deviations}


def _graph(module: ModuleType, condition: Chosen) -> Prepared:
    graph = module.load()
    return graphs.arrays(graph), _describe(graph)


def _sequences(module: ModuleType, condition: Chosen) -> Prepared:
    values, before = condition.hyperparameters, workloads.load(condition.workload).pads_before
    loaded = module.load(values["words"])
    chosen = np.arange(len(loaded.train_labels))[_select_balanced(loaded.train_labels, condition.train_samples)]
    train, labels = [loaded.train[i] for i in chosen], loaded.train_labels[chosen]
    arrays = {"vocabulary": files.text(loaded.vocabulary), "train_labels": labels, "test_labels": loaded.test_labels}
    for split, texts in (("train", train), ("test", loaded.test)):
        tokens, lengths = sequences.pad(texts, values["length"], before)
        arrays |= {f"{split}_tokens": tokens, f"{split}_lengths": lengths}
    return arrays, _describe(loaded)


def _translations(module: ModuleType, condition: Chosen) -> Prepared:
    pairs, sizes = module.load(), (condition.hyperparameters[name] for name in ("words", "target_words", "length"))
    return translations.arrays(pairs, *sizes, samples=condition.train_samples), _describe(pairs)


def _corpus(module: ModuleType, condition: Chosen) -> Prepared:
    loaded, sizes = module.load(), (condition.hyperparameters[name] for name in ("words", "length", "masked"))
    return corpus.arrays(loaded, *sizes, samples=condition.train_samples), _describe(loaded)


def _describe(loaded: Any) -> dict[str, Any]:
    return {"note": loaded.note, "source": loaded.source}


def _select_balanced(labels: np.ndarray, samples: int | None) -> np.ndarray | slice:
    return slice(None) if samples is None else images.balanced_order(labels, seed=0)[:samples]


def _namer(form: str) -> Callable[[Chosen], str]:
    """A function that fills a condition's hyperparameters, and the ``{side}`` of padding, into ``form``."""

    def name(condition: Chosen) -> str:
        side = "before" if workloads.load(condition.workload).pads_before else "after"
        try:
            return form.format(**condition.hyperparameters, side=side)
        except KeyError as missing:
            where = f"workload {condition.workload}: hyperparameters"
            raise BenchlibError(f"{where}: none is called {missing}, which its data {condition.data} wants") from None

    return name


IMAGES = Kind(_images, _namer("-{image_size}px"))
"""``load()`` gives :class:`images.Images`; the workload has a hyperparameter ``image_size``. Images are standardised as
the full training split; ``repeat`` says how often each pixel is to be repeated (see ``images.fit_to_size``).
``train_samples=n`` takes the first n of a class-balanced permutation that is the same for all seeds.
"""

GRAPHS = Kind(_graph)
"""``load()`` gives :class:`graphs.Graph`, which becomes one sample: see ``graphs.arrays``."""

SEQUENCES = Kind(_sequences, _namer("-{words}words-{length}tokens-{side}"))
"""``load(words)`` gives :class:`sequences.Sequences`; hyperparameters ``words`` and ``length``. ``tokens`` (n, length)
and ``lengths`` (n,) int32, see ``sequences.pad``, and the ``vocabulary``.
"""

TRANSLATIONS = Kind(_translations, _namer("-{words}and{target_words}words-{length}tokens"))
"""``load()`` gives :class:`translations.Pairs`; see ``translations.arrays``."""

CORPORA = Kind(_corpus, _namer("-{words}words-{length}tokens-{masked}masked"))
"""``load()`` gives :class:`corpus.Corpus`; see ``corpus.arrays``."""
