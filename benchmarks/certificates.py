"""Is an environment's model the reference's? Asks the gate, for each workload and mode of its framework.

    .venv/bin/python benchmarks/certificates.py ENVIRONMENT ... [--workloads NAME ...] [--modes MODE ...]
        [--lane LANE] [--to FOLDER]

Certifies in the sizes of ``parameters/quick/equivalence.yaml``, in fp32 on the CPU. ``FOLDER``
(``outputs/benchmarks/certificates``) gets ``certificates.csv``, a row for each. The exit code is 1 if a model
differs or could not be checked, or if there was none. A mode that is not in this version is left out of that.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

from benchlib import Lab, environments, frameworks, workloads
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import NotInThisVersion
from benchlib.parameter_types import read
from benchlib.provenance import installed

ROOT = Path(__file__).resolve().parent.parent
SIZES = ROOT / "parameters" / "quick" / "equivalence.yaml"
TOGETHER = 6
"""Conditions that are certified at once: the arrays of all are in memory."""


def main() -> None:
    """Certify, and say what was found."""
    parser = argparse.ArgumentParser(description="The gate's verdicts on the models of environments.")
    parser.add_argument("environments", nargs="+", metavar="ENVIRONMENT")
    parser.add_argument("--workloads", nargs="+", choices=workloads.names(), default=workloads.names())
    parser.add_argument("--modes", nargs="+", default=frameworks.every_mode())
    parser.add_argument("--lane", default="default")
    parser.add_argument("--to", type=Path, default=ROOT / "outputs" / "benchmarks" / "certificates")
    given = parser.parse_args()
    asked = [one for name in given.environments for one in conditions(environments.require(name), given)]
    lab, rows = Lab(outputs=given.to), []
    for start in range(0, len(asked), TOGETHER):
        found = lab.certify(asked[start : start + TOGETHER])
        rows += [_row(one, found[one.key]) for one in asked[start : start + TOGETHER]]
        pd.DataFrame(rows).to_csv(given.to / "certificates.csv", index=False)
    frame = pd.DataFrame(rows)
    print(frame.to_string(index=False))
    said = frame[frame["verdict"] != "not in this version"] if len(frame) else frame
    sys.exit(bool((said["verdict"] != "same").any()) if len(said) else "nothing was certified")


def conditions(environment: str, given: argparse.Namespace) -> list[Condition]:
    """Each workload that a framework of the environment has a file for, in each of its modes."""
    models = {one["workload"]: one for one in read(SIZES)["models"] if one["workload"] in given.workloads}
    return [
        Condition(**model, framework=framework, environment=environment, mode=mode, lane=given.lane)
        for framework in frameworks.names()
        if installed.offers(environment, framework)
        for name, model in models.items()
        if framework in workloads.load(name).frameworks()
        for mode in frameworks.modes(framework)
        if mode in given.modes
    ]


def _row(condition: Condition, certificate: Certificate) -> dict[str, str]:
    lacks = certificate.failure is not None and certificate.failure.exception == NotInThisVersion.__name__
    return {
        "environment": condition.environment,
        "workload": condition.workload,
        "mode": condition.mode,
        "verdict": "not in this version" if lacks else certificate.verdict,
        "why": certificate.why.splitlines()[0] if certificate.why else "",
    }


if __name__ == "__main__":
    main()
