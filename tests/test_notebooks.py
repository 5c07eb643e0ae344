"""The notebooks: what each compares, trains and shows, of measurements that are made up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from studies import measured, planned, shown
from synthetic_lab import SyntheticLab, step_seconds

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError, Failure
from benchlib.runner import availability
from benchlib.stats.amortisation import PAYS
from benchlib.stats.frame import IMPOSSIBLE

pytestmark = pytest.mark.usefixtures("one_kind_of_figure")

CNN = {"workload": "cnn", "data": "digits", "hyperparameters": {"image_size": 8}, "batch_size": 64}
CNN |= {"learning_rate": 0.01, "train_samples": None}


def figures_of(made: Any) -> list[str]:
    return [Path(file).stem for file in made.summary()["figures"]]


def test_frameworks_are_compared_and_trained_by_task(tmp_path: Path) -> None:
    def metric(condition: Condition, seed: int, epoch: int) -> float:
        arrives = {"pytorch": (2, 3, 99), "mindspore": (5, 99, 99)}[condition.framework][seed]
        return 0.9 if epoch >= arrives else (0.6, 0.7, 0.8)[seed] - 0.03 * (condition.framework == "mindspore")

    small = {**CNN, "epochs": 4, "most_epochs": 8, "threshold": 0.85}
    large = {**small, "hyperparameters": {"image_size": 16}, "batch_size": 32, "threshold": None}
    lab = SyntheticLab(tmp_path, metric=metric, spread=1e-9)
    made = measured("frameworks", lab, tasks=[small, large], seeds=[0, 1, 2])
    tables = shown(made)
    names = [f"cnn on digits, image size {size}, batch size {batch}" for size, batch in ((8, 64), (16, 32))]
    names = [f"{name}, threshold {threshold}" for name, threshold in zip(names, (0.85, None), strict=True)]
    assert all(list(dict.fromkeys(table["task"])) == names for table in tables.values())
    learned = tables["learned"][tables["learned"]["task"] == names[0]]
    assert learned["reached"].tolist() == ["2 of 3", "1 of 3"]
    assert learned["epochs_to_threshold"].tolist() == pytest.approx([3, math.nan], nan_ok=True)
    assert learned["epoch_ratio"].tolist() == pytest.approx([math.nan, 1 / 3], nan_ok=True), "as fast as steps here"
    first = tables["first_epochs"].iloc[0]
    assert (first["first_epoch_alone"], first["first_epoch"] > 1) == (pytest.approx(1), True)
    assert tables["metrics"]["difference"].notna().tolist() == [False, True] * 2
    assert [name.removeprefix("frameworks_") for name in figures_of(made)] == ["ratios", "survival", "curves"]
    without = measured("frameworks", SyntheticLab(tmp_path), tasks=[large], seeds=[0])
    shown(without)
    assert "frameworks_survival" not in figures_of(without), "there is no threshold"


MODES = [("pytorch", "eager"), ("pytorch", "graph"), ("mindspore", "eager"), ("mindspore", "graph")]
BERT = {"workload": "bert", "data": "pydoc"}
OF_MODES = [{"framework": name, "mode": mode, "precision": "fp32", "lane": "tuned"} for name, mode in MODES]
MIXED = [{**OF_MODES[0], "precision": "bf16"}, {**OF_MODES[3], "precision": "fp16-O2"}]
SIGNAL = Failure(sentence="worker died in 'check' (signal SIGKILL)", printed="TypeError: no bf16")


def test_modes_are_compared_with_eager_mode_and_precisions_with_fp32(tmp_path: Path) -> None:
    def loss(condition: Condition, seed: int, epoch: int) -> float:
        lost = condition.precision == "bf16" and seed == 1 and epoch >= 2
        return math.nan if lost else 2.0 / epoch * (1.5 if condition.precision == "bf16" else 1)

    lab = SyntheticLab(
        tmp_path,
        step=lambda one: step_seconds(one) * (0.5 if one.mode == "graph" else 1),
        first=lambda one: 5.0 if one.mode == "graph" else 0.1,
        loss=loss,
        cannot=lambda one: one.precision == "fp16-O2",
        unrounded=lambda one: one.precision == "bf16",
    )
    made = measured(
        "modes", lab, tasks=[{**CNN, "epochs": 3}], subjects=[*OF_MODES, *MIXED], devices=["cpu"], seeds=[0, 1]
    )
    tables = shown(made)
    ratios = tables["ratios"].set_index("subject")
    row = ratios.loc["mindspore graph fp16-O2 tuned"]
    assert (row["verdict"], row["why"].endswith("TypeError: Kernel select failed: no bf16")) == (IMPOSSIBLE, True)
    assert ratios["ratio"].notna().sum() == len(ratios) - 1 == 4
    assert not len(made.failures()), "it is an answer, no failure"
    within = tables["within"].set_index("subject")["within_ratio"].to_dict()
    assert within == pytest.approx(
        {"pytorch graph tuned": 2, "mindspore graph tuned": 2, "pytorch eager bf16 tuned": 1}, rel=0.1
    )
    paid = tables["amortisation"].set_index("subject")
    assert (list(paid.index), set(paid["verdict"])) == (["pytorch graph tuned", "mindspore graph tuned"], {PAYS})
    assert paid["pays_after_epochs"].to_list() == pytest.approx((paid["pays_after_steps"] / (1437 // 64)).to_list())
    losses = tables["losses"].set_index("subject").loc["pytorch eager bf16 tuned"]
    assert (losses["diverged"], losses["runs"]) == (1, 1)
    assert losses["loss_ratio"] == pytest.approx(1.5), "of the seeds that are left of both"
    assert [name.removeprefix("modes_") for name in figures_of(made)] == ["ratios", "amortisation", "losses"]
    told = made.summary()["findings"]
    assert any("pytorch eager bf16 tuned computes cnn as exactly as fp32" in one for one in told)
    assert any("mindspore graph fp16-O2 tuned is not possible here" in one for one in told)


def test_of_modes_what_crashed_is_no_answer_and_the_first_that_is_there_is_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "devices", lambda within: ["cpu", "npu"])
    missing = lambda framework, device, environment: None if (framework, device) != ("pytorch", "npu") else "no plug-in"  # noqa: E731
    monkeypatch.setattr(availability, "available", missing)
    lab = SyntheticLab(tmp_path, cannot=lambda one: SIGNAL if one.mode == "graph" and one.device == "cpu" else False)
    made = measured("modes", lab, tasks=[{**CNN, "epochs": None}], subjects=OF_MODES)
    assert [str(group[0].subject) for group in made.groups] == ["pytorch eager tuned", "mindspore eager tuned"]
    assert made.failures()["failure"].str.contains(SIGNAL.sentence, regex=False).tolist() == [True, True]
    assert made.summary()["crashed"] == 2
    assert "Not measured in pytorch: no plug-in; run again after that." in made.notes
    assert set(shown(made)["ratios"]["task"]) == {"cnn on digits, cpu", "cnn on digits, npu"}


def in_groups(condition: Condition) -> float:
    """Two processes are 1.6 times as fast as one, of which a fifth is communication; MindSpore takes twice as long."""
    seconds = 0.01 * condition.batch_size / 64 / (condition.threads or 1) ** 0.5
    seconds *= 2 if condition.framework == "mindspore" else 1
    if condition.world_size == 1:
        return seconds
    return seconds / (0.8 * condition.world_size) * (1.0 if condition.communication else 0.8)


def test_scaling_gives_efficiency_and_the_share_of_communication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "places", lambda device: 4)
    subjects = [{**OF_MODES[0]}, {**OF_MODES[3]}]
    subjects = [{name: one[name] for name in ("framework", "mode", "lane")} for one in subjects]
    lab = SyntheticLab(tmp_path, step=in_groups, spread=0.002)
    made = measured("scaling", lab, subjects=subjects, world_sizes=[2, 4, 8])
    assert len(made.groups) == 1, "together, so that the ratio between frameworks is paired"
    assert {(one.world_size, one.threads) for one in made.every} == {(1, 1), (1, 2), (1, 4), (2, 1), (4, 1)}
    tables = shown(made)
    rows = tables["scaling"].set_index(["subject", "scaling"])
    strong = rows.loc[("mindspore graph tuned", "strong, 2 processes")]
    assert (strong["batch_size"], strong["ratio"]) == (64, pytest.approx(1.6, rel=0.02))
    assert strong["efficiency_percent"] == pytest.approx(80, rel=0.02)
    assert strong["communication_percent"] == pytest.approx(20, abs=1)
    assert strong["same_threads_ratio"] == pytest.approx(1.6 / 2**0.5, rel=0.02)
    assert rows.loc[("mindspore graph tuned", "weak, 2 processes"), "batch_size"] == 128
    assert tables["subjects"]["ratio"].to_numpy() == pytest.approx(0.5, rel=0.02)
    assert len(tables["subjects"]) == 1 + 2 * 3
    assert figures_of(made) == ["scaling_scaling"]
    told = made.summary()["findings"]
    assert "the exchange takes 20" in told[0]
    assert told[-1] == "Not measured: 8 processes: no place here."
    monkeypatch.setattr(availability, "places", lambda device: 1)
    alone = measured("scaling", SyntheticLab(tmp_path))
    assert set(shown(alone)) == {"processes"}
    assert figures_of(alone) == []


@pytest.mark.parametrize("differs", [False, True])
def test_equivalence_shows_every_check_of_a_certificate(tmp_path: Path, differs: bool) -> None:
    subjects = [{"framework": "mindspore", "mode": mode, "lane": "tuned"} for mode in ("eager", "graph")]
    made = measured("equivalence", SyntheticLab(tmp_path, differs=lambda one: differs), subjects=subjects)
    tables = shown(made)
    assert tables["certificates"]["trials"].tolist() == [2] * 2 * len(made.every)
    models = list(dict.fromkeys(one.workload for one in made.every))
    assert len(models) == 12
    expected = [(name, *pair) for name in models for pair in workloads.load(name).settled.items()]
    assert list(tables["settled"].itertuples(index=False, name=None)) == expected
    assert "conv_dropout" in set(tables["neutralised"]["what"])
    assert figures_of(made) == ["equivalence_differences"]
    assert made.summary()["findings"][0].startswith(f"{0 if differs else 24} of the 24 models")


def test_devices_are_compared_with_the_whole_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def available(framework: str, device: str, environment: str) -> str | None:
        return None if (framework, device) in {("pytorch", "cuda"), (framework, "cpu")} else f"no {device}"

    subjects = [{name: one[name] for name in ("framework", "mode", "lane")} for one in (OF_MODES[0], OF_MODES[3])]
    without = measured("devices", SyntheticLab(tmp_path), subjects=subjects)
    assert set(shown(without)) == {"indicators", "ratios", "processes"}
    assert without.summary()["findings"][0].endswith("everything ran on the CPU.")
    assert figures_of(without) == ["devices_indicators"]
    monkeypatch.setattr(availability, "available", available)
    made = [
        [(one.framework, one.device, one.threads) for one in group]
        for group in planned("devices", subjects=subjects).groups
    ]
    assert made == [
        [("pytorch", "cpu", None), ("pytorch", "cuda", None), ("pytorch", "cpu", 1)],
        [("mindspore", "cpu", None), ("mindspore", "cpu", 1)],
    ]


def test_of_operators_one_thing_is_varied_at_a_time(tmp_path: Path) -> None:
    sizes = {"hyperparameters": {"in_channels": 64, "out_channels": 16, "image_size": 16}, "batch_size": 64}
    operator = {"workload": "conv2d", **sizes, "vary": {"batch_size": [8, 64], "in_channels": [4]}}
    made = measured("operators", SyntheticLab(tmp_path), operators=[operator])
    asked = [(one.batch_size, one.hyperparameters["in_channels"]) for one, _ in made.groups]
    assert asked == [(64, 64), (8, 64), (64, 4)], "the base once"
    assert shown(made)["ratios"]["operator"].tolist() == ["conv2d, forward+backward"] * 3
    assert {name.removeprefix("operators_") for name in figures_of(made)} == {"ratios", "peak"}


def test_of_learning_rates_a_run_that_does_not_reach_the_threshold_is_shown(tmp_path: Path) -> None:
    def metric(condition: Condition, seed: int, epoch: int) -> float:
        return 0.7 if condition.learning_rate == 0.01 or (seed == 0 and epoch == 5) else 0.3

    rates = {"framework": "pytorch", "mode": "eager", "lane": "tuned", "learning_rates": [0.001, 0.01]}
    limits = {"seeds": [0, 1, 2], "epochs": 4, "most_epochs": 8, "threshold": 0.6}
    made = measured("learning_rate", SyntheticLab(tmp_path, metric=metric), subjects=[rates], **limits)
    table = shown(made)["thresholds"]
    assert table["reached"].tolist() == ["1 of 3", "3 of 3"]
    assert table["epochs_to_threshold"].tolist() == pytest.approx([math.nan, 1], nan_ok=True)
    assert any("soonest at learning rate 0.01, after 1 epochs" in one for one in made.summary()["findings"])
    assert {name.removeprefix("learning_rate_") for name in figures_of(made)} == {"rates", "curves"}


def test_the_instrument_is_of_controls_knobs_and_timers(tmp_path: Path) -> None:
    lab = SyntheticLab(tmp_path, step=lambda one: step_seconds(one) * (2 if one.lane == "default" else 1))
    alone = {"framework": "pytorch", "mode": "eager", "lane": "default", "batch_size": 4}
    made = measured("instrument", lab, single_knobs=True, alone=[alone])
    tables = shown(made)
    assert tables["resolution"]["batch_size"].tolist() == [32, 4]
    changes = tables["knobs"].set_index("change")["ratio"]
    assert changes["lane default"] == pytest.approx(0.5, rel=0.1)
    assert changes["without channels_last"] == pytest.approx(1, rel=0.1)
    assert tables["timers"].set_index("subject")["passes"].to_dict() == {
        "pytorch eager tuned": True,
        "mindspore eager tuned": False,
        "mindspore graph tuned": False,
    }
    told = made.summary()["answers"]
    assert "A/A" in told[0]
    assert told[1].startswith("1 of 3 timers see")
    assert "mindspore graph tuned on cpu: THE TIMER DOES NOT SEE ALL THE WORK" in told[1]
    assert "lane default" in told[2], told
    assert made.ceiling is not None


CONV = {"workload": "conv2d", "batch_size": 8, "hyperparameters": {}, "vary": {"out_channels": [64]}}
RATED = {"framework": "pytorch", "mode": "eager", "lane": "tuned"}
WRONG = [
    ("equivalence", {"models": [{**BERT, "hyperparameters": {"layers": 10**9}}]}, "models.0.hyperparameters"),
    ("devices", {"devices": ["cuda"]}, "devices: ['cuda']: add cpu"),
    ("devices", {"devices": ["cpu", "gpu"]}, "devices.1: 'gpu'"),
    ("devices", {"threads": [0]}, "threads.0: 0"),
    ("operators", {"operators": [{**CONV, "workload": "cnn"}]}, "operators.0.workload: 'cnn': is no operator"),
    ("operators", {"operators": [{**CONV, "vary": {}}]}, "operators.0.vary: {}"),
    ("operators", {"operators": [{**CONV, "vary": {"chanels": [4]}}]}, "vary.chanels: "),
    ("operators", {"operators": [{**CONV, "vary": {"out_channels": [10**12]}}]}, "vary.out_channels: "),
    ("operators", {"operators": [{**CONV, "hyperparameters": {"passes": "forward"}}]}, "list the kinds of passes"),
    ("operators", {"passes": ["backward"]}, "passes.0: 'backward'"),
    ("learning_rate", {"subjects": [{**RATED, "learning_rates": [0.0]}]}, "subjects.0.learning_rates.0: 0.0"),
    ("learning_rate", {"subjects": [RATED]}, "subjects.0.learning_rates: missing"),
    ("learning_rate", {"threshold": 60}, "threshold 60"),
    ("learning_rate", {"most_epochs": 2}, "most_epochs: 2"),
    ("scaling", {"world_sizes": [1]}, "world_sizes.0: 1"),
    ("scaling", {"workload": "linear", "data": "random", "hyperparameters": {}}, "trains nothing"),
    ("modes", {"subjects": [{**OF_MODES[0], "precision": "bf61"}]}, "subjects.0.precision: 'bf61'"),
    ("modes", {"trained": "some"}, "trained: 'some'"),
    ("modes", {"tasks": [CNN]}, "tasks.0.epochs: missing"),
    ("frameworks", {"tasks": [{**CNN, "epochs": 3, "most_epochs": 2, "threshold": None}]}, "tasks.0.most_epochs: 2"),
    ("frameworks", {"tasks": [{**CNN, "epochs": 3, "most_epochs": 3, "threshold": 60}]}, "threshold 60"),
    ("frameworks", {"tasks": [{**CNN, "epochs": 3, "most_epochs": 3}]}, "tasks.0.threshold: missing"),
    ("frameworks", {"device": "cdua"}, "device: 'cdua'"),
    ("frameworks", {"settings": {"margin": 2}}, "settings.margin: 2"),
    ("instrument", {"subjects": [{**RATED, "lane": "default"}]}, "subjects.0.lane: 'default'"),
    ("instrument", {"alone": [RATED]}, "alone.0.batch_size: missing"),
    ("instrument", {"alone": [{**RATED, "batch_size": 0}]}, "alone.0.batch_size: 0"),
    ("instrument", {"timers": [{**RATED, "mode": "grahp"}]}, "timers.0.mode: 'grahp'"),
]


@pytest.mark.parametrize(("notebook", "changes", "told"), WRONG)
def test_wrong_parameters_are_refused_by_file_and_key(notebook: str, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(BenchlibError) as refused:
        planned(notebook, **changes)
    assert all(f"quick/{notebook}.yaml: " in line for line in str(refused.value).splitlines())
    assert told in str(refused.value)
