"""Record the golden master of the tests: ``python benchmarks/record_golden.py --measure FOLDER`` measures a quick run,
and without ``--measure`` ``tests/golden/*.json.gz`` is written from the results that lie in the folder.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import golden  # noqa: E402
from test_golden import expected, measured  # noqa: E402

from benchlib.cache import load  # noqa: E402
from benchlib.condition import Condition  # noqa: E402
from benchlib.equivalence.certificate import Certificate  # noqa: E402
from benchlib.lab import Lab, Measures, NotMeasured  # noqa: E402
from benchlib.suite import runs  # noqa: E402


class Recorder(Lab):
    """A lab that keeps what it was asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(outputs=folder, measures=Measures.NOTHING)
        self.trained: list[dict[str, Any]] = []
        self.ceilings: list[dict[str, Any]] = []
        self.timers: dict[str, dict[str, Any]] = {}

    def train(self, conditions: list[Condition], **asked: Any):
        """As of any lab."""
        runs = super().train(conditions, **asked)
        epochs, threshold = asked["epochs"], asked.get("threshold")
        most_epochs = max(epochs, asked.get("most_epochs") or epochs)
        settings = {"epochs": epochs, "threshold": threshold, "most_epochs": most_epochs}
        for one in runs.measurements:
            choices = one.condition.model_dump(mode="json")
            self.trained.append({"settings": settings, "condition": choices, "process": golden.process(one)})
        return runs

    def ceiling(self, device: str, precision: str = "fp32", within=("default",)):
        """As of any lab."""
        found = super().ceiling(device, precision, within)
        asked = {"device": device, "precision": precision, "within": sorted(set(within))}
        self.ceilings.append({"asked": asked, "found": found.model_dump(mode="json")})
        return found

    def check_timers(self, conditions):
        """As of any lab."""
        found = super().check_timers(conditions)
        for one in found:
            choices = one.condition.model_dump(mode="json")
            self.timers[one.condition.key] = {"condition": choices, "found": one.model_dump(mode="json")}
        return found


def main() -> int:
    """Measure, or record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--measure", action="store_true")
    asked = parser.parse_args()
    if asked.measure:
        return runs.run("quick", asked.folder)
    lab = Recorder(asked.folder)
    every, notebooks = [], []
    for name in sorted(path.stem for path in (ROOT / "parameters" / "quick").glob("*.yaml")):
        if name != "defaults":
            try:
                every += measured(name, lab).every
            except NotMeasured as error:  # of a run that was ended early
                print(f"{name} is left out: {error}")
                continue
            notebooks.append(name)
    certificates = [load(Certificate, lab.certificate_path(one)) for one in golden.gated(every)]
    raw = {
        "comparisons": [_comparison(one) for one in lab.comparisons.values()],
        "training": lab.trained,
        "certificates": [one.model_dump(mode="json") for one in certificates if one],
        "ceilings": list({str(one["asked"]): one for one in lab.ceilings}.values()),
        "timers": list(lab.timers.values()),
    }
    golden.write(golden.RAW, raw)
    golden.write(golden.EXPECTED, expected(asked.folder, notebooks))
    print({path.name: path.stat().st_size for path in (golden.RAW, golden.EXPECTED)})
    return 0


def _comparison(asked: Any) -> dict[str, Any]:
    by_repetition: dict[int, list[Any]] = {}
    for one in asked.comparison.measurements:
        if not one.ok:
            raise SystemExit("a process failed: measure again")
        by_repetition.setdefault(one.repetition, []).append(golden.process(one))
    return {
        "block_s": asked.settings.block_s,
        "conditions": [one.model_dump(mode="json") for one in asked.comparison.conditions],
        "repetitions": [by_repetition[number] for number in sorted(by_repetition)],
    }


if __name__ == "__main__":
    sys.exit(main())
