"""The sentences that answer a notebook's question: few pairs have one each, many are told by what was shown."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pandas as pd
from frames import row

from benchlib.findings import compilation, effects, overtaking
from benchlib.stats.amortisation import AT_ONCE, NEVER, PAYS
from benchlib.stats.comparison import FASTER, NO_DIFFERENCE, SLOWER
from benchlib.stats.frame import IMPOSSIBLE


def ratio(framework: str, low: float, high: float, verdict: str, batch: int = 16, **more: Any) -> dict[str, Any]:
    told = {"verdict": verdict, "batch_size": batch, "why": None, "baseline_subject": "pytorch eager tuned"}
    return row("throughput_ratio", (low, high), f"{framework} graph tuned", **told, **more)


def result(*rows: dict[str, Any]) -> SimpleNamespace:
    frame = pd.DataFrame({"reason": None, "verdict": None, "why": None} | one for one in rows)
    return SimpleNamespace(rows=lambda quantity: frame[frame["quantity"] == quantity])


def told(*rows: dict[str, Any]) -> str:
    return " ".join(effects(lambda one: f"batch {one['batch_size']}")(result(*rows)))


def test_one_ratio_is_told_with_its_interval() -> None:
    shown = told(ratio("mindspore", 0.2, 0.3, SLOWER))
    assert "mindspore graph tuned is 0.24 times as fast as pytorch eager tuned at batch 16 (0.20 to 0.30)" in shown
    assert "not shown to differ" in told(ratio("mindspore", 0.96, 1.08, NO_DIFFERENCE))
    assert told(row("throughput_ratio", why=IMPOSSIBLE, reason="no kernel", batch_size=16)) == ""


def test_of_several_sizes_the_largest_effect_is_told() -> None:
    ends = [(0.2, 0.3, SLOWER), (0.4, 0.6, SLOWER), (1.1, 1.3, FASTER), (0.9, 1.2, NO_DIFFERENCE)]
    shown = told(*(ratio("mindspore", *one, batch=16 * 2**place) for place, one in enumerate(ends)))
    for said in ("faster in 1 of 4 (1.20 times", "slower in 2 of 4 (down to 0.24 times", "no difference shown in 1"):
        assert said in shown


def test_of_many_subjects_all_are_named_by_what_was_shown_of_them() -> None:
    shown = told(
        ratio("mindspore", 0.2, 0.3, SLOWER),
        ratio("jax", 0.4, 0.6, SLOWER),
        ratio("tensorflow", 1.15, 1.25, FASTER),
        ratio("mxnet", 1.4, 1.6, FASTER),
        ratio("pytorch", 0.9, 1.2, NO_DIFFERENCE),
    )
    faster, slower = shown.split("Slower than ")
    assert faster.index("mxnet graph tuned (1.50 times") < faster.index("tensorflow graph tuned (1.20 times")
    assert slower.index("mindspore graph tuned (0.24 times") < slower.index("jax graph tuned (0.49 times")
    assert "No difference shown: pytorch graph tuned." in slower


def test_when_compilation_pays_is_told_of_each() -> None:
    rows = [
        row("pays_after_steps", steps, f"{who} graph tuned", step_eager_ms=1.0, **shown)
        for who, steps, shown in (
            ("jax", (math.nan, math.nan), {"why": AT_ONCE}),
            ("tensorflow", (1100.0, 1300.0), {"verdict": PAYS}),
            ("pytorch", (math.nan, math.nan), {"why": NEVER}),
        )
    ]
    (sentence,) = compilation(result(*rows))
    assert all(
        said in sentence
        for said in (
            "jax graph tuned has gained from",
            "tensorflow graph tuned",
            "1,196 steps",
            "pytorch graph tuned never pays",
        )
    )


def test_where_one_overtakes_another_is_told() -> None:
    rows = [
        ratio("mindspore", 0.5, 0.6, verdict, million_multiply_adds=work, workload="conv2d")
        for verdict, work in ((FASTER, 400.0), (SLOWER, 10.0), (NO_DIFFERENCE, 100.0))
    ]
    told = overtaking("million_multiply_adds", "million", lambda row: row["workload"])
    sentence = " ".join(told(result(*rows)))
    assert "overtakes pytorch eager tuned in conv2d, between 10.0 and 400 million." in sentence
    assert "400" not in " ".join(told(result(*rows[1:])))
