"""The sentences that answer a notebook's question: what is compared, by what was shown of it."""

import math
from types import SimpleNamespace
from typing import Any

import pandas as pd
from frames import row

from benchlib.findings import compilation, effects, overtaking
from benchlib.stats.amortisation import AT_ONCE, NEVER, PAYS
from benchlib.stats.comparison import FASTER, NO_DIFFERENCE, SLOWER
from benchlib.stats.frame import IMPOSSIBLE

ENDS = {SLOWER: (0.2, 0.3), FASTER: (1.4, 1.6), NO_DIFFERENCE: (0.9, 1.2)}


def ratio(framework: str, verdict: str, low: float = 0.0, batch: int = 16, **more: Any) -> dict[str, Any]:
    told = {"verdict": verdict, "batch_size": batch, "why": None, "baseline_subject": "pytorch eager tuned"}
    ends = (low, 1.2 * low) if low else ENDS[verdict]
    return row("throughput_ratio", ends, f"{framework} graph tuned", **told, **more)


def result(*rows: dict[str, Any]) -> SimpleNamespace:
    frame = pd.DataFrame({"reason": None, "verdict": None, "why": None} | one for one in rows)
    return SimpleNamespace(rows=lambda quantity: frame[frame["quantity"] == quantity])


def told(*rows: dict[str, Any]) -> str:
    return " ".join(effects(lambda one: f"batch {one['batch_size']}")(result(*rows)))


def test_one_ratio_is_told_with_its_interval() -> None:
    shown = told(ratio("mindspore", SLOWER))
    told_in = "Slower than PyTorch eager tuned at batch 16: MindSpore graph tuned (0.24 times as fast, 0.20 to 0.30)."
    assert shown == told_in
    assert told(ratio("mindspore", NO_DIFFERENCE)) == "No difference shown at batch 16: MindSpore graph tuned."
    assert told(row("throughput_ratio", why=IMPOSSIBLE, reason="no kernel", batch_size=16)) == ""


def test_of_several_sizes_the_largest_effect_is_told() -> None:
    every = [(SLOWER, 0.4), (SLOWER, 0.2), (FASTER, 1.1), (NO_DIFFERENCE, 0.9)]
    shown = told(*(ratio("mindspore", *one, batch=16 * 2**place) for place, one in enumerate(every)))
    assert "MindSpore graph tuned in 1 of 4 (1.20 times as fast at batch 64" in shown
    assert "MindSpore graph tuned in 2 of 4 (down to 0.219 times as fast at batch 32" in shown
    assert "No difference shown: MindSpore graph tuned in 1 of 4." in shown


def test_of_many_subjects_all_are_named_by_what_was_shown_of_them() -> None:
    slower = [ratio("jax", SLOWER, 0.4), ratio("mindspore", SLOWER, 0.2)]
    faster = [ratio("tensorflow", FASTER, 1.1), ratio("mxnet", FASTER, 1.4)]
    first, _, second = told(*slower, *faster, ratio("pytorch", NO_DIFFERENCE)).partition("Slower than ")
    assert first.index("MXNet graph tuned (1.5") < first.index("TensorFlow graph tuned (1.20 times")
    assert second.index("MindSpore graph tuned (0.219 times") < second.index("JAX graph tuned (0.4")
    assert "No difference shown at batch 16: PyTorch graph tuned." in second


def test_when_compilation_pays_is_told_of_each() -> None:
    paid = {"jax": {"why": AT_ONCE}, "tensorflow": {"verdict": PAYS}, "pytorch": {"why": NEVER}}
    steps = {"tensorflow": (1100.0, 1300.0)}
    rows = [
        row("pays_after_steps", steps.get(who, (math.nan, math.nan)), f"{who} graph tuned", task="cnn", **shown)
        for who, shown in paid.items()
    ]
    (sentence,) = compilation(result(*rows))
    told = "JAX graph tuned pays at once (cnn); TensorFlow graph tuned pays after 1,196 steps (cnn)"
    assert sentence == f"Compilation to a graph: {told}; PyTorch graph tuned never pays (cnn)."


def test_where_one_overtakes_another_is_told() -> None:
    rows = [
        ratio("mindspore", verdict, million_multiply_adds=work, workload="conv2d")
        for verdict, work in ((FASTER, 400.0), (SLOWER, 10.0), (NO_DIFFERENCE, 100.0))
    ]
    where = overtaking("million_multiply_adds", "million", lambda row: row["workload"])
    (sentence,) = where(result(*rows))
    assert sentence == "MindSpore graph tuned overtakes PyTorch eager tuned in conv2d, between 10.0 and 400 million."
    assert "400" not in " ".join(where(result(*rows[1:])))
