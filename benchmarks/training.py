"""Do the workloads learn what they should, on the real data? Training runs in every framework, from several seeds.

    BENCHLIB_DATA=FOLDER .venv/bin/python benchmarks/training.py gcn gru lstm cnn [--seeds 3] [--frameworks pytorch]

FOLDER holds the data sets as published (see docs/data.md); without it they are downloaded. Frameworks are all that are
there for a workload, each in its environment, PyTorch in eager mode and the others in graph mode. The table has a row
for each workload and framework: the metric after the last epoch as mean with its 95 % interval over the seeds, lowest
and highest, its difference from the first framework's within seeds, how many runs reached what is asked for, and the
seconds of an epoch. What has been trained is kept in outputs/benchmarks/training, with every run epoch by epoch in
runs.csv there.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import homes
import pandas as pd

from benchlib import Lab
from benchlib.condition import Condition
from benchlib.stats.intervals import mean_interval

FOLDER = Path(__file__).resolve().parent.parent / "outputs" / "benchmarks" / "training"
TASKS: dict[str, dict[str, Any]] = {  # condition, epochs, seeds, what is asked for
    "gcn": {"data": "cora", "epochs": 200, "seeds": 10, "asked": 0.79},
    "gru": {"data": "imdb", "epochs": 3, "seeds": 3, "asked": 0.82},
    "lstm": {"data": "imdb", "epochs": 3, "seeds": 2, "asked": 0.84},
    "cnn": {"data": "cifar10", "hyperparameters": {"image_size": 32}, "epochs": 10, "seeds": 2, "asked": 0.60},
    "seq2seq": {"data": "multi30k", "epochs": 5, "seeds": 1, "asked": 10.0},
    "resnet50": {"data": "cifar10", "epochs": 10, "seeds": 1, "asked": 0.85},
    "googlenet": {"data": "cifar10", "epochs": 10, "seeds": 1, "asked": None},
    "bert": {"data": "pydoc", "epochs": 20, "seeds": 1, "asked": None},
}
COLUMNS = ("workload", "data", "framework", "mode", "device", "lane", "seed", "epoch", "loss", "metric", "seconds")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Training runs on real data.")
    parser.add_argument("tasks", nargs="+", choices=TASKS)
    parser.add_argument("--seeds", type=int, help="so many in place of the task's own number")
    parser.add_argument("--epochs", type=int, help="so many in place of the task's own number")
    parser.add_argument("--frameworks", nargs="+", choices=homes.ENVIRONMENTS, help="in place of all that are there")
    parser.add_argument("--mode", choices=("eager", "graph"), help="for all frameworks")
    parser.add_argument("--device", choices=("cpu", "cuda", "npu"), default="cpu")
    arguments = parser.parse_args()
    rows, curves = [], []
    for name in arguments.tasks:
        task = dict(TASKS[name])
        asked, seeds, epochs = (task.pop(key) for key in ("asked", "seeds", "epochs"))
        conditions = [
            Condition(
                workload=name,
                framework=one,
                environment=homes.ENVIRONMENTS[one],
                mode=arguments.mode or ("eager" if one == "pytorch" else "graph"),
                lane="tuned",
                device=arguments.device,
                **task,
            )
            for one in arguments.frameworks or homes.there(name, arguments.device)
        ]
        seeds = list(range(arguments.seeds or seeds))
        runs = Lab(outputs=FOLDER).train(conditions, seeds=seeds, epochs=arguments.epochs or epochs)
        curves.append(runs.curves()[list(COLUMNS)])
        first = runs.runs().iloc[0]["framework"]
        baseline = runs.runs()[runs.runs()["framework"] == first].set_index("seed")["metric"]
        for framework, of_framework in runs.runs().groupby("framework", sort=False):
            row = _row(of_framework, baseline if framework != first else None, asked)
            rows.append({"workload": name, "framework": framework, **row})
        print(pd.DataFrame(rows).to_string(index=False))
    pd.concat(curves).to_csv(FOLDER / "runs.csv", index=False)


def _row(runs: pd.DataFrame, baseline: pd.Series | None, asked: float | None) -> dict[str, object]:
    metric = runs["metric"].dropna()
    within = [] if baseline is None else (runs.set_index("seed")["metric"] - baseline).dropna().to_list()
    return {
        "runs": len(metric),
        "epochs": int(runs["epochs"].max()),
        "metric, mean": _told(metric.to_list()),
        "from the first": _told(within),
        "lowest": f"{metric.min():.4f}",
        "highest": f"{metric.max():.4f}",
        "asked for": asked,
        "runs that had it": int((runs["best_metric"] >= asked).sum()) if asked is not None else "-",
        "seconds of an epoch": f"{runs['epoch_s'].mean():.1f}",
        "models": "/".join(sorted(set(runs["models"]))),
    }


def _told(values: list[float]) -> str:
    found = mean_interval(values)
    ends = f" [{found.low:.4f}, {found.high:.4f}]" if len(values) > 1 else ""
    return f"{found.estimate:.4f}{ends}" if values else "-"


if __name__ == "__main__":
    main()
