"""The golden master: the raw measurements of one quick run, in a plain format of its own, and what follows from them.

``raw.json.gz`` has blocks, epochs and certificates as they were measured; nothing in it depends on how benchlib keeps
results. :func:`fill` writes them into a cache under today's keys. ``expected.json.gz`` has the estimates, intervals and
verdicts that follow. ``benchmarks/record_golden.py`` records both.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from benchlib.cache import Measurement, save
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import Certificate
from benchlib.lab import Lab
from benchlib.provenance import fingerprint
from benchlib.runner import epochs, roofline, rounds
from benchlib.runner.jobs import INITIAL_SEED, key, prepare_job
from benchlib.runner.roofline import Ceiling
from benchlib.runner.scheduler import Asked
from benchlib.runner.timer_check import SyncCheck
from benchlib.stats.comparison import Comparison

FOLDER = Path(__file__).parent
RAW, EXPECTED = FOLDER / "raw.json.gz", FOLDER / "expected.json.gz"
KEYS = ("group", "file", "condition")
"""Of a process, what depends on how results are kept."""


def read(path: Path) -> dict[str, Any]:
    """A JSON document."""
    return json.loads(gzip.decompress(path.read_bytes()))


def write(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON document; the same document gives the same bytes."""
    path.write_bytes(gzip.compress(json.dumps(document, sort_keys=True).encode(), mtime=0))


def process(measurement: Measurement) -> dict[str, Any]:
    """A process as plain values, its blocks by column; without the trace."""
    document = measurement.model_dump(mode="json", exclude={*KEYS, "trace", "packages"})
    blocks = document.pop("blocks")
    columns = {name: [block[name] for block in blocks] for name in (blocks[0] if blocks else {})}
    return {**document, "blocks": columns}


def fill(folder: Path) -> None:
    """Write the golden measurements into the cache of an outputs folder, under today's keys."""
    raw, lab = read(RAW), Lab(outputs=folder)
    for one in raw["comparisons"]:
        conditions = [Condition(**choices) for choices in one["conditions"]]
        jobs = [prepare_job(each, INITIAL_SEED, lab.inputs) for each in [conditions[0], *conditions]]
        comparison = Comparison(conditions, [], {}, 0.03, 60.0, 3, 0.05)
        asked = Asked.create(comparison, jobs, rounds.RoundSettings(block_s=one["block_s"]), None)
        for repetition, processes in enumerate(one["repetitions"]):
            asked.repetitions = repetition
            measured = zip(jobs, processes, strict=True)
            lab.store.save([_measurement(each, job.condition, asked.group, asked.file) for job, each in measured])
    for one in raw["training"]:
        settings = epochs.TrainingSettings(**one["settings"])
        job = prepare_job(Condition(**one["condition"]), one["process"]["seed"], lab.inputs)
        file = key(kind="training", settings=settings.model_dump(), job=job.depends_on("epochs"))
        lab.store.save([_measurement(one["process"], job.condition, file, file)])
    for document in raw["certificates"]:
        certificate = Certificate.model_validate(document)
        path = lab.certificate_path(certificate.condition, certificate.training)
        code = fingerprint.digest(certificate.condition, "gate")
        update = {"file": path.stem, "code": code, "batch_size": 2**20}  # whatever size a notebook asks for
        save(path, certificate.model_copy(update=update))
    for one in raw["ceilings"]:
        jobs = [prepare_job(each, INITIAL_SEED, lab.inputs) for each in roofline.conditions(**one["asked"])]
        name = key(ceiling=[job.depends_on("ceiling") for job in jobs])
        save(folder / "ceilings" / f"{name}.json", Ceiling.model_validate(one["found"]))
    for one in raw["timers"]:
        job = prepare_job(Condition(**one["condition"]), INITIAL_SEED, lab.inputs)
        name = key(timer=job.depends_on("contract"))
        save(folder / "timers" / f"{name}.json", SyncCheck.model_validate(one["found"]))


def comparisons() -> list[Comparison]:
    """The golden comparisons, without a cache."""
    made = []
    for one in read(RAW)["comparisons"]:
        conditions = [Condition(**choices) for choices in one["conditions"]]
        together = [(file, each) for file, processes in enumerate(one["repetitions"]) for each in processes]
        by_role = {"baseline": conditions[:1], "control": conditions[:1]}
        measured, others = [], {}
        for file, each in together:
            if each["role"] == "condition":
                condition = conditions[1 + others.setdefault(file, 0)]
                others[file] += 1
            else:
                (condition,) = by_role[each["role"]]
            measured.append(_measurement(each, condition, "golden", str(file)))
        made.append(Comparison(conditions, measured, {}, 0.03, 60.0, 3, 0.05))
    return made


def gated(conditions: list[Condition]) -> list[Condition]:
    """The conditions of the certificates that these need."""
    wanted = [gate.adapt(one) for one in conditions]
    return list(dict.fromkeys([*wanted, *(first for one in wanted for first in gate.prerequisites(one))]))


def _measurement(document: dict[str, Any], condition: Condition, group: str, file: str) -> Measurement:
    columns = document["blocks"]
    blocks = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    kept = {name: value for name, value in document.items() if name in Measurement.model_fields}
    return Measurement(**{**kept, "blocks": blocks, "condition": condition, "group": group, "file": file})
