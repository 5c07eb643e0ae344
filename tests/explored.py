"""A folder of results from made-up measurements, and its report as a page, for tests of what people see."""

from __future__ import annotations

from pathlib import Path

import papermill
from synthetic_lab import SyntheticLab
from test_experiments import save_as_the_suite_does

from benchlib import frameworks, workloads
from benchlib.condition import Condition
from benchlib.plotting import Bars, Picture
from benchlib.suite.experiments.result import Declaration, Part, Result
from benchlib.suite.report.export import export_html
from benchlib.tables import CONDITION, RATIO, Table

ROOT = Path(__file__).parents[1]

DECLARED = {
    "figures": {
        "ratios": Picture(
            caption="Throughput of each.",
            panels=[Bars(quantity="throughput_ratio", xlabel="ratio", labels="subject")],
            each="task",
        )
    },
    "tables": {"ratios": Table("Throughput relative to the first.", "throughput_ratio", (*CONDITION, *RATIO))},
    "in_report": ("ratios",),
}

TORCH = Condition(workload="cnn", lane="tuned", hyperparameters={"image_size": 8})
GRAPH = TORCH.but(mode="graph")
MINDSPORE = TORCH.but(framework="mindspore", mode="graph")
GCN = Condition(workload="gcn", lane="tuned")
COMPARED = [
    [TORCH, GRAPH, MINDSPORE],
    [one.but(batch_size=32) for one in (TORCH, MINDSPORE)],
    [GCN, GCN.but(framework="mindspore", mode="graph")],
]


def five_frameworks() -> list[list[Condition]]:
    """66 ratios: frameworks in graph mode, in environments that are called like them, relative to PyTorch in eager."""
    baselines = [TORCH.but(batch_size=32), TORCH, Condition(workload="resnet50", lane="tuned", batch_size=16)]
    others = ("googlenet", "lstm", "gru", "seq2seq", "gcn", "bert", "conv2d", "linear", "batchnorm2d")
    baselines += [Condition(workload=name, lane="tuned") for name in others]
    baselines += [Condition(workload="resnet50_inference", lane="tuned", batch_size=size) for size in (1, 16)]
    baselines += [Condition(workload="linear", lane="tuned", batch_size=size) for size in (4, 8)]
    homes = {"pytorch": "default", "mindspore": "default", "jax": "jax", "tensorflow": "tensorflow", "mxnet": "mxnet"}
    groups = []
    for one in baselines:
        named = [name for name in frameworks.of(workloads.load(one.workload)) if name in homes]
        graph = [one.but(framework=name, mode="graph", environment=homes[name]) for name in named]
        groups.append([one, *(other for other in graph if other.framework != "pytorch" or one.workload in GRAPH_TOO)])
    return groups


GRAPH_TOO = ("cnn", "lstm", "gcn")
"""The workloads that PyTorch has in graph mode, too."""


def seconds(condition: Condition) -> float:
    """MindSpore takes twice as long for the CNN and a tenth less for the GCN; graph mode takes as long as eager."""
    factor = {"cnn": 2.0, "gcn": 0.9}.get(condition.workload, 1.0) if condition.framework == "mindspore" else 1.0
    return 0.01 * factor


def results(
    folder: Path, groups: list[list[Condition]] = COMPARED, notebook: str = "modes", title: str = "Modes"
) -> Result:
    """The results of a notebook that compares these groups."""
    lab = SyntheticLab(folder, step=seconds, spread=0.01)
    asked = {"precision": 0.03, "budget_s": 1, "block_s": 0.1}
    parts = [Part(lab.compare(group, **asked), f"{group[0].workload} on {group[0].data}") for group in groups]
    declared = Declaration(notebook=notebook, title=title, question="What does graph mode give?", **DECLARED)
    result = Result(declared, folder, parts, ["digits: a small, easy task."])
    save_as_the_suite_does(folder, notebook, result.summary())
    return result


def report(folder: Path) -> Path:
    """The whole report of a folder as a page."""
    executed, parameters = folder / "notebooks" / "report.ipynb", {"outputs": str(folder)}
    papermill.execute_notebook(ROOT / "notebooks" / "report.ipynb", executed, parameters, cwd=ROOT, progress_bar=False)
    export_html(executed, folder / "report.html")
    return folder / "report.html"
