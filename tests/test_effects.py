"""The sentences that answer a notebook's question: few pairs have one each, many are told by what was shown."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from frames import row

from benchlib import findings
from benchlib.stats.amortisation import AT_ONCE, NEVER, PAYS
from benchlib.stats.comparison import FASTER, NO_DIFFERENCE, SLOWER
from benchlib.stats.frame import IMPOSSIBLE
from benchlib.suite.experiments import devices, operators, payback


def ratio(subject: str, low: float, high: float, verdict: str, batch: int = 16, **more: Any) -> dict[str, Any]:
    return row("throughput_ratio", (low, high), subject, verdict=verdict, batch_size=batch, why=None, **more)


def result(*rows: dict[str, Any]) -> SimpleNamespace:
    frame = pd.DataFrame({"reason": None, "verdict": None, "why": None, "baseline_subject": None} | one for one in rows)
    filled = frame.assign(baseline_subject=frame["baseline_subject"].fillna("pytorch eager tuned"))
    return SimpleNamespace(rows=lambda quantity: filled[filled["quantity"] == quantity])


def told(*rows: dict[str, Any]) -> list[str]:
    return [*findings.effects(lambda one: f"batch {one['batch_size']}")(result(*rows))]


def test_one_ratio_is_told_with_its_interval() -> None:
    assert told(ratio("mindspore graph tuned", 0.2, 0.3, SLOWER)) == [
        "mindspore graph tuned is 0.24 times as fast as pytorch eager tuned at batch 16 (0.20 to 0.30)."
    ]
    assert told(ratio("mindspore graph tuned", 0.96, 1.08, NO_DIFFERENCE)) == [
        "mindspore graph tuned is not shown to differ from pytorch eager tuned at batch 16 (0.96 to 1.08)."
    ]


def test_of_several_sizes_the_largest_effect_is_told() -> None:
    (sentence,) = told(
        ratio("mindspore graph tuned", 0.2, 0.3, SLOWER),
        ratio("mindspore graph tuned", 0.4, 0.6, SLOWER, batch=64),
        ratio("mindspore graph tuned", 1.1, 1.3, FASTER, batch=256),
        ratio("mindspore graph tuned", 0.9, 1.2, NO_DIFFERENCE, batch=128),
    )
    assert sentence == (
        "mindspore graph tuned compared with pytorch eager tuned: faster in 1 of 4 (1.20 times as fast at batch 256, "
        "1.10 to 1.30); slower in 2 of 4 (down to 0.24 times as fast at batch 16, 0.20 to 0.30); no difference shown "
        "in 1."
    )


def test_of_many_subjects_all_are_named_by_what_was_shown_of_them() -> None:
    assert told(
        ratio("mindspore graph tuned", 0.2, 0.3, SLOWER),
        ratio("jax graph tuned", 0.4, 0.6, SLOWER),
        ratio("tensorflow graph tuned", 1.15, 1.25, FASTER),
        ratio("mxnet graph tuned", 1.4, 1.6, FASTER),
        ratio("pytorch graph tuned", 0.9, 1.2, NO_DIFFERENCE),
    ) == [
        "Faster than pytorch eager tuned at batch 16: mxnet graph tuned (1.50 times as fast, 1.40 to 1.60); tensorflow "
        "graph tuned (1.20 times as fast, 1.15 to 1.25).",
        "Slower than pytorch eager tuned at batch 16: mindspore graph tuned (0.24 times as fast, 0.20 to 0.30); jax "
        "graph tuned (0.49 times as fast, 0.40 to 0.60). No difference shown: pytorch graph tuned.",
    ]


def test_of_many_subjects_with_several_sizes_it_is_said_of_how_many() -> None:
    sentences = told(
        *(ratio("mindspore graph tuned", 0.1 * batch, 0.2 * batch, SLOWER, batch) for batch in (1, 2)),
        *(ratio("jax graph tuned", 0.6, 0.8, SLOWER, batch) for batch in (1,)),
        *(ratio("jax graph tuned", 0.9, 1.2, NO_DIFFERENCE, batch) for batch in (2,)),
        *(ratio("mxnet graph tuned", 1.2, 1.4, FASTER, batch) for batch in (1, 2)),
    )
    assert sentences[0].startswith("Faster than pytorch eager tuned: mxnet graph tuned in 2 of 2 (up to 1.30 times")
    assert "mindspore graph tuned in 2 of 2 (down to 0.14 times as fast at batch 1" in sentences[1]
    assert "jax graph tuned in 1 of 2 (0.69 times as fast at batch 1" in sentences[1]
    assert sentences[1].endswith("No difference shown: jax graph tuned in 1 of 2.")


def test_many_with_baselines_of_their_own_are_told_beside_them() -> None:
    rows = [
        row(
            "throughput_ratio",
            (2.0, 2.2),
            f"{name} graph tuned",
            f"{name} eager tuned",
            verdict=FASTER,
            baseline_subject=f"{name} eager tuned",
            batch_size=16,
        )
        for name in ("jax", "mxnet", "tensorflow")
    ]
    (sentence,) = told(*rows)
    assert sentence.startswith(
        "Faster at batch 16: jax graph tuned than jax eager tuned (2.10 times as fast, 2.00 to 2.20)"
    )


def test_nothing_is_told_of_what_could_not_be_measured() -> None:
    assert told(row("throughput_ratio", why=IMPOSSIBLE, reason="no kernel", batch_size=16)) == []


def paid(subject: str, verdict: str, steps: tuple[float, float] = (float("nan"), float("nan"))) -> dict[str, Any]:
    shown = {"verdict": verdict} if verdict == PAYS else {"why": verdict}
    return row("pays_after_steps", steps, subject, step_eager_ms=1.0, **shown)


def test_when_compilation_pays_is_told_of_each() -> None:
    rows = [
        paid("jax graph tuned", AT_ONCE),
        paid("tensorflow graph tuned", PAYS, (1100.0, 1300.0)),
        paid("pytorch graph tuned", NEVER),
    ]
    assert [*payback.answer(result(*rows))] == [
        "Compilation to a graph: jax has gained from the first step on; tensorflow has paid for itself after 1,196 "
        "steps; pytorch never pays, its steps are slower."
    ]
    assert [*payback.answer(result(ratio("jax graph tuned", 0.4, 0.6, SLOWER)))] == []


def operator(verdict: str, work: float) -> dict[str, Any]:
    sizes = json.dumps({"passes": "forward"})
    return ratio(
        "mindspore graph tuned",
        0.5,
        0.6,
        verdict,
        million_multiply_adds=work,
        hyperparameters=sizes,
        on="conv2d on random",
    )


def test_where_one_operator_overtakes_another_is_told() -> None:
    rows = [operator(FASTER, 400.0), operator(SLOWER, 10.0), operator(NO_DIFFERENCE, 100.0)]
    assert [*operators._overtaking(result(*rows))] == [
        "mindspore graph tuned overtakes pytorch eager tuned in conv2d, forward, between 10.0 and 400 million "
        "multiply-adds."
    ]
    assert [*operators._overtaking(result(*rows[1:]))] == [
        "At no size that was measured is one shown to overtake another."
    ]


@pytest.mark.parametrize(("device", "said"), [("cpu", 1), ("cuda", 0)])
def test_that_there_was_no_accelerator_is_told(device: str, said: int) -> None:
    rows = [row("steps_per_second"), row("steps_per_second") | {"device": device}]
    assert len([*devices._without_accelerator(result(*rows))]) == said
