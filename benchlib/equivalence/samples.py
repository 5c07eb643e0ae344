"""The gate's inputs: few samples that show the data's cases, and weights, noisy where they begin as 0 or 1."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.equivalence import compare
from benchlib.runner.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.worker import files
from benchlib.worker.service import DISTINCT_BATCHES
from benchlib.workloads import Samples, Workload

BATCHES = DISTINCT_BATCHES  # that a worker holds

LABELS, KINDS = 32, 4
"""The most values of a field that are all to be met. ``LABELS``: of labels, and of fields with one number for each
sample; beyond it the met ones are counted. ``KINDS``: of fields with several for each sample, such as a mask.
"""

NO_LABEL = -1  # stands where there is none, and counts for none
TO_MEET = "to_meet"  # the array that says which values the samples are to have, as JSON
SPREAD = 0.05  # standard deviation of the noise on an array that begins as the same number everywhere


def prepare(condition: Condition, inputs: Path) -> Job:
    """The job of a gated condition's trials, under ``inputs``."""
    job = prepare_job(compare.neutralise(condition), INITIAL_SEED, inputs)
    job = replace(job, weights=_weights(job, inputs))
    if job.orders is None:
        return job
    data = _choose_samples(job, inputs)
    count = len(files.arrays(data)["train_labels"])
    orders = Path(inputs) / f"gate-orders-{count}samples"
    files.write(orders, {"orders": np.arange(count, dtype=np.int32)[None], "epochs": np.array([1], dtype=np.int32)}, {})
    return replace(job, data=data, orders=orders)


def prepare_large(condition: Condition, inputs: Path, batch_size: int) -> Job:
    """The job of a gated condition's trial with so many samples, all different and in the data's own order; among them,
    in turn, those made for the cases that none of the data shows (``Exercise.made``).
    """
    job = prepare_job(compare.with_dropout(condition), INITIAL_SEED, inputs)
    if job.orders is not None:
        batch_size = min(batch_size, len(files.arrays(job.data)["train_labels"]))
    job = prepare_job(job.condition.but(batch_size=batch_size), INITIAL_SEED, inputs)
    return replace(job, weights=_weights(job, inputs), data=job.data if job.orders is None else _mix(job, inputs))


def _mix(job: Job, inputs: Path) -> Path:
    arrays, workload = files.arrays(job.data), workloads.load(job.condition.workload)
    every = _samples(arrays, workload)
    rows = np.arange(len(_first_field(every)))
    all_made = _add_made_samples(every, workload, len(rows))
    if len(_first_field(all_made)) == len(rows):
        return job.data
    kinds = len(_first_field(all_made)) // len(rows)
    rows[files.arrays(job.orders)["orders"][0]] += len(rows) * (np.arange(len(rows)) % kinds)
    mixed = {f"train_{field}": array[rows] for field, array in all_made.items()}
    folder = Path(inputs) / "-".join([job.data.name, *(compare.digest(one)[:6] for one in mixed.values())])
    files.write(folder, {**arrays, **mixed}, files.describe(job.data))
    return folder


def exercised_values(job: Job, batches: int) -> dict[str, bool]:
    """The cases of a workload's data, and whether the first so many batches of a prepared ``job`` have them. Empty for
    an operator, whose inputs are drawn. A field with too many values to list has one entry with their number in the
    batches, such as "labels: 61 of 3,995". It is met by all of them only.
    """
    if job.orders is None:
        return {}
    workload, condition = workloads.load(job.condition.workload), job.condition
    arrays = files.arrays(job.data)
    samples, to_meet = _samples(arrays, workload), json.loads(files.lines(arrays[TO_MEET])[0])
    first = {name: array[: batches * condition.batch_size] for name, array in samples.items()}
    declared = {name: one.shown(first) for name, one in workload.exercises.items()}
    seen = {field: _count(np.unique(first[field])) for field in to_meet["many"]}
    some = {f"{field}: {seen[field]:,} of {count:,}": seen[field] == count for field, count in to_meet["many"].items()}
    met = {**_values(first, to_meet["values"]), **some, **declared}
    return {name: bool(np.any(shown)) for name, shown in met.items()}


def batches(job: Job) -> int:
    """The number of different batches of a prepared ``job``, at most ``BATCHES``."""
    arrays = files.arrays(job.data)
    if job.orders is None:
        return len(arrays["inputs"])
    return min(BATCHES, len(arrays["train_labels"]) // job.condition.batch_size)


def _choose_samples(job: Job, inputs: Path) -> Path:
    """A folder with samples for ``DISTINCT_BATCHES`` batches, in the order in which they are to be taken."""
    condition, workload = job.condition, workloads.load(job.condition.workload)
    texts = [Path(one).read_text(encoding="utf-8") for one in (__file__, inspect.getfile(type(workload)))]
    texts.append(workloads.file(workload.name, "workload").read_text(encoding="utf-8"))
    depends = [files.digest(job.data), files.digest(job.orders), texts, np.__version__, condition.batch_size]
    name = hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:12]
    folder = Path(inputs) / f"gate-{workload.name}-{condition.data}-batch{condition.batch_size}-{name}"
    if not folder.exists():
        arrays = files.arrays(job.data)
        order = files.arrays(job.orders)["orders"][0]
        drawn = {field: array[order] for field, array in _samples(arrays, workload).items()}
        every = _add_made_samples(drawn, workload, condition.batch_size)
        labels = workload.fields[-workload.targets :]
        counted = {field for field, array in every.items() if field in labels or _is_one(array)}
        found = {field: np.unique(array) if field in counted else _unique(array) for field, array in every.items()}
        most = {field: LABELS if field in counted else KINDS for field in found}
        values = {field: some.tolist() for field, some in found.items() if len(some) <= most[field]}
        many = {field: _count(some) for field, some in found.items() if field in counted - values.keys()}
        rows = _rows(every, workload, values, many, DISTINCT_BATCHES * condition.batch_size, condition.batch_size)
        chosen = {f"train_{field}": array for field, array in rows.items()}
        kept = {"repeat": arrays["repeat"]} if "repeat" in arrays else {}
        to_meet = files.text([json.dumps({"values": values, "many": many})])  # an array, which has a hash
        files.write(folder, {**chosen, **kept, TO_MEET: to_meet}, files.describe(job.data))
    files.check(folder)
    return folder


def _is_one(array: np.ndarray) -> bool:
    """Has a field one number for each sample, or for each place of the only sample?"""
    return array.size == len(array) or len(array) == 1


def _count(values: np.ndarray) -> int:
    return int((values != NO_LABEL).sum())


def _unique(array: np.ndarray) -> np.ndarray:
    """The values of a field with several numbers for each sample; of a few samples if these are too many already."""
    few = np.unique(array[:64])
    return few if len(few) > KINDS else np.unique(array)


def _samples(arrays: Mapping[str, np.ndarray], workload: Workload) -> dict[str, np.ndarray]:
    return {field: arrays[f"train_{field}"] for field in workload.fields}


def _add_made_samples(every: dict[str, np.ndarray], workload: Workload, batch_size: int) -> dict[str, np.ndarray]:
    """The samples, and behind them those that had to be made because none shows a case that the workload declares."""
    for one in workload.exercises.values():
        if one.made is not None and not one.shown(every).any():
            made = one.made({field: array[:batch_size] for field, array in every.items()})
            every = {field: np.concatenate([array, made[field]]) for field, array in every.items()}
    return every


def _rows(
    every: dict[str, np.ndarray],
    workload: Workload,
    values: Mapping[str, list[int]],
    many: Iterable[str],
    most: int,
    batch_size: int,
) -> dict[str, np.ndarray]:
    """Samples for ``most`` places. Each shows the most cases that no sample before it has shown. Ties go to cases that
    fewer samples have than there are places, or that its batch lacks. Then most new values of ``many`` fields decide.
    """
    shown = [*(one.shown(every) for one in workload.exercises.values()), *_values(every, values).values()]
    table = np.array(shown, dtype=float).reshape(-1, len(_first_field(every))).T
    left = np.ones(len(table), dtype=bool)
    have = table.sum(axis=0)  # of the samples, how many
    rare = (have < most) / (1 + have)
    never, not_here = 1 + rare / (1 + table.shape[1]), np.ones(table.shape[1])
    unmet = [_Unmet(every[field]) for field in many]
    chosen: list[int] = []
    while len(chosen) < min(most, len(table)):
        if len(chosen) % batch_size == 0:
            not_here[:] = 1
        worth = table @ (never * (1 + table.shape[1]) + not_here)
        for one in unmet:
            worth += one.shares() / (1 + len(unmet))  # all together are less than anything of the table
        best = int(np.argmax(np.where(left, worth, -1.0)))
        chosen.append(best)
        left[best] = False
        never[table[best] > 0] = 0
        not_here[table[best] > 0] = 0
        for one in unmet:
            one.meet(best)
    return {field: array[chosen] for field, array in every.items()}


class _Unmet:
    """The values of a field that no chosen sample has."""

    def __init__(self, array: np.ndarray) -> None:
        values, places = np.unique(array, return_inverse=True)
        self._places = np.sort(places.reshape(len(array), -1), axis=1)  # of each sample's values among all
        self._repeated = np.diff(self._places, axis=1, prepend=-1) == 0
        self._unmet = values != NO_LABEL

    def shares(self) -> np.ndarray:
        """For each sample the number of them that it has, as a share of the most that it could have."""
        return (self._unmet[self._places] & ~self._repeated).mean(axis=1)

    def meet(self, sample: int) -> None:
        self._unmet[self._places[sample]] = False


def _values(samples: Samples, values: Mapping[str, list[int]]) -> dict[str, np.ndarray]:
    """For each value of the fields with few values: the samples that have it."""
    return {
        f"{field} {value}": (samples[field] == value).reshape(len(samples[field]), -1).any(axis=1)
        for field, some in values.items()
        for value in some
    }


def _first_field(samples: Samples) -> np.ndarray:
    return next(iter(samples.values()))


def _weights(job: Job, inputs: Path) -> Path:
    """The initial weights of ``job``, but no array that is the same number everywhere. A bias that is not 0 shows where
    it is added, whether it decays, and how its gradient is treated.
    """
    folder = Path(inputs) / f"{job.weights.name}-uneven"
    if not folder.exists():
        random = np.random.default_rng(1)
        arrays = {}
        for name, array in files.arrays(job.weights).items():
            even = array.size > 0 and (array == array.flat[0]).all()
            noise = random.standard_normal(array.shape, dtype=np.float32) if even else 0.0
            arrays[name] = array + np.float32(SPREAD) * np.clip(noise, -4, 4) if even else array
        files.write(folder, arrays, files.describe(job.weights))
    files.check(folder)
    return folder
