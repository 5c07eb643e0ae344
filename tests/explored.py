"""A folder of results from made-up measurements, and its report as a page, for tests of what people see."""

import json
from pathlib import Path
from typing import Any

import nbformat
import papermill
from synthetic_lab import SyntheticLab

from benchlib import frameworks, manifest, tables, workloads
from benchlib.condition import Condition
from benchlib.plotting import figures, naming
from benchlib.report.export import export_html
from benchlib.stats import derived_ratios
from benchlib.stats import frame as tidy

ROOT = Path(__file__).parents[1]
SCRAP = "application/scrapbook.scrap.json+json"

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
        named = [name for name in frameworks.of_workload(workloads.load(one.workload)) if name in homes]
        graph = [one.but(framework=name, mode="graph", environment=homes[name]) for name in named]
        groups.append([one, *(other for other in graph if other.framework != "pytorch" or one.workload in GRAPH_TOO)])
    return groups


GRAPH_TOO = ("cnn", "lstm", "gcn")
"""The workloads that PyTorch has in graph mode, too."""


def seconds(condition: Condition) -> float:
    """MindSpore takes twice as long for the CNN and a tenth less for the GCN; graph mode takes as long as eager."""
    factor = {"cnn": 2.0, "gcn": 0.9}.get(condition.workload, 1.0) if condition.framework == "mindspore" else 1.0
    return 0.01 * factor


def results(folder: Path, groups: Any = COMPARED, notebook: str = "modes", height: float = 1.5, **lab: Any) -> dict:
    """Keep the results of a notebook that compares these groups; its summary."""
    made = SyntheticLab(folder, **{"step": seconds, "spread": 0.01, **lab})
    every = [made.compare(group, precision=0.03, budget_s=1, block_s=0.1) for group in groups]
    frame = naming.name_subjects(
        tidy.concat(
            tidy.of_comparison(
                *(one, derived_ratios.pair_rows(one)),
                **{"notebook": notebook, "part": part, "task": f"{one.baseline.workload} on {one.baseline.data}"},
            )
            for part, one in enumerate(every)
        )
    )
    tidy.save(frame, folder / "tables" / f"{notebook}_frame.parquet")
    shown = frame[frame["quantity"] == "throughput_ratio"]
    table = shown[["subject", "task", "verdict"]].assign(
        ratio=shown["estimate"], ratio_low=shown["low"], ratio_high=shown["high"], **{tables.FILES: shown["files"]}
    )
    tables.save(table, folder / "tables", f"{notebook}_ratios", "Ratios.")
    drawn = figures.save(figures.panels(1, 1, height)[0], folder / "figures", f"{notebook}_ratios")
    paths = [path.relative_to(folder).as_posix() for path in drawn]
    certificates = {one.condition: one for each in every for one in each.certificates.values()}
    failed = [row for one in every for row in one.failures().astype(str).to_dict("records")]
    summary = {
        "title": notebook.capitalize(),
        "question": f"What does {notebook} ask?",
        "answers": ["MindSpore is slower."],
        "findings": ["It was measured."],
        "warnings": [],
        "notes": ["digits: a small, easy task."],
        "figures": paths,
        "tables": [f"tables/{notebook}_frame.parquet", f"tables/{notebook}_ratios.csv"],
        "captions": dict.fromkeys(paths, "Throughput of each."),
        "in_report": [[f"tables/{notebook}_ratios.csv", tables.html(table, "Throughput ratios.").data]],
        "failures": len(failed),
        "failed": failed,
        "certificates": [one.model_dump_json() for one in certificates.values()],
        "measurements": sorted({file for one in every for file in one.files()}),
        "conditions": [one.model_dump(mode="json") for each in every for one in each.conditions],
    }
    save(folder, notebook, summary)
    return summary


def claims(folder: Path, verdicts: dict[str, tuple[str, bool, str]]) -> None:
    """Keep the results of a notebook that judges claims: by claim the verdict, is it undecided, what came out here."""
    columns = {
        "claim": list(verdicts),
        "verdict_then": ["Reproduced" if name == "C3" else "–" for name in verdicts],
        **dict(zip(("verdict", "undecided", "here"), map(list, zip(*verdicts.values(), strict=True)), strict=True)),
        **{name: [text] * len(verdicts) for name, text in (("says", "so"), ("published_on", "V100"), ("doubt", "–"))},
    }
    nothing = ("warnings", "notes", "figures", "tables", "in_report", "failed", "certificates", "measurements")
    summary = {name: [] for name in (*nothing, "answers", "conditions")}
    names = list(columns)
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    frame = {"index": list(range(len(rows))), "columns": names, "data": rows}
    text = {"title": "Claims", "question": "What holds?", "findings": ["So much."], "captions": {}, "failures": 0}
    save(folder, "claims", {**summary, **text, "verdicts": frame})


def save(folder: Path, name: str, summary: dict[str, Any]) -> None:
    """Keep an executed notebook with its summary, and the record that it succeeded, as the suite does."""
    scrap = {"name": "summary", "data": summary, "encoder": "json", "version": 1}
    output = nbformat.v4.new_output("display_data", {SCRAP: scrap})
    executed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=[output])])
    (folder / "notebooks").mkdir(exist_ok=True)
    nbformat.write(executed, folder / "notebooks" / f"{name}.ipynb")
    measured = (f"measurements/{key}.parquet" for key in summary["measurements"])
    paths = [*summary["figures"], *summary["tables"], *measured]
    files = {path: manifest.digest((folder / path).read_bytes()) for path in paths if (folder / path).is_file()}
    record = {"notebook": name, "status": "succeeded", "files": files}
    (folder / "notebooks" / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")


def summary_of(folder: Path, name: str) -> dict[str, Any]:
    """Return what a notebook glued."""
    notebook = nbformat.read(folder / "notebooks" / f"{name}.ipynb", as_version=4)
    return notebook.cells[0].outputs[0].data[SCRAP]["data"]


def report(folder: Path) -> Path:
    """Make the whole report of a folder as a page."""
    executed, parameters = folder / "notebooks" / "report.ipynb", {"outputs": str(folder)}
    papermill.execute_notebook(ROOT / "notebooks" / "report.ipynb", executed, parameters, cwd=ROOT, progress_bar=False)
    export_html(executed, folder / "report.html")
    return folder / "report.html"
