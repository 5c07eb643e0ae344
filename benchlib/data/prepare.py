"""Turns a condition's data into files that workers map: made once, and named after all that they depend on."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchlib import data, workloads
from benchlib.data import (
    Chosen,
    cifar10,
    cora,
    corpus,
    digits,
    digits_graph,
    digits_sequence,
    graphs,
    images,
    imdb,
    multi30k,
    number_names,
    pydoc,
    sequences,
    text,
    translations,
)
from benchlib.worker import files
from benchlib.workloads import Workload

OPERATOR_BATCHES = 2
"""So many batches take turns as an operator's input, so that no step gets the very arrays of the step before."""

_IMAGES = {"cifar10": cifar10, "digits": digits}
_GRAPHS = {"cora": cora, "digits_graph": digits_graph}
_SEQUENCES = {"digits_sequence": digits_sequence, "imdb": imdb}
_TRANSLATIONS = {"multi30k": multi30k, "number_names": number_names}
_CORPORA = {"pydoc": pydoc, "text": text}
_LOADERS = {**_IMAGES, **_GRAPHS, **_SEQUENCES, **_TRANSLATIONS, **_CORPORA}

Made = tuple[dict[str, np.ndarray], dict[str, Any]]
"""Arrays by name, and what is said of them."""


def require(condition: Chosen) -> None:
    """Raise a BenchlibError if the condition's data is plainly not there. Reads and downloads nothing."""
    loader = _LOADERS.get(condition.data)
    if hasattr(loader, "require"):
        loader.require()


def identity(name: str) -> str:
    """What the data set is, wherever it lies: equal for equal samples. Empty where nothing is read."""
    return _LOADERS[name].identity() if name in _LOADERS else ""


def least_bytes(condition: Chosen) -> float:
    """What :func:`prepare` has to hold in memory at once, at least: an operator's batches, which are drawn and then
    stacked; a data set's tokens. Of images and graphs, whose size no hyperparameter sets, nothing is said.
    """
    workload, values = workloads.load(condition.workload), condition.hyperparameters
    if workload.kind == "operator":
        return 2.0 * OPERATOR_BATCHES * 4 * condition.batch_size * workload.held(values)
    if condition.data in _SEQUENCES or condition.data in _TRANSLATIONS:
        samples = condition.train_samples or data.train_size(condition.data)
        return 4.0 * samples * values["length"]
    return 0.0


def prepare(condition: Chosen, seed: int, inputs: Path) -> Path:
    """The folder under ``inputs`` with the data of ``condition``, for ``batches.Batches``; made if it is not there.

    Images: ``train_inputs`` and ``test_inputs`` float32 (n, 3, side, side), standardised per channel by the mean and
    standard deviation of the full training split, ``train_labels`` and ``test_labels`` int32 (n,), and ``repeat``, how
    often each pixel is to be repeated for image_size (see ``images.fitted``). ``train_samples=n`` takes the first n of
    a class-balanced permutation that is the same for all seeds. The seed makes no difference to images: the order of an
    epoch is for ``Batches``.
    Operators: ``inputs`` and ``gradients`` (OPERATOR_BATCHES, batch_size, ...), drawn with the seed.
    Graphs: one sample, see ``graphs.arrays``.
    Sequences: ``tokens`` (n, length) and ``lengths`` (n,) int32, see ``sequences.padded``, and the ``vocabulary``.
    Translations: see ``translations.arrays``. Corpora: see ``corpus.arrays``. The first ``train_samples`` are taken.

    Raises a BenchlibError for data that is missing or damaged: it names the file, what was expected and what to do.
    """
    workload = workloads.load(condition.workload)
    if workload.kind == "operator":
        return _prepare_operator(workload, condition, seed, Path(inputs))
    for loaders, named, make in (
        (_IMAGES, _images_name, _images),
        (_GRAPHS, lambda condition: "", _graph),
        (_SEQUENCES, _sequences_name, _sequences),
        (_TRANSLATIONS, _translations_name, _translations),
        (_CORPORA, _corpus_name, _corpus),
    ):
        if loader := loaders.get(condition.data):
            samples = "" if condition.train_samples is None else f"-first{condition.train_samples}"
            name = f"{condition.data}{named(condition)}{samples}"
            return _prepare(name, condition, Path(inputs), loader, make)
    raise AssertionError(f"no loader for {condition.data}")


def _prepare(
    name: str,
    condition: Chosen,
    inputs: Path,
    loader: ModuleType,
    make: Callable[[ModuleType, Chosen], Made],
) -> Path:
    folder = inputs / _slug(name, loader.identity())
    if not folder.exists():
        arrays, about = make(loader, condition)
        files.write(folder, arrays, {"data": condition.data, "title": data.title(condition.data), **about})
    files.check(folder)
    return folder


def _images_name(condition: Chosen) -> str:
    return f"-{condition.hyperparameters['image_size']}px"


def _images(loader: ModuleType, condition: Chosen) -> Made:
    loaded, size = loader.load(), condition.hyperparameters["image_size"]
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


def _graph(loader: ModuleType, condition: Chosen) -> Made:
    graph = loader.load()
    return graphs.arrays(graph), {
        "note": graph.note,
        "source": graph.source,
        "train_nodes": len(graph.train),
        "test_nodes": len(graph.test),
    }


def _sequences_name(condition: Chosen) -> str:
    side = "before" if workloads.load(condition.workload).pads_before else "after"
    return f"-{condition.hyperparameters['words']}words-{condition.hyperparameters['length']}tokens-{side}"


def _sequences(loader: ModuleType, condition: Chosen) -> Made:
    length, before = condition.hyperparameters["length"], workloads.load(condition.workload).pads_before
    loaded = loader.load(condition.hyperparameters["words"])
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


def _translations(loader: ModuleType, condition: Chosen) -> Made:
    values, pairs = condition.hyperparameters, loader.load()
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


def _corpus(loader: ModuleType, condition: Chosen) -> Made:
    values, loaded = condition.hyperparameters, loader.load()
    arrays = corpus.arrays(loaded, values["words"], values["length"], values["masked"], condition.train_samples)
    return arrays, {
        "note": loaded.note,
        "source": loaded.source,
        "train_samples": len(arrays["train_tokens"]),
        "test_samples": len(arrays["test_tokens"]),
    }


def _balanced(labels: np.ndarray, samples: int | None) -> np.ndarray | slice:
    return slice(None) if samples is None else images.balanced_order(labels, seed=0)[:samples]


def _prepare_operator(workload: Workload, condition: Chosen, seed: int, inputs: Path) -> Path:
    values = condition.hyperparameters
    name = f"{workload.name}-batch{condition.batch_size}-seed{seed}"
    folder = inputs / _slug(name, values, inspect.getsourcefile(workload.inputs))
    if not folder.exists():
        rng = np.random.default_rng(seed)
        batches = [workload.inputs(values, condition.batch_size, rng) for _ in range(OPERATOR_BATCHES)]
        drawn, gradients = zip(*batches, strict=True)
        arrays = {"inputs": np.stack(drawn), "gradients": np.stack(gradients)}
        about = {"data": condition.data, "title": data.title(condition.data), "note": "", "seed": seed}
        files.write(folder, arrays, about)
    files.check(folder)
    return folder


def _slug(name: str, depends: str | dict, *code: str) -> str:
    """A readable folder name, with a hash of what else the arrays depend on: also code and numpy's generators."""
    files_of_code = [*sorted(Path(__file__).parent.glob("*.py")), *map(Path, code)]
    texts = [path.read_text(encoding="utf-8") for path in files_of_code]
    hashed = hashlib.sha256(json.dumps([depends, texts, np.__version__], sort_keys=True).encode()).hexdigest()
    return f"{name}-{hashed[:12]}"
