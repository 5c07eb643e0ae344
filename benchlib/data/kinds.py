"""The kinds of data set: how samples of each become the arrays that workers map."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from benchlib import workloads
from benchlib.data import Chosen, Kind, Prepared, corpus, graphs, images, sequences, translations
from benchlib.worker import files


def _images_name(condition: Chosen) -> str:
    return f"-{condition.hyperparameters['image_size']}px"


def _images(module: ModuleType, condition: Chosen) -> Prepared:
    loaded, size = module.load(), condition.hyperparameters["image_size"]
    (train, repeat), (test, _) = (images.fitted(one, size) for one in (loaded.train_images, loaded.test_images))
    train, test, means, deviations = images.standardised(train, test)
    chosen = _balanced(loaded.train_labels, condition.train_samples)
    arrays = {
        "train_inputs": train[chosen],
        "train_labels": loaded.train_labels[chosen],
        "test_inputs": test,
        "test_labels": loaded.test_labels,
        "repeat": np.array([repeat], dtype=np.int32),
    }
    return arrays, {
        "note": loaded.note,
        "source": loaded.source,
        "image_size": size,
        "train_samples": len(arrays["train_labels"]),
        "test_samples": len(test),
        "mean": means,
        "standard_deviation": deviations,
    }


def _graph(module: ModuleType, condition: Chosen) -> Prepared:
    graph = module.load()
    return graphs.arrays(graph), {
        "note": graph.note,
        "source": graph.source,
        "train_nodes": len(graph.train),
        "test_nodes": len(graph.test),
    }


def _sequences_name(condition: Chosen) -> str:
    side = "before" if workloads.load(condition.workload).pads_before else "after"
    return f"-{condition.hyperparameters['words']}words-{condition.hyperparameters['length']}tokens-{side}"


def _sequences(module: ModuleType, condition: Chosen) -> Prepared:
    length, before = condition.hyperparameters["length"], workloads.load(condition.workload).pads_before
    loaded = module.load(condition.hyperparameters["words"])
    chosen = np.arange(len(loaded.train_labels))[_balanced(loaded.train_labels, condition.train_samples)]
    tokens, lengths = sequences.padded([loaded.train[i] for i in chosen], length, before)
    test_tokens, test_lengths = sequences.padded(loaded.test, length, before)
    arrays = {
        "train_tokens": tokens,
        "train_lengths": lengths,
        "train_labels": loaded.train_labels[chosen],
        "test_tokens": test_tokens,
        "test_lengths": test_lengths,
        "test_labels": loaded.test_labels,
        "vocabulary": files.text(loaded.vocabulary),
    }
    return arrays, {
        "note": loaded.note,
        "source": loaded.source,
        "train_samples": len(lengths),
        "test_samples": len(test_lengths),
    }


def _translations_name(condition: Chosen) -> str:
    values = condition.hyperparameters
    return f"-{values['words']}and{values['target_words']}words-{values['length']}tokens"


def _translations(module: ModuleType, condition: Chosen) -> Prepared:
    values, pairs = condition.hyperparameters, module.load()
    arrays = translations.arrays(
        pairs, values["words"], values["target_words"], values["length"], condition.train_samples
    )
    return arrays, {
        "note": pairs.note,
        "source": pairs.source,
        "train_samples": len(arrays["train_lengths"]),
        "test_samples": len(arrays["test_lengths"]),
    }


def _corpus_name(condition: Chosen) -> str:
    values = condition.hyperparameters
    return f"-{values['words']}words-{values['length']}tokens-{values['masked']}masked"


def _corpus(module: ModuleType, condition: Chosen) -> Prepared:
    values, loaded = condition.hyperparameters, module.load()
    arrays = corpus.arrays(loaded, values["words"], values["length"], values["masked"], condition.train_samples)
    return arrays, {
        "note": loaded.note,
        "source": loaded.source,
        "train_samples": len(arrays["train_tokens"]),
        "test_samples": len(arrays["test_tokens"]),
    }


def _balanced(labels: np.ndarray, samples: int | None) -> np.ndarray | slice:
    return slice(None) if samples is None else images.balanced_order(labels, seed=0)[:samples]


IMAGES = Kind(_images, _images_name)
"""``load()`` gives :class:`images.Images`; the workload has a hyperparameter ``image_size``. ``train_inputs`` and
``test_inputs`` float32 (n, 3, side, side), standardised per channel by the mean and standard deviation of the full
training split, ``train_labels`` and ``test_labels`` int32 (n,), and ``repeat``, how often each pixel is to be repeated
for image_size (see ``images.fitted``). ``train_samples=n`` takes the first n of a class-balanced permutation that is
the same for all seeds. The seed makes no difference: the order of an epoch is for ``Batches``.
"""

GRAPHS = Kind(_graph)
"""``load()`` gives :class:`graphs.Graph`, which becomes one sample: see ``graphs.arrays``."""

SEQUENCES = Kind(_sequences, _sequences_name)
"""``load(words)`` gives :class:`sequences.Sequences`; hyperparameters ``words`` and ``length``. ``tokens`` (n, length)
and ``lengths`` (n,) int32, see ``sequences.padded``, and the ``vocabulary``.
"""

TRANSLATIONS = Kind(_translations, _translations_name)
"""``load()`` gives :class:`translations.Pairs`; hyperparameters ``words``, ``target_words`` and ``length``: see
``translations.arrays``. The first ``train_samples`` are taken.
"""

CORPORA = Kind(_corpus, _corpus_name)
"""``load()`` gives :class:`corpus.Corpus`; hyperparameters ``words``, ``length`` and ``masked``: see
``corpus.arrays``. The first ``train_samples`` are taken.
"""
