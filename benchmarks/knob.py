"""What does a knob do to each workload? With it against without it, everything else as it is.

    .venv/bin/python benchmarks/knob.py launch_blocking [WORKLOAD ...] --framework mindspore --mode eager
    .venv/bin/python benchmarks/knob.py MALLOC_TRIM_THRESHOLD_,GLIBC_TUNABLES cnn --framework jax --mode graph
    .venv/bin/python benchmarks/knob.py MXNET_USE_OPERATOR_TUNING=0 gru --framework mxnet --mode graph

The second is of several knobs together. The third is of an environment variable that no lane sets: is it worth being
declared as a knob?

Comparisons as any other, to 5 % or a minute beyond the pilot, in the tuned lane, on embedded data, at the workload's
own sizes (convolutional models for images of 224 pixels at 32). A ratio is throughput with the knob over throughput
without it. Run it alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import homes
import pandas as pd
from profiles import EMBEDDED

from benchlib import Lab, frameworks, workloads
from benchlib.condition import Condition
from benchlib.provenance import knobs

FOLDER = Path(__file__).resolve().parent.parent / "outputs" / "benchmarks" / "knob"
ASKED = {"precision": 0.05, "budget_s": 60.0, "block_s": 0.3, "pilot": 3}


def main() -> None:
    """Print the table, again after each workload."""
    parser = argparse.ArgumentParser(description="What does a knob do to each workload?")
    parser.add_argument("knob")
    parser.add_argument("workloads", nargs="*", help="all in which it is set, unless some are named")
    parser.add_argument("--framework", choices=homes.ENVIRONMENTS, default="pytorch")
    parser.add_argument("--mode", default="eager")
    arguments = parser.parse_args()
    name, _, value = arguments.knob.partition("=")
    asked = [name] if value else name.split(",")
    if value:
        declared = frameworks.knobs(arguments.framework)
        candidate = {"name": name, "value": value, "devices": (), "reason": "tried", "source": "benchmarks/knob.py"}
        of_others = frameworks.knobs
        frameworks.knobs = lambda name: (*declared, candidate) if name == arguments.framework else of_others(name)
    rows = []
    for name in arguments.workloads or workloads.names():
        workload = workloads.load(name)
        if arguments.framework not in frameworks.of_workload(workload):
            continue
        condition = Condition(
            workload=name,
            framework=arguments.framework,
            environment=homes.ENVIRONMENTS[arguments.framework],
            mode=arguments.mode,
            lane="tuned",
            data=workload.data[0],
            hyperparameters=EMBEDDED.get(name, {}),
        )
        if not {*asked} <= {*knobs.find(condition)}:
            continue
        rows.append(row(condition, asked))
        print(pd.DataFrame(rows).to_string(index=False), flush=True)
    if not rows:
        parser.error(f"{arguments.knob}: lane tuned sets no such knob in {arguments.framework} {arguments.mode}")


def row(condition: Condition, asked: list[str]) -> dict[str, object]:
    """What was measured of a workload with these knobs."""
    comparison = Lab(outputs=FOLDER).compare([condition.but(without=asked), condition], **ASKED)
    ratio, control = comparison.ratio(condition), comparison.control
    without_ms, with_ms = comparison.throughput()["step_ms"]
    return {
        "workload": condition.workload,
        "batch": condition.batch_size,
        "ms a step without": f"{without_ms:.3g}",
        "ms a step with": f"{with_ms:.3g}",
        "with / without": f"{ratio.estimate:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]",
        "A/A": f"{control.estimate:.3f} [{control.low:.3f}, {control.high:.3f}]",
        "processes": ratio.processes,
        "the same model": comparison.certificates[condition.key].verdict,
    }


if __name__ == "__main__":
    main()
