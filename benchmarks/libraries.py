"""Is our model code a handicap? Training steps of our models against those of the frameworks' libraries, same sizes.

    .venv/bin/pip install transformers torch_geometric
    BENCHLIB_DATA=FOLDER .venv/bin/python benchmarks/libraries.py [pytorch] [jax] [tensorflow] [mxnet]

Comparisons as any other, to 2 % or 5 minutes, in the tuned lane. A ratio is our throughput over the library's; at least
0.97 is asked for.

- PyTorch, eager: ``bert`` (its tiny size, and 4 layers of 256) against transformers', and ``gcn`` on Cora against
  torch_geometric's.
- JAX, graph: ``resnet50`` against one in flax.linen, in the style of flax's example for ImageNet, and ``gru`` against
  one of flax.nnx's own layers.
- TensorFlow and MXNet, graph: ``resnet50_v1``, our code with the strides and biases of the libraries', against Keras's
  application and that of Gluon's model zoo.

The references are in ``references/workloads``. The table says of both sides what the gate does: is a model that of
PyTorch, with the same weights, and if not, in which arrays? What is not installed is named, and left out.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import benchlib.workloads
from benchlib import Lab, env_vars
from benchlib.condition import Condition
from benchlib.environments import DEFAULT
from benchlib.equivalence.certificate import Certificate
from benchlib.provenance import installed
from benchlib.runner import availability

HERE = Path(__file__).resolve().parent
REFERENCES = HERE / "references"
FOLDER = HERE.parent / "outputs" / "benchmarks" / "libraries"
ASKED = {"precision": 0.02, "budget_s": 300.0, "block_s": 0.3}
LARGER = {"layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024}
FRAMEWORKS = ("pytorch", "jax", "tensorflow", "mxnet")


@dataclass(frozen=True)
class Case:
    """A library's model and ours."""

    library: Condition
    ours: Condition
    package: str = ""  # that the library is, if it is not the framework itself

    @property
    def missing(self) -> str | None:
        """What is not installed, and what to do; None: nothing."""
        framework, environment = self.library.framework, self.library.environment
        lacking = availability.why_absent(framework, self.library.device, environment)
        if lacking is None and self.package and not installed.module(environment, self.package).place:
            return f"{self.package} is not installed: .venv/bin/pip install {self.package}"
        return lacking


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Is our model code a handicap?")
    parser.add_argument("frameworks", nargs="*", help=f"of {', '.join(FRAMEWORKS)}; all, unless some are named")
    asked = parser.parse_args().frameworks
    if unknown := sorted({*asked} - {*FRAMEWORKS}):
        parser.error(f"{', '.join(unknown)}: there are {', '.join(FRAMEWORKS)}")
    put_beside()
    rows = []
    for case in [case for case in cases() if case.ours.framework in (asked or FRAMEWORKS)]:
        if case.missing:
            print(f"{case.ours}: left out: {case.missing}")
            continue
        rows.append(row(case))
        print(pd.DataFrame(rows).to_string(index=False))


def put_beside() -> None:
    """Have the references beside benchlib's workloads, here and in workers."""
    os.environ[env_vars.WORKER_PATH] = str(REFERENCES)
    benchlib.workloads.__path__.append(str(REFERENCES / "workloads"))


def cases() -> list[Case]:
    """All of them, by framework."""
    return [
        _case("bert", "pytorch", "transformers"),
        _case("bert", "pytorch", "transformers", hyperparameters=LARGER),
        _case("gcn", "pytorch", "torch_geometric", data="cora"),
        _case("resnet50", "jax"),
        _case("gru", "jax"),
        _case("resnet50_v1", "tensorflow", hyperparameters={"biases": "all"}),
        _case("resnet50_v1", "mxnet", hyperparameters={"biases": "on the way"}),
    ]


def row(case: Case) -> dict[str, object]:
    """What was measured of a case."""
    comparison = Lab(outputs=FOLDER).compare([case.library, case.ours], **ASKED)
    ratio, control = comparison.ratio(case.ours), comparison.control
    return {
        "model": str(case.ours),
        "gate: the library's": _verdict(comparison.certificates[case.library.key]),
        "gate: ours": _verdict(comparison.certificates[case.ours.key]),
        "ours / the library's": f"{ratio.estimate:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
        "A/A": f"{control.estimate:.3f} [{control.low:.3f}, {control.high:.3f}]",
        "processes": ratio.processes,
    }


def _verdict(certificate: Certificate) -> str:
    """With the arrays that it is for, or the reason."""
    failed = [name for check in certificate.checks if not check.ok for name in check.unseen or [check.at]]
    return ": ".join(filter(None, (certificate.verdict, ", ".join(failed) or certificate.reason)))


def _case(workload: str, framework: str, package: str = "", **choices: object) -> Case:
    environment, mode = (DEFAULT, "eager") if framework == "pytorch" else (framework, "graph")
    library, ours = (
        Condition(workload=one, framework=framework, environment=environment, mode=mode, lane="tuned", **choices)
        for one in (f"{workload}_library", workload)
    )
    return Case(library, ours, package)


if __name__ == "__main__":
    main()
