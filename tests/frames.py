"""Rows of tidy frames made by hand, and notebooks that have saved them."""

import json
import math
from pathlib import Path
from typing import Any

from benchlib import manifest
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import MARGIN

UNKNOWN = (math.nan, math.nan)


def row(
    quantity: str,
    ends: tuple[float, float] = UNKNOWN,
    subject: str = "mindspore graph tuned",
    baseline: str | None = None,
    on: str = "gcn on cora",
    control: tuple[float, float] | None = None,
    **columns: Any,
) -> dict[str, Any]:
    """A row of a quantity whose interval has these ``ends``; a ratio's baseline is PyTorch's unless one is given.
    ``on`` is the workload and its data.
    """
    compared = quantity.endswith("_ratio") and not quantity.startswith("first")
    workload, data = on.split(" on ")
    own = {"workload": workload, "data": data, "device": "cpu", "hyperparameters": "{}"}
    told = {**own, "task": on, "label": f"{on}, {subject}", **parts(subject)}
    if compared or baseline:
        told |= {f"baseline_{name}": value for name, value in {**own, **parts(baseline or PYTORCH)}.items()}
    told |= dict(zip(("estimate", "low", "high"), _interval(ends), strict=True))
    if control:
        told |= dict(zip(("control", "control_low", "control_high"), _interval(control), strict=True))
    return {"quantity": quantity, "kind": "comparison", "margin": MARGIN, "processes": 3, **told, **columns}


def parts(subject: str) -> dict[str, str]:
    """What a subject is, from its short form: framework, mode, a mixed precision, lane."""
    framework, mode, *precision, lane = subject.split()
    named = {"framework": framework, "mode": mode, "precision": precision[0] if precision else "fp32", "lane": lane}
    return {**named, "environment": "default", "subject": subject}


PYTORCH = "pytorch eager tuned"


def save(folder: Path, notebook: str, rows: list[dict[str, Any]], status: str = "succeeded") -> None:
    """The frame of a notebook, with the record that it wrote it; rows that say no files get some."""
    files = [{"files": f"key{number}", "notebook": notebook, **one} for number, one in enumerate(rows)]
    path = f"tables/{notebook}_frame.parquet"
    tidy.save(tidy.of_rows(files), folder / path)
    (folder / "notebooks").mkdir(exist_ok=True)
    record = {"status": status, "files": {path: manifest.digest((folder / path).read_bytes())}}
    (folder / "notebooks" / f"{notebook}.json").write_text(json.dumps(record), encoding="utf-8")


def _interval(ends: tuple[float, float]) -> tuple[float, float, float]:
    low, high = ends
    return math.sqrt(low * high), low, high
