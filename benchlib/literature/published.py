"""The works' own figures as tables."""

from __future__ import annotations

import pandas as pd

from benchlib import tables
from benchlib.literature.works import sources, works
from benchlib.tables import Listed


def _thresholds() -> pd.DataFrame:
    short = {name: one.short for name, one in sources().items()}
    frame = pd.DataFrame(works()["thresholds"]).replace({"source": short})
    return frame.rename(columns={"metric": "published metric"})


def _rosetta() -> pd.DataFrame:
    return pd.DataFrame(
        {"task": task.replace("_", " "), "framework": name, "K80 (s)": k80, "P100 (s)": p100}
        for task, times in works()["rosetta"].items()
        for name, (k80, p100) in times.items()
    )


def _sources() -> pd.DataFrame:
    rows = [
        one.model_dump() | {name: _pairs(getattr(one, name)) for name in ("versions", "used")}
        for one in sources().values()
    ]
    return pd.DataFrame(rows).rename(columns={"short": "source"})


def _inference() -> pd.DataFrame:
    return _spaced("inference").rename(columns={"images per second": "images per second, published"})


def _spaced(name: str) -> pd.DataFrame:
    return pd.DataFrame(works()[name]).drop(columns="source").rename(columns=lambda column: column.replace("_", " "))


def _training() -> pd.DataFrame:
    rows, units = works()["training"], ("seconds", "minutes", "hours")
    times = [next(f"{row[unit]:g} {unit}" for unit in units if unit in row) for row in rows]
    frame = pd.DataFrame(rows).drop(columns=["source", *units]).rename(columns={"loss": "published loss"})
    frame.insert(5, "time", times)
    return frame


def _by_batch() -> pd.DataFrame:
    by_framework = dict(works()["batch_size"])
    batches = by_framework.pop("batches")
    frames = [pd.DataFrame({"framework": name, "batch size": batches, **of}) for name, of in by_framework.items()]
    return pd.concat(frames, ignore_index=True).rename(columns=lambda column: column.replace("_", " "))


def _accuracy() -> pd.DataFrame:
    rates, batches = works()["learning_rate"], works()["batch_accuracy"]
    by_rate = {
        "hyperparameter": "learning rate",
        "value": rates["rates"],
        "published accuracy": rates["accuracy_after_10_epochs"],
        "published seconds to 60 %": rates["seconds_to_60_percent"],
        "published epochs to 60 %": rates["epochs_to_60_percent"],
    }
    by_batch = {
        "hyperparameter": "batch size",
        "value": batches["batches"],
        "published accuracy": batches["accuracy"],
        "doubt": batches["doubt"],
    }
    return pd.concat([pd.DataFrame(by_rate), pd.DataFrame(by_batch)], ignore_index=True)


def _pairs(values: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or tables.MISSING


TABLES = {
    "thresholds": Listed("Published: what a run had to reach, on the validation set.", lambda _: _thresholds()),
    "training": Listed(
        "Published: training, its time and what came out (Xia and Zhou 2022, tables 2 and 3; batch sizes of table 1).",
        lambda _: _training(),
    ),
    "inference": Listed(
        "Published: images per second with ResNet-50 (Xia and Zhou 2022, table 4).", lambda _: _inference()
    ),
    "cpu_gpu": Listed("Published: a GPU against a CPU, batch 128 (Yin 2020, table 5).", lambda _: _spaced("cpu_gpu")),
    "by_batch": Listed(
        "Published: indicators by batch size, on the GPU (Yin 2020, tables 6 to 8). The thesis's steps per second grow "
        "with the batch for all but PyTorch, as samples per second would.",
        lambda _: _by_batch(),
    ),
    "accuracy": Listed(
        "Published: accuracy after 10 epochs, and what 60 % took, in TensorFlow (Yin 2020, tables 9 and 10).",
        lambda _: _accuracy(),
    ),
    "rosetta": Listed("Published: seconds on half a K80 and on a P100 (Karmanov 2017).", lambda _: _rosetta()),
    "sources": Listed("The works, and the data of the workloads that they trained.", lambda _: _sources()),
}
"""Tables of the notebook ``claims``, whatever was measured."""
