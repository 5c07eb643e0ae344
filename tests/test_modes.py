"""The notebooks ``modes`` and ``scaling``: what pays and when, what cannot be run, what processes and their exchange
give; from measurements made up here.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from synthetic_lab import SyntheticLab, step_seconds

from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.errors import BenchlibError, Failure
from benchlib.lab import Lab
from benchlib.plotting.style import subject_looks
from benchlib.provenance import needs, nvml
from benchlib.runner import availability
from benchlib.runner.interference import NO_CPU
from benchlib.stats.amortisation import AT_ONCE, NEVER, NOT_SHOWN, PAYS, amortisation
from benchlib.stats.comparison import DISTURBED
from benchlib.stats.frame import FAILED, IMPOSSIBLE, NOT_COMPARED
from benchlib.stats.intervals import ratio_of_means
from benchlib.suite import experiments
from benchlib.suite.experiments import groups, modes, scaling
from benchlib.suite.experiments.losses import NONE_DIVERGED
from benchlib.variables import Surroundings

pytestmark = pytest.mark.usefixtures("one_kind_of_figure")

ROOT = Path(__file__).parents[1]
EAGER, GRAPH = Condition(workload="cnn"), Condition(workload="cnn", mode="graph")


TASK = {  # not the quick profile's, of which an epoch is a single step
    "workload": "cnn",
    "data": "digits",
    "hyperparameters": {"image_size": 8},
    "batch_size": 64,
    "learning_rate": 0.01,
    "train_samples": None,
    "epochs": 3,
}


def quick(notebook, **changes):
    given = experiments.values(notebook, ROOT / "parameters" / "quick" / f"{notebook}.yaml")
    if notebook == "modes":
        *subjects, last = given["subjects"]
        given |= {"tasks": [TASK], "subjects": [*subjects, {**last, "precision": "fp16-O2"}, last]}
    return {**given, **changes}


def in_graph(eager_ms, graph_ms):
    return lambda condition: (graph_ms if condition.mode == "graph" else eager_ms) / 1000


def compiling(seconds):
    return lambda condition: seconds if condition.mode == "graph" else 0.1


def compared(folder, **made_up):
    lab = SyntheticLab(folder, **made_up)
    return lab.compare([EAGER, GRAPH], precision=0.03, budget_s=60, block_s=0.1)


def test_steps_until_compilation_is_paid_for(tmp_path):
    found = amortisation(compared(tmp_path, step=in_graph(10, 6), first=compiling(4.1)), EAGER, GRAPH)
    assert found.verdict == PAYS
    assert found.steps.estimate == pytest.approx(1 + 4.0 / 0.004, rel=0.05)
    assert found.steps.low < 1001 < found.steps.high
    assert found.seconds.estimate == pytest.approx(4.1 + 1000 * 0.006, rel=0.05)
    assert [one.estimate for one in found.first] == [0.1, 4.1]
    assert [round(1000 * one.estimate) for one in found.step] == [10, 6]


def disturb_first_steps(measurements, number):
    """Those of so many processes in graph mode, which were stopped for a minute."""
    for m in [m for m in measurements if m.condition.mode == "graph"][:number]:
        m.first_step_s, m.first_step_disturbed_by = 60.0, NO_CPU


def test_first_steps_that_were_disturbed_are_not_what_compilation_costs(tmp_path):
    comparison = compared(tmp_path, step=in_graph(10, 6), first=compiling(4.1))
    disturb_first_steps(comparison.measurements, 2)
    found = amortisation(comparison, EAGER, GRAPH)
    assert (found.verdict, found.steps.processes) == (PAYS, 3)
    assert found.steps.estimate == pytest.approx(1 + 4.0 / 0.004, rel=0.05)
    disturb_first_steps(comparison.measurements, 3)
    found = amortisation(comparison, EAGER, GRAPH)
    assert found.verdict == DISTURBED
    assert [math.isnan(one.estimate) for one in (found.steps, found.seconds, *found.first)] == [True] * 4
    assert [round(1000 * one.estimate) for one in found.step] == [10, 6]


def test_modes_says_that_first_steps_were_disturbed(tmp_path):
    class Lab(SyntheticLab):
        def compare(self, *args, **asked):
            comparison = super().compare(*args, **asked)
            compiled = [m for m in comparison.measurements if m.condition.subject.startswith("pytorch graph")]
            disturb_first_steps(compiled, 3)
            return comparison

    lab = Lab(tmp_path, step=in_graph(10, 6), first=compiling(4.1), cannot=no_bf16)
    result = modes.measure(modes.Parameters(**quick("modes")), lab)
    rows = result.tables()["amortisation"][1].set_index("subject")
    assert rows["verdict"].tolist() == [DISTURBED, PAYS]
    assert rows.loc["pytorch tuned", ["first_graph_s", "pays_after_steps", "pays_after_s"]].isna().all()
    (said,) = (one for one in result.findings() if "pytorch eager tuned to graph" in one)
    assert "the first step of more than half of the processes was disturbed, so it is not said" in said
    drawn, paid, *_ = result.draw()["amortisation"][1].axes
    both = [line for line in paid.lines if len(line.get_xdata()) > 2]
    assert len({(str(line.get_color()), line.get_marker(), line.get_linestyle()) for line in both}) == 2, "told apart"
    assert [text.get_text() for text in drawn.texts] == ["disturbed"]


@pytest.mark.parametrize(
    ("eager_ms", "graph_ms", "compile_s", "verdict"),
    [(10, 12, 4.1, NEVER), (10, 10, 4.1, NOT_SHOWN), (10, 6, 0.05, AT_ONCE)],
)
def test_a_compilation_that_does_not_pay_has_no_number_of_steps(tmp_path, eager_ms, graph_ms, compile_s, verdict):
    made = compared(tmp_path, step=in_graph(eager_ms, graph_ms), first=compiling(compile_s))
    found = amortisation(made, EAGER, GRAPH)
    assert found.verdict == verdict
    assert math.isnan(found.steps.estimate)


def test_fieller_s_interval_covers_as_often_as_it_says():
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        shared = random.normal(0, 0.3, 6)
        found = ratio_of_means(6 + shared + random.normal(0, 0.5, 6), 2 + 0.3 * shared + random.normal(0, 0.2, 6))
        covered += found.low <= 3 <= found.high
    assert 0.935 < covered / 2000 < 0.965


def test_a_ratio_to_what_may_be_nothing_has_no_interval():
    found = ratio_of_means([1.0, 2.0, 3.0], [-1.0, 1.0, 0.5])
    assert math.isfinite(found.estimate)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert math.isnan(ratio_of_means([], []).estimate)
    exact = ratio_of_means([4.0, 4.0], [2.0, 2.0])
    assert (exact.estimate, exact.low, exact.high) == (2.0, 2.0, 2.0)


def no_bf16(condition):
    return condition.framework == "mindspore" and condition.precision.startswith("bf16")


def diverging(condition, seed, epoch):
    return 2.3 / epoch * (4.0 if condition.precision == "fp16-O2" else 1.0)


@pytest.fixture
def result(tmp_path):
    lab = SyntheticLab(
        tmp_path,
        step=lambda one: step_seconds(one) * (0.5 if one.mode == "graph" else 1.0),
        first=compiling(5.0),
        cannot=no_bf16,
        loss=diverging,
    )
    return modes.measure(modes.Parameters(**quick("modes")), lab)


def test_what_cannot_be_run_is_a_row_that_says_why(result):
    ratios = result.tables()["ratios"][1].set_index("subject")
    row = ratios.loc["mindspore graph bf16-O2 tuned"]
    assert (row["verdict"], row["why"]) == (
        IMPOSSIBLE,
        "worker failed in 'check': TypeError: Kernel select failed: no bf16",
    )
    assert math.isnan(row["ratio"])
    assert ratios.drop("mindspore graph bf16-O2 tuned")["ratio"].notna().all()
    assert len(ratios) == 6
    assert not len(result.failures()), "it is an answer, no failure"
    told = " ".join(result.findings())
    assert f"mindspore graph bf16-O2 tuned is not possible here: {row['why']}" in told


def test_modes_findings(result):
    told = " ".join(result.findings())
    assert "pytorch eager tuned to graph: its first step takes 5.00 s, 0.100 s in eager mode; it has paid for" in told
    assert "mindspore graph fp16-O2 tuned 4.00 [" in told or "mindspore graph fp16-O2 tuned 4.00 (no interval)" in told
    amortised = result.tables()["amortisation"][1].set_index("subject")
    assert set(amortised.index) == {"pytorch tuned", "mindspore tuned"}
    assert (amortised["verdict"] == PAYS).all()
    steps = amortised.loc["pytorch tuned"]
    assert steps["pays_after_epochs"] == pytest.approx(steps["pays_after_steps"] / (1437 // 64))
    losses = result.tables()["losses"][1].set_index("subject")
    assert losses.loc["mindspore graph fp16-O2 tuned", "loss_ratio"] == pytest.approx(4.0)
    assert math.isnan(losses.loc["pytorch eager tuned", "loss_ratio"])


def test_a_precision_that_rounds_nothing_is_told(tmp_path, result):
    lab = SyntheticLab(tmp_path / "unrounded", cannot=no_bf16, unrounded=lambda one: one.precision == "fp16-O2")
    told = modes.measure(modes.Parameters(**quick("modes")), lab).findings()
    (said,) = (one for one in told if "computes as exactly as fp32" in one)
    assert said.startswith("cnn on digits: mindspore graph fp16-O2 tuned computes")
    assert not any("as exactly as fp32" in one for one in result.findings())


def test_modes_draws_what_there_is(result):
    assert set(result.figures) == {"ratios", "amortisation", "losses"}
    texts = [
        text.get_text() for text in result.figures["ratios"][1].findobj(match=lambda one: hasattr(one, "get_text"))
    ]
    assert IMPOSSIBLE in texts


def test_losses_of_each_environment_and_lane_have_a_panel_of_their_own(tmp_path, torch_2_9):
    """The mean over seeds of what was trained in another place would be nobody's loss."""
    places = [("default", "tuned"), ("torch-2.9", "tuned"), ("default", "default")]
    subjects = [
        {"framework": "pytorch", "environment": name, "mode": "eager", "precision": precision, "lane": lane}
        for name, lane in places
        for precision in ("fp32", "bf16")
    ]
    ends = dict(zip(places, (1.0, 2.0, 3.0), strict=True))
    result = measured(tmp_path, {"subjects": subjects}, loss=lambda one, *_: ends[one.environment, one.lane])
    shown = {axes.get_title(loc="left"): axes for axes in result.figures["losses"][1].axes}
    names = ["pytorch eager tuned", "pytorch torch-2.9 eager tuned", "pytorch eager default"]
    assert list(shown) == [f"cnn on digits\n{name}" for name in names]
    for loss, axes in zip(ends.values(), shown.values(), strict=True):
        curves = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 3]
        assert len(curves) == 2, "one of each precision"
        assert all(curve == pytest.approx([loss] * 3) for curve in curves)


def measured(tmp_path, changes=None, **made_up):
    lab = SyntheticLab(tmp_path, **made_up)
    return modes.measure(modes.Parameters(**quick("modes", **(changes or {}))), lab)


NEXT = "mindspore eager tuned"
"""The next that is eager and fp32."""


def test_what_remains_is_compared_with_the_next_baseline(tmp_path):
    result = measured(
        tmp_path,
        cannot=lambda one: one.framework == "pytorch" or no_bf16(one),
        step=lambda one: 0.01 if one.mode == "graph" else 0.02,
        first=compiling(5.0),
    )
    ratios = result.tables()["ratios"][1].set_index("subject")
    assert list(ratios.index) == [one for one in _subjects() if one != NEXT]
    assert set(ratios["baseline"]) == {NEXT}
    assert ratios.loc["mindspore graph tuned", "ratio"] == pytest.approx(2.0, rel=0.05)
    assert set(result.tables()["amortisation"][1]["subject"]) == {"mindspore tuned"}
    told = " ".join(result.findings())
    assert f"throughput relative to {NEXT}: mindspore graph tuned 1.9" in told
    assert "pytorch eager tuned failed: worker failed in 'check': TypeError: Kernel select failed: no bf16" in told
    texts = [one.get_text() for one in result.figures["ratios"][1].findobj(match=lambda one: hasattr(one, "get_text"))]
    assert f"throughput relative to {NEXT}" in texts


def test_the_next_baseline_may_stand_behind_others(tmp_path):
    named = {one.subject: given for one, given in zip(_conditions(), quick("modes")["subjects"], strict=True)}
    subjects = [named[who] for who in ("pytorch eager tuned", "mindspore graph tuned", NEXT)]
    result = measured(tmp_path, {"subjects": subjects}, cannot=lambda one: one.framework == "pytorch")
    ratios = result.tables()["ratios"][1].set_index("subject")
    assert list(ratios.index) == ["pytorch eager tuned", "mindspore graph tuned"]
    assert ratios.loc["mindspore graph tuned", "baseline"] == NEXT
    assert ratios.loc["mindspore graph tuned", "ratio"] == pytest.approx(1.0, rel=0.05)


def _conditions():
    return modes.conditions(modes.Parameters(**quick("modes")))


def _subjects():
    return [condition.subject for condition in _conditions()]


def test_without_any_baseline_each_row_says_why(tmp_path):
    result = measured(tmp_path, cannot=lambda one: one.mode == "eager" and one.precision == "fp32")
    ratios = result.tables()["ratios"][1].set_index("subject")
    assert list(ratios.index) == _subjects()
    assert ratios.loc[NEXT, "verdict"] == IMPOSSIBLE
    row = ratios.loc["mindspore graph tuned"]
    assert row["verdict"] == NOT_COMPARED
    assert row["why"] == (
        "no baseline can be run here: pytorch eager tuned: worker failed in 'check': TypeError: Kernel select failed: "
        "no bf16"
    )
    assert set(result.figures) == {"ratios"}
    assert set(result.tables()) == {"ratios"}


def refusal(request, exception, message):
    sentence = f"worker failed in {request!r}: {exception}: {message}"
    return Failure(sentence=sentence, printed="x", request=request, exception=exception, message=message)


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (refusal("check", "TypeError", "no bf16"), True),
        (refusal("open", "BenchlibError", "device 'npu': mindspore 2.9.0 finds no Ascend here"), True),
        (refusal("build", "BenchlibError", "cnn: weight 'fc' is missing"), False),
        (refusal("first_step", "OutOfMemoryError", "CUDA ran out"), False),
        (refusal("first_step", "OutOfMemoryError", "CUDA out of memory"), False),
        (refusal("check", "RuntimeError", "DefaultCPUAllocator: can't allocate memory"), False),
        (Failure(sentence="worker died in 'check' (signal SIGKILL)", printed="TypeError: no bf16"), False),
        (Failure(sentence="worker hung in 'check': silent for 900 s", printed=""), False),
        (Failure(sentence="worker talked rubbish in 'check': {'x", printed=""), False),
        (Failure(sentence="worker could not be started: OSError: no space left"), False),
    ],
)
def test_only_a_framework_that_refuses_has_answered(failure, answer, tmp_path):
    who = "mindspore graph fp16-O2 tuned"
    result = measured(tmp_path, cannot=lambda one: failure if one.precision == "fp16-O2" else False)
    row = result.tables()["ratios"][1].set_index("subject").loc[who]
    assert row["verdict"] == (IMPOSSIBLE if answer else FAILED)
    assert row["why"] == failure.sentence
    failed = result.failures()
    assert len(failed) == (0 if answer else 1)
    assert failed["crashed"].all()
    assert not len(failed) or failed["file"].iloc[0].startswith("certificates/")
    told = " ".join(result.findings())
    assert f"{who} {'is not possible here' if answer else 'failed'}: {failure.sentence}" in told
    measured_too = result.tables()["ratios"][1].set_index("subject").loc["mindspore graph tuned"]
    assert measured_too["ratio"] > 0, "the others are measured"


def test_pytorch_on_the_cpu_is_always_possible(tmp_path):
    result = measured(tmp_path, cannot=lambda one: one.framework == "pytorch")
    assert result.failures()["label"].tolist() == [str(_conditions()[0])]


def test_what_crashed_in_the_gate_is_tried_again_by_the_next_run(tmp_path, monkeypatch):
    tried = []

    def dies(conditions, inputs, patience_s):
        every = list(conditions)
        tried.append(len(every))
        died = Failure(sentence="worker died in 'check' (signal SIGKILL)", printed="")
        yield from (gate.Gated(one, died, died, {}, Surroundings(), inputs.prepare(one, inputs)) for one in every)

    monkeypatch.setattr(gate, "run", dies)
    parameters = modes.Parameters(**quick("modes"))
    for _ in range(2):
        assert modes.measure(parameters, Lab(outputs=tmp_path)).summary()["crashed"] == len(result_of_gate(parameters))
    assert len(tried) == 2


def test_mixed_precision_of_a_pytorch_that_failed_in_fp32_is_not_called_impossible(tmp_path, monkeypatch):
    def refuses(conditions, inputs, patience_s):
        refused = refusal("build", "TypeError", "no")
        yield from (
            gate.Gated(one, refused, refused, {}, Surroundings(), inputs.prepare(one, inputs)) for one in conditions
        )

    monkeypatch.setattr(gate, "run", refuses)
    result = modes.measure(modes.Parameters(**quick("modes")), Lab(outputs=tmp_path))
    verdicts = result.tables()["ratios"][1].set_index("subject")["verdict"]
    assert {who for who, verdict in verdicts.items() if verdict == FAILED} == {
        "pytorch eager tuned",
        "pytorch eager bf16 tuned",  # its certificate is that of fp32
    }
    assert len(result.failures()) == 1


def result_of_gate(parameters):
    """What is certified: mixed precision only after fp32, whose failure is told instead."""
    return {gate.gated(one.but(precision="fp32")) for one in modes.conditions(parameters)}


def test_amortisation_is_of_models_that_are_the_same(tmp_path):
    made_up = {"step": in_graph(20, 10), "first": compiling(5.0)}
    result = measured(tmp_path, differs=lambda one: one.framework == "mindspore" and one.mode == "graph", **made_up)
    assert set(result.tables()["amortisation"][1]["subject"]) == {"pytorch tuned"}
    assert "mindspore graph tuned" not in set(result.tables()["within"][1]["subject"])
    told = " ".join(result.findings())
    assert "mindspore eager tuned to graph: no ratio: the models differ (see the certificates), so it is not" in told
    assert len(result.figures["amortisation"][1].axes) == 1
    all_differ = measured(tmp_path, differs=lambda one: one.mode == "graph", **made_up)
    assert "amortisation" not in {**all_differ.tables(), **all_differ.figures}


def test_where_the_baseline_differs_nothing_is_timed_and_the_others_say_so(tmp_path):
    made_up = {"step": in_graph(20, 10), "first": compiling(5.0)}
    result = measured(tmp_path, differs=lambda one: one.framework == "pytorch", **made_up)
    assert "amortisation" not in result.tables()
    assert "no ratio: the models differ" in " ".join(result.findings())


def overflowing(condition, seed, epoch):
    lost = {("fp32", 1): 2, ("bf16", 2): 3}.get((condition.precision, seed))
    return math.nan if lost and epoch >= lost else (2.0 if condition.precision == "fp32" else 3.0) / epoch


def test_runs_that_diverged_are_told_and_leave_the_others(tmp_path):
    result = measured(tmp_path, {"seeds": [0, 1, 2, 3]}, loss=overflowing)
    losses = result.tables()["losses"][1].set_index("subject")
    exact, mixed = losses.loc["pytorch eager tuned"], losses.loc["pytorch eager bf16 tuned"]
    assert (exact["diverged"], exact["runs"]) == ("1 of 4 seeds (first in epoch 2)", 3)
    assert (mixed["diverged"], mixed["runs"]) == ("1 of 4 seeds (first in epoch 3)", 3)
    assert exact["loss"] == pytest.approx(2 / 3)
    assert mixed["loss_ratio"] == pytest.approx(1.5), "of the seeds that are left of both"
    assert losses.loc["mindspore graph fp16-O2 tuned", "diverged"] == NONE_DIVERGED
    told = " ".join(result.findings())
    assert "pytorch eager tuned diverged in 1 of 4 seeds (first in epoch 2)." in told
    assert "pytorch eager bf16 tuned 1.50" in told
    assert "losses" in result.figures


def test_where_every_run_diverged_that_is_what_is_told(tmp_path):
    result = measured(tmp_path, loss=lambda one, seed, epoch: math.inf if one.precision == "bf16" else 1.0)
    row = result.tables()["losses"][1].set_index("subject").loc["pytorch eager bf16 tuned"]
    assert (row["diverged"], row["runs"]) == ("1 of 1 seeds (first in epoch 1)", 0)
    told = " ".join(result.findings())
    assert "pytorch eager bf16 tuned diverged in 1 of 1 seeds" in told
    assert "bf16 tuned –" not in told


def test_every_condition_is_trained_where_that_is_asked_for(tmp_path):
    some, every = (
        measured(tmp_path / kind, {"trained": kind}).tables()["losses"][1]["subject"].tolist()
        for kind in ("mixed", "all")
    )
    everything = [one.subject for one in _conditions()]
    assert every == everything
    assert set(everything) - set(some) == {"pytorch graph tuned", "mindspore eager tuned"}


def test_epochs_until_it_pays_need_no_training_run(tmp_path):
    two = [one for one in quick("modes")["subjects"] if one["framework"] == "pytorch" and one["precision"] == "fp32"]
    result = measured(tmp_path, {"subjects": two}, step=in_graph(20, 10), first=compiling(5.0))
    assert "losses" not in result.tables()
    row = result.tables()["amortisation"][1].iloc[0]
    assert row["pays_after_epochs"] == pytest.approx(row["pays_after_steps"] / (1437 // 64))


def test_each_compiled_mode_of_a_framework_is_set_beside_its_eager_mode(tmp_path, monkeypatch):
    monkeypatch.setattr(availability, "available", lambda framework, device, environment: None)
    torch = [{"framework": "pytorch", "mode": "eager", "precision": "fp32", "lane": "tuned"}]
    home = {
        "framework": "tensorflow",
        "environment": "tensorflow",
        "precision": "fp32",
        "lane": "tuned",
        "if_there": True,
    }
    asked = {"subjects": [*torch, *({**home, "mode": mode} for mode in ("eager", "graph", "graph-xla"))]}
    factor = {"eager": 1.0, "graph": 0.5, "graph-xla": 2.0}
    first = compiling(5.0)
    result = measured(tmp_path, asked, step=lambda one: step_seconds(one) * factor[one.mode], first=first)
    within = result.tables()["within"][1].set_index("subject")
    assert within["within_ratio"].to_dict() == pytest.approx(
        {"tensorflow graph tuned": 2.0, "tensorflow graph-xla tuned": 0.5}, rel=0.1
    )
    assert {*result.tables()["amortisation"][1]["subject"]} == {"tensorflow tuned", "tensorflow graph-xla tuned"}
    assert any("tensorflow eager tuned to graph-xla: " in one and "never pays" in one for one in result.findings())
    looks = subject_looks(result.frame.assign(hue=result.frame["subject"]))
    assert len(set(looks.values())) == len(looks) == 4


def test_tasks_that_differ_in_batch_only_have_names_of_their_own(tmp_path):
    other = {**TASK, "hyperparameters": {"image_size": 16}}
    result = measured(tmp_path, {"tasks": [TASK, {**TASK, "batch_size": 32}, other]})
    names = ["batch 64", "batch 32", "batch 64"]
    sizes = ["image_size=8", "image_size=8", "image_size=16"]
    assert list(dict.fromkeys(result.frame["task"])) == [
        f"cnn on digits, {size}, {batch}" for size, batch in zip(sizes, names, strict=True)
    ]
    result.summary()
    macros = (tmp_path / "tables" / "modes_macros.tex").read_text(encoding="utf-8")
    assert macros.count("{\\benchlibModesRatios") == 2 * result.tables()["ratios"][1]["ratio"].notna().sum() > 0


WRONG = [
    (
        modes,
        "subjects",
        [{**quick("modes")["subjects"][1]}, {**quick("modes")["subjects"][0]}],
        "must be eager and fp32",
    ),
    (modes, "subjects", [*quick("modes")["subjects"], {**quick("modes")["subjects"][0], "precision": "bf61"}], "bf16"),
    (
        modes,
        "subjects",
        [*quick("modes")["subjects"], {**quick("modes")["subjects"][0], "precision": "fp16-O2"}],
        "precision of pytorch",
    ),
    (modes, "trained", "some", "'all' or 'mixed'"),
    (modes, "tasks", [{**quick("modes")["tasks"][0], "epochs": None}], "of cnn give a number"),
    (scaling, "world_sizes", [1], "1 is the baseline anyway"),
    (scaling, "world_sizes", [3], "3 processes cannot share it evenly"),
    (scaling, "workload", "linear", "it trains nothing"),
]


@pytest.mark.parametrize(("module", "key", "value", "said"), WRONG)
def test_wrong_parameters_are_refused(module, key, value, said):
    with pytest.raises(BenchlibError, match=said):
        module.Parameters(**quick(module.__name__.rpartition(".")[2], **{key: value}))


def in_groups(condition):
    """Two processes are 1.6 times as fast as one, of which a fifth is communication; MindSpore takes twice as long."""
    seconds = 0.01 * condition.batch_size / 64 / (condition.threads or 1) ** 0.5
    seconds *= 2 if condition.framework == "mindspore" else 1
    if condition.world_size == 1:
        return seconds
    return seconds / (0.8 * condition.world_size) * (1.0 if condition.communication else 0.8)


PYTORCH = {"framework": "pytorch", "mode": "eager", "lane": "tuned"}
MINDSPORE = {"framework": "mindspore", "mode": "graph", "lane": "tuned"}


def scaled(tmp_path, monkeypatch, places=2, lab=None, **changes):
    """The result of quick's parameters with some changes, on so many cores."""
    monkeypatch.setattr(scaling, "_places", lambda device: places)
    lab = lab or SyntheticLab(tmp_path, step=in_groups, spread=0.002)
    return scaling.measure(scaling.Parameters(**quick("scaling", **{"subjects": [PYTORCH], **changes})), lab)


def test_scaling_gives_efficiency_and_the_share_of_communication(tmp_path, monkeypatch):
    result = scaled(tmp_path, monkeypatch, world_sizes=[2, 4])
    rows = result.tables()["scaling"][1].set_index("scaling")
    assert list(rows.index) == [groups.ONE, "one process with 2 threads", groups.STRONG, groups.WEAK]
    strong = rows.loc[groups.STRONG]
    assert (strong["world_size"], strong["threads"], strong["batch_size"]) == (2, 1, 64)
    assert strong["ratio"] == pytest.approx(1.6, rel=0.02)
    assert strong["samples_per_second"] == pytest.approx(1.6 * 6400, rel=0.02)
    assert strong["samples_per_second_low"] < 1.6 * 6400 < strong["samples_per_second_high"]
    assert strong["efficiency_percent"] == pytest.approx(80, rel=0.02)
    assert strong["communication_percent"] == pytest.approx(20, abs=1)
    assert strong["communication_percent_low"] < 20 < strong["communication_percent_high"]
    assert strong["same_threads_ratio"] == pytest.approx(1.6 / 2**0.5, rel=0.02)
    assert strong["control_low"] < 1 < strong["control_high"]
    assert rows.loc[groups.WEAK, "batch_size"] == 128
    assert math.isnan(rows.loc[groups.WEAK, "communication_percent"])
    one = rows.loc[groups.ONE]
    assert (one["verdict"], one["threads"], one["processes"]) == (groups.BASELINE, 1, 5)
    assert one["samples_per_second"] == pytest.approx(6400, rel=0.02)
    assert math.isnan(one["ratio"])
    assert rows.loc["one process with 2 threads", "threads"] == 2
    assert "subjects" not in result.tables(), "there is but one"
    told = " ".join([*result.findings(), *result.notes])
    assert "communication takes 20" in told
    assert re.search(r"relative to one process with 2 threads: 1\.1\d* \[.*?\], faster", told)
    assert "Not measured: 4 processes, because there are 2 cores here." in told
    assert set(result.figures) == {"scaling"}
    assert result.summary()["failures"] == 0


def test_each_framework_has_its_own_baseline_and_both_are_compared(tmp_path, monkeypatch):
    lab = SyntheticLab(tmp_path, step=in_groups, spread=0.002)
    result = scaled(tmp_path, monkeypatch, lab=lab, subjects=[PYTORCH, MINDSPORE])
    assert len(lab.asked) == 1, "together, so that the ratio between frameworks is paired"
    rows = result.tables()["scaling"][1].set_index(["subject", "scaling"])
    for subject, one in (("pytorch eager tuned", 6400), ("mindspore graph tuned", 3200)):
        assert rows.loc[(subject, groups.ONE), "samples_per_second"] == pytest.approx(one, rel=0.02)
        assert rows.loc[(subject, groups.STRONG), "ratio"] == pytest.approx(1.6, rel=0.02)
    frameworks = result.tables()["subjects"][1].set_index("scaling")
    assert list(frameworks.index) == [groups.ONE, "one process with 2 threads", groups.STRONG, groups.WEAK]
    assert set(frameworks["subject"]) == {"mindspore graph tuned"}
    assert set(frameworks["baseline"]) == {"pytorch eager tuned"}
    assert frameworks["ratio"].to_numpy() == pytest.approx(0.5, rel=0.02)
    assert (frameworks["ratio_low"] < frameworks["ratio_high"]).all()
    assert set(frameworks["verdict"]) == {"slower"}
    told = " ".join(result.findings())
    assert "strong, 2 processes, mindspore graph tuned relative to pytorch eager tuned: 0." in told
    assert "(A/A" not in told.partition("mindspore graph tuned, strong, 2 processes: ")[2].partition(";")[0], (
        "the control is of PyTorch"
    )
    result.summary()
    macros = (tmp_path / "tables" / "scaling_macros.tex").read_text(encoding="utf-8")
    for name in ("Subjects", "Scaling"):
        shown = result.tables()[name.lower()][1]["ratio"].notna().sum()
        assert macros.count(f"{{\\benchlibScaling{name}") == 2 * shown > 0, "every number has a name of its own"


def test_the_threads_of_each_group_are_those_of_a_process_of_its_own(tmp_path, monkeypatch):
    result = scaled(tmp_path, monkeypatch, places=8, world_sizes=[2, 4, 8])
    rows = result.tables()["scaling"][1]
    groups = rows[rows["world_size"] > 1].set_index(["scaling", "world_size"])
    assert len(groups) == 6
    for (_, count), row in groups.iterrows():
        assert row["same_threads_ratio"] == pytest.approx(0.8 * count / count**0.5, rel=0.02)
        assert row["same_threads_ratio_low"] < row["same_threads_ratio_high"]
    assert "one process with 8 threads: throughput ratio 2.8" in " ".join(result.findings())


def test_findings_say_how_many_threads_the_baseline_has(tmp_path, monkeypatch):
    told = " ".join(scaled(tmp_path, monkeypatch, places=8, world_sizes=[2, 4]).findings())
    assert "pytorch eager tuned, one process with 2 threads: 9,0" in told
    assert "relative to one process with 2 threads; efficiency 79.8" in told
    assert "one process with 4 threads: throughput ratio" in told
    assert "1 thread;" not in told


@pytest.mark.parametrize(
    ("trouble", "said"),
    [("fails", "no ratio: not measured (see what failed)"), ("differs", "no ratio: the models differ")],
)
def test_a_group_without_a_ratio_says_why(trouble, said, tmp_path, monkeypatch):
    lab = SyntheticLab(tmp_path, step=in_groups, **{trouble: lambda one: one.world_size == 2})
    result = scaled(tmp_path, monkeypatch, lab=lab, subjects=[PYTORCH, MINDSPORE])
    told = [one for one in result.findings() if "2 processes" in one]
    assert len(told) == 6, "strong and weak, of each subject and between them"
    assert all(said in one for one in told)
    assert not any("efficiency" in one or "communication" in one for one in told)
    groups = result.tables()["scaling"][1].query("world_size == 2")
    for name in ("ratio", "efficiency_percent", "communication_percent", "same_threads_ratio"):
        assert groups[name].isna().all()
    assert set(result.figures) == {"scaling"}


def test_where_the_baselines_framework_differs_no_group_has_an_efficiency(tmp_path, monkeypatch):
    lab = SyntheticLab(tmp_path, step=in_groups, differs=lambda one: one.framework == "pytorch")
    rows = scaled(tmp_path, monkeypatch, lab=lab, subjects=[PYTORCH, MINDSPORE]).tables()["scaling"][1]
    assert rows["efficiency_percent"].isna().all()


def test_what_communication_takes_is_not_known_where_the_processes_without_it_failed(tmp_path, monkeypatch):
    lab = SyntheticLab(tmp_path, step=in_groups, fails=lambda one: not one.communication)
    told = " ".join(scaled(tmp_path, monkeypatch, lab=lab).findings())
    assert "is not known: the same processes without it failed, slow down, or were disturbed." in told


def test_the_first_sentence_is_of_the_most_processes(tmp_path, monkeypatch):
    first, *_, last = scaled(tmp_path, monkeypatch, lab=SyntheticLab(tmp_path, step=in_groups)).findings()
    assert first.startswith("pytorch eager tuned, strong, 2 processes: throughput ratio 1.6")
    assert "one process" in last


def test_a_baseline_that_failed_is_told(tmp_path, monkeypatch):
    lab = SyntheticLab(tmp_path, step=in_groups, fails=lambda one: one.framework == "pytorch" and one.threads == 1)
    result = scaled(tmp_path, monkeypatch, lab=lab, subjects=[PYTORCH, MINDSPORE])
    told = " ".join(result.findings())
    assert "pytorch eager tuned, one process with 1 thread: no throughput: it failed" in told
    assert "pytorch eager tuned, one process with 2 threads: no ratio: not measured" in told
    assert "mindspore graph tuned, strong, 2 processes: throughput ratio 1.6" in told
    assert set(result.figures) == {"scaling"}


def on_gpus(monkeypatch, count):
    monkeypatch.setattr(nvml, "gpus", lambda: ({"name": "a GPU"},) * count)
    lacking = {"mindspore": ["libcudnn.so.8"]}
    monkeypatch.setattr(needs, "_lacking", lambda need, framework, environment: iter(lacking.get(framework, ())))


def test_a_framework_that_cannot_use_the_device_is_a_row_that_says_why(tmp_path, monkeypatch):
    on_gpus(monkeypatch, 2)
    full = experiments.values("scaling", ROOT / "parameters" / "full" / "scaling.yaml")
    asked = quick("scaling", device="cuda", subjects=full["subjects"])
    lab = SyntheticLab(tmp_path, step=in_groups)
    result = scaling.measure(scaling.Parameters(**asked), lab)
    assert {one.framework for one in lab.asked[0][1]} == {"pytorch"}
    rows = result.tables()["scaling"][1]
    missing = rows[rows["subject"] == "mindspore graph tuned"]
    assert set(missing["verdict"]) == {"not possible here"}
    assert all("mindspore's plugin for GPUs lacks libcudnn.so.8" in why for why in missing["why"])
    assert rows.loc[rows["subject"] == "pytorch eager tuned", "why"].isna().all()
    assert "same_threads_ratio" not in rows, "that is of the CPU"
    told = result.findings()
    assert any(one.startswith("mindspore graph tuned is not possible here: device 'cuda': mindspore's") for one in told)
    assert any("pytorch eager tuned, strong, 2 processes: throughput ratio" in one for one in told)
    assert result.summary()["failures"] == 0


def test_on_one_gpu_what_cannot_use_it_is_told_too(tmp_path, monkeypatch):
    on_gpus(monkeypatch, 1)
    asked = quick("scaling", device="cuda", subjects=[PYTORCH, MINDSPORE])
    result = scaling.measure(scaling.Parameters(**asked), SyntheticLab(tmp_path))
    (told,) = result.findings()
    assert told.startswith("mindspore graph tuned is not possible here")
    assert set(result.tables()) == {"processes"}


def test_a_device_that_no_subject_can_use_is_refused(monkeypatch):
    on_gpus(monkeypatch, 0)
    made = scaling.conditions(scaling.Parameters(**quick("scaling", device="cuda")))
    with pytest.raises(BenchlibError, match="shows no GPU"):
        availability.require(made)


def test_on_one_core_there_is_nothing_to_scale_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "_places", lambda device: 1)
    result = scaling.measure(scaling.Parameters(**quick("scaling")), SyntheticLab(tmp_path))
    assert "Not measured: 2 processes, because there is 1 core here." in result.notes
    assert (set(result.tables()), result.findings(), result.figures) == ({"processes"}, [], {})
    assert result.summary()["failures"] == 0


def test_on_a_gpu_each_process_has_one(monkeypatch):
    on_gpus(monkeypatch, 4)
    parameters = scaling.Parameters(**quick("scaling", device="cuda", subjects=[PYTORCH], world_sizes=[2, 4, 8]))
    made = scaling.conditions(parameters)
    assert {one.world_size for one in made} == {1, 2, 4}
    assert {one.threads for one in made} == {max(1, len(os.sched_getaffinity(0)) // 4)}, "declared, for each the same"
    assert sorted(one.batch_size for one in made if one.communication) == [64, 64, 64, 128, 256]
