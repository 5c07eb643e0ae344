"""The metrics: computed in the parent from the predictions that workers return, one code for all frameworks. A workload
has one of those here, or brings its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchlib.data import translations
from benchlib.errors import require_package
from benchlib.worker import files
from benchlib.workloads import Workload


def require(workload: Workload) -> None:
    """Raise a BenchlibError if the package that computes the metric of ``workload`` is not installed."""
    if workload.metric == "bleu":
        require_package("sacrebleu", "data", "metric 'bleu'")


def limits(workload: Workload) -> tuple[float, float]:
    """The least and the greatest value of the metric of ``workload``: no run can reach a threshold outside."""
    own = workload.own_metric
    return (own.least, own.greatest) if own else (0.0, {"accuracy": 1.0, "bleu": 100.0}[workload.metric])


def measure(workload: Workload, predictions: np.ndarray, data: Mapping[str, np.ndarray]) -> float:
    """The value of the metric of ``workload`` for the predictions of the test samples of prepared ``data``."""
    if workload.own_metric:
        return float(workload.own_metric.measure(predictions, data["test_labels"]))
    if workload.metric == "bleu":
        words, references = (files.lines(data[name]) for name in ("target_vocabulary", "test_references"))
        return bleu([translations.sentence(row, words) for row in predictions], references)
    return accuracy(predictions, data["test_labels"])


def wrong(workload: Workload, predictions: np.ndarray, data: Mapping[str, np.ndarray]) -> str | None:
    """Why ``predictions`` cannot be predictions of the test samples of prepared ``data``; None: they can."""
    if predictions.dtype.kind not in "iu":
        return f"predictions of type {predictions.dtype}, which are no classes or words"
    if workload.own_metric:
        samples = len(data["test_labels"])
        return None if len(predictions) == samples else f"predictions of {len(predictions)} samples for {samples}"
    if workload.metric == "bleu":
        words, references = (len(files.lines(data[name])) for name in ("target_vocabulary", "test_references"))
        if predictions.ndim != 2 or len(predictions) != references:
            return f"predictions of shape {predictions.shape} for {references} sentences"
        if predictions.min() < 0 or predictions.max() >= translations.FIRST + words:
            return f"predicted words from {predictions.min()} to {predictions.max()}, of {translations.FIRST + words}"
    elif predictions.shape != data["test_labels"].shape:
        return f"predictions of shape {predictions.shape} for {data['test_labels'].shape} labels"
    return None


def accuracy(predictions: np.ndarray, labels: np.ndarray) -> float:
    """The share of predicted classes that equal the labels, of the same shape: between 0 and 1. A label of -1 is none:
    the prediction there does not count.
    """
    if predictions.shape != labels.shape:
        raise ValueError(f"{predictions.shape} predictions for {labels.shape} labels")
    asked = labels >= 0
    return float(np.mean(predictions[asked] == labels[asked]))


def bleu(sentences: list[str], references: list[str]) -> float:
    """BLEU of the corpus (Papineni et al. 2002), 0 to 100, by sacrebleu (Post 2018): tokens 13a, lower case."""
    from sacrebleu.metrics import BLEU

    return BLEU(lowercase=True).corpus_score(sentences, [references]).score


def name(workload: Workload) -> str:
    """The usual name of the metric of ``workload``."""
    return workload.metric_name or {"accuracy": "test accuracy"}.get(metric := workload.metric or "", metric)


def label(workload: Workload) -> str:
    """The metric of ``workload`` with its unit, for an axis."""
    return f"{name(workload)} (%)" if workload.metric == "accuracy" else name(workload)


def readable_unit(metric: str | None) -> tuple[float, str]:
    """The factor that makes a value of ``metric`` readable, and the unit then."""
    return (100.0, "%") if metric == "accuracy" else (1.0, metric or "1")
