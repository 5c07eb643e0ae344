"""The notebooks: what each compares, trains and shows, of measurements that are made up."""

import math
from pathlib import Path
from typing import Any

import pytest
from studies import measured, planned, shown
from synthetic_lab import SyntheticLab, step_seconds

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError, Failure
from benchlib.findings import growth
from benchlib.runner import availability
from benchlib.stats.amortisation import PAYS
from benchlib.stats.frame import IMPOSSIBLE

pytestmark = pytest.mark.usefixtures("one_kind_of_figure")

CNN = {"workload": "cnn", "data": "digits", "hyperparameters": {"image_size": 8}, "batch_size": 64}
CNN |= {"learning_rate": 0.01, "train_samples": None}
PYTORCH = {"framework": "pytorch", "mode": "eager", "lane": "tuned"}
MINDSPORE = {"framework": "mindspore", "mode": "graph", "lane": "tuned"}
OF_MODES = [{**one, "mode": mode} for one in (PYTORCH, MINDSPORE) for mode in ("eager", "graph")]


def figures_of(made: Any) -> set[str]:
    return {Path(file).stem.removeprefix(f"{made.name}_") for file in made.summary()["figures"]}


def test_frameworks_are_compared_and_trained_by_task(tmp_path: Path) -> None:
    def metric(condition: Condition, seed: int, epoch: int) -> float:
        arrives = {"pytorch": (2, 3, 99), "mindspore": (5, 99, 99)}[condition.framework][seed]
        return 0.9 if epoch >= arrives else (0.6, 0.7, 0.8)[seed] - 0.03 * (condition.framework == "mindspore")

    small = {**CNN, "epochs": 4, "most_epochs": 8, "threshold": 0.85}
    large = {**small, "hyperparameters": {"image_size": 16}, "batch_size": 32, "threshold": None}
    lab = SyntheticLab(tmp_path, metric=metric, spread=1e-9)
    made = measured("frameworks", lab, tasks=[small, large], seeds=[0, 1, 2])
    tables = shown(made)
    names = ["cnn on digits, image size 8, batch size 64, threshold 0.85"]
    names += ["cnn on digits, image size 16, batch size 32, threshold None"]
    assert all(list(dict.fromkeys(table["task"])) == names for table in tables.values())
    learned = tables["learned"][tables["learned"]["task"] == names[0]]
    assert learned["reached"].tolist() == ["2 of 3", "1 of 3"]
    assert learned["epochs_to_threshold"].tolist() == pytest.approx([3, math.nan], nan_ok=True)
    assert learned["epoch_ratio"].tolist() == pytest.approx([math.nan, 1 / 3], nan_ok=True), "as fast as steps here"
    first = tables["first_epochs"].iloc[0]
    assert (first["first_epoch_alone"], first["first_epoch"] > 1) == (pytest.approx(1), True)
    assert tables["metrics"]["difference"].notna().tolist() == [False, True] * 2
    assert figures_of(made) == {"ratios", "survival", "curves"}
    without = measured("frameworks", SyntheticLab(tmp_path), tasks=[large], seeds=[0])
    shown(without)
    assert "survival" not in figures_of(without), "there is no threshold"


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
    subjects = [*OF_MODES, {**PYTORCH, "precision": "bf16"}, {**MINDSPORE, "precision": "fp16-O2"}]
    made = measured("modes", lab, tasks=[{**CNN, "epochs": 3}], subjects=subjects, devices=["cpu"], seeds=[0, 1])
    tables = {name: table.set_index("subject") for name, table in shown(made).items()}
    ratios = tables["ratios"]
    assert ratios.loc["mindspore graph fp16-O2 tuned", "verdict"] == IMPOSSIBLE
    assert ratios["ratio"].notna().sum() == len(ratios) - 1 == 4
    assert not len(made.failures()), "it is an answer, no failure"
    within = {"pytorch graph tuned": 2, "mindspore graph tuned": 2, "pytorch eager bf16 tuned": 1}
    assert tables["within"]["within_ratio"].to_dict() == pytest.approx(within, rel=0.1)
    paid = tables["amortisation"]
    assert paid["verdict"].to_dict() == {"pytorch graph tuned": PAYS, "mindspore graph tuned": PAYS}
    assert paid["pays_after_epochs"].to_list() == pytest.approx((paid["pays_after_steps"] / (1437 // 64)).to_list())
    losses = tables["losses"].loc["pytorch eager bf16 tuned"]
    assert (losses["diverged"], losses["runs"]) == (1, 1)
    assert losses["loss_ratio"] == pytest.approx(1.5), "of the seeds that are left of both"
    assert figures_of(made) == {"ratios", "amortisation", "losses"}
    told = " ".join(made.summary()["findings"])
    assert "PyTorch eager bf16 tuned computes cnn as exactly as fp32" in told
    assert "MindSpore graph fp16-O2 tuned is not possible here" in told
    assert "TypeError: Kernel select failed: no bf16" in told


def test_of_modes_a_crash_is_no_answer_and_the_first_that_is_there_is_the_baseline(tmp_path, monkeypatch) -> None:
    def available(framework: str, device: str, environment: str) -> str | None:
        return None if (framework, device) != ("pytorch", "npu") else "no plug-in"

    killed = Failure(sentence="worker died in 'check' (signal SIGKILL)", printed="TypeError: no bf16")
    monkeypatch.setattr(availability, "devices", lambda within: ["cpu", "npu"])
    monkeypatch.setattr(availability, "why_absent", available)
    lab = SyntheticLab(tmp_path, cannot=lambda one: killed if one.mode == "graph" and one.device == "cpu" else False)
    made = measured("modes", lab, tasks=[{**CNN, "epochs": None}], subjects=OF_MODES)
    assert [str(group[0].subject) for group in made.groups] == ["pytorch eager tuned", "mindspore eager tuned"]
    assert made.failures()["failure"].str.contains(killed.sentence, regex=False).tolist() == [True, True]
    assert made.summary()["crashed"] == 2
    assert "Not measured in PyTorch: no plug-in." in made.notes
    assert set(shown(made)["ratios"]["task"]) == {"cnn on digits, cpu", "cnn on digits, npu"}


def test_nothing_leads_from_one_host_to_another(tmp_path: Path) -> None:
    made = measured("batch_size", SyntheticLab(tmp_path), subjects=OF_MODES[:2], batch_sizes=[16, 64], seeds=[0])
    assert len(list(growth(made))) == 1
    for number, one in enumerate(made.measured):
        for m in one.measurements:
            m.machine = {**m.machine, "host": f"n{number}"}
    del made.frame
    assert set(made.rows("throughput_ratio")["subject"]) == {f"pytorch graph tuned on n{number}" for number in (0, 1)}
    assert list(growth(made)) == []


def in_groups(condition: Condition) -> float:
    """Two processes are 1.6 times as fast as one, of which a fifth is communication; MindSpore takes twice as long."""
    seconds = 0.01 * condition.batch_size / 64 / (condition.threads or 1) ** 0.5
    seconds *= 2 if condition.framework == "mindspore" else 1
    if condition.world_size == 1:
        return seconds
    return seconds / (0.8 * condition.world_size) * (1.0 if condition.communication else 0.8)


def test_scaling_gives_efficiency_and_communication(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "places", lambda device: 4)
    lab = SyntheticLab(tmp_path, step=in_groups, spread=0.002)
    made = measured("scaling", lab, subjects=[PYTORCH, MINDSPORE], world_sizes=[2, 4, 8])
    assert len(made.groups) == 1, "together, so that the ratio between frameworks is paired"
    assert {(one.world_size, one.threads) for one in made.every} == {(1, 1), (1, 2), (1, 4), (2, 1), (4, 1)}
    tables = shown(made)
    rows = tables["scaling"].set_index(["subject", "world_size", "batch_size"]).sort_index()
    strong = rows.loc[("mindspore graph tuned", 2, 64)].iloc[0]
    assert strong["ratio"] == pytest.approx(1.6, rel=0.02)
    assert strong["efficiency_percent"] == pytest.approx(80, rel=0.02)
    assert strong["communication_percent"] == pytest.approx(20, abs=1)
    assert strong["same_threads_ratio"] == pytest.approx(1.6 / 2**0.5, rel=0.02)
    assert ("mindspore graph tuned", 2, 128) in rows.index, "weak scaling"
    assert tables["subjects"]["ratio"].to_numpy() == pytest.approx([0.5] * (1 + 2 * 3), rel=0.02)
    assert figures_of(made) == {"scaling"}
    told = made.summary()["findings"]
    assert "the exchange takes 20" in told[0]
    assert told[-1] == "Not measured: 8 processes: no place here."
    monkeypatch.setattr(availability, "places", lambda device: 1)
    alone = measured("scaling", SyntheticLab(tmp_path))
    assert (set(shown(alone)), figures_of(alone)) == ({"processes"}, set())


@pytest.mark.parametrize("differs", [False, True])
def test_equivalence_shows_every_check_of_a_certificate(tmp_path: Path, differs: bool) -> None:
    subjects = [{**MINDSPORE, "mode": mode} for mode in ("eager", "graph")]
    made = measured("equivalence", SyntheticLab(tmp_path, differs=lambda one: differs), subjects=subjects)
    tables = shown(made)
    assert tables["certificates"]["trials"].tolist() == [2] * 2 * len(made.every)
    models = list(dict.fromkeys(one.workload for one in made.every))
    assert len(models) == 12
    expected = [(name, *pair) for name in models for pair in workloads.load(name).settled.items()]
    assert list(tables["settled"].itertuples(index=False, name=None)) == expected
    assert "conv_dropout" in set(tables["neutralised"]["what"])
    assert figures_of(made) == {"differences"}
    assert made.summary()["findings"][0].startswith(f"{0 if differs else 24} of the 24 models")


def test_devices_are_compared_with_the_whole_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without = measured("devices", SyntheticLab(tmp_path), subjects=[PYTORCH, MINDSPORE])
    assert set(shown(without)) == {"indicators", "ratios", "processes"}
    assert without.summary()["findings"][0].endswith("everything ran on the CPU.")
    assert figures_of(without) == {"indicators"}
    monkeypatch.setattr(availability, "usable", lambda framework, _: ["cpu", "cuda"][: 1 + (framework == "pytorch")])
    groups = planned("devices", subjects=[PYTORCH, MINDSPORE]).groups
    assert [[(one.framework, one.device, one.threads) for one in group] for group in groups] == [
        [("pytorch", "cpu", None), ("pytorch", "cuda", None), ("pytorch", "cpu", 1)],
        [("mindspore", "cpu", None), ("mindspore", "cpu", 1)],
    ]


def test_of_operators_one_thing_is_varied_at_a_time(tmp_path: Path) -> None:
    sizes = {"hyperparameters": {"in_channels": 64, "out_channels": 16, "image_size": 16}, "batch_size": 64}
    operator = {"workload": "conv2d", **sizes, "vary": {"batch_size": [8, 64], "in_channels": [4]}}
    made = measured("operators", SyntheticLab(tmp_path), operators=[operator])
    asked = [(one.batch_size, one.hyperparameters["in_channels"]) for one, _ in made.groups]
    assert asked == [(64, 64), (8, 64), (64, 4)], "the base once"
    assert shown(made)["ratios"]["task"].tolist() == ["conv2d, forward+backward"] * 3
    assert figures_of(made) == {"ratios", "peak"}


def test_of_learning_rates_a_run_that_does_not_reach_the_threshold_is_shown(tmp_path: Path) -> None:
    def metric(condition: Condition, seed: int, epoch: int) -> float:
        return 0.7 if condition.learning_rate == 0.01 or (seed == 0 and epoch == 5) else 0.3

    limits = {"seeds": [0, 1, 2], "epochs": 4, "most_epochs": 8, "threshold": 0.6}
    rated = [{**PYTORCH, "learning_rates": [0.001, 0.01]}]
    made = measured("learning_rate", SyntheticLab(tmp_path, metric=metric), subjects=rated, **limits)
    table = shown(made)["thresholds"]
    assert table["reached"].tolist() == ["1 of 3", "3 of 3"]
    assert table["epochs_to_threshold"].tolist() == pytest.approx([math.nan, 1], nan_ok=True)
    told = " ".join(made.summary()["findings"])
    assert "soonest at learning rate 0.01, after 1 epochs" in told
    assert "(3 of 3 runs); not reached at 0.001" in told
    assert figures_of(made) == {"rates", "curves"}


def test_the_instrument_is_of_controls_knobs_and_timers(tmp_path: Path) -> None:
    lab = SyntheticLab(tmp_path, step=lambda one: step_seconds(one) * (2 if one.lane == "default" else 1))
    made = measured("instrument", lab, single_knobs=True, control_batch_sizes=[4])
    tables = shown(made)
    assert tables["resolution"]["batch_size"].tolist() == [32, 4]
    changes = tables["knobs"].set_index("change")["ratio"]
    assert changes["lane default"] == pytest.approx(0.5, rel=0.1)
    assert changes["without channels_last"] == pytest.approx(1, rel=0.1)
    assert tables["timers"].set_index("subject")["ok"].to_dict() == {
        **{"pytorch eager tuned": True, "mindspore eager tuned": False, "mindspore graph tuned": False}
    }
    told = made.summary()["answers"]
    assert "A/A" in told[0]
    assert told[1].startswith("1 of 3 timers see")
    assert "MindSpore graph tuned on cpu: the timer sees" in told[1]
    assert "PyTorch eager lane default (0.5" in told[2]
    assert made.ceiling is not None


CONV = {"workload": "conv2d", "batch_size": 8, "hyperparameters": {}, "vary": {"out_channels": [64]}}
BERT = {"workload": "bert", "data": "pydoc", "hyperparameters": {"layers": 10**9}}
WRONG = [
    ("batch_size", {"workload": "cnnn"}, "workload: 'cnnn'.*did you mean 'cnn'"),
    ("batch_size", {"subjects": [{**PYTORCH, "mode": "eagre"}]}, "subjects.0.mode: 'eagre'.*did you mean 'eager'"),
    ("batch_size", {"data": "digit"}, "data: 'digit'.*did you mean 'digits'"),
    ("batch_size", {"batch_sizes": [8, 0]}, "batch_sizes.1: 0.*greater than or equal to 1"),
    ("batch_size", {"batch_sizes": [2.5]}, "batch_sizes.0: 2.5.*integer"),
    ("batch_size", {"batch_sizes": 64}, "batch_sizes: 64.*list"),
    ("batch_size", {"batch_sizes": []}, r"batch_sizes: \[\].*at least 1 item"),
    ("batch_size", {"batch_sizes": [8, 8]}, r"batch_sizes: \[8, 8\].*twice"),
    ("batch_size", {"batch_sizes": [2048]}, "batch_sizes: 2048.*1437 training samples"),
    ("batch_size", {"train_samples": 100}, "batch_size 512 is larger than the 100 training samples"),
    ("batch_size", {"seeds": [0, 2**63]}, "seeds.1: 9223372036854775808.*the most is 4,294,967,295"),
    ("batch_size", {"settings": {"precision": 1e-12}}, "precision 1e-12.*below 0.1 % cannot be resolved"),
    ("batch_size", {"hyperparameters": {"image_sise": 8}}, "hyperparameters.*did you mean 'image_size'"),
    ("batch_size", {"batch_sise": [8]}, "unknown key 'batch_sise'.*did you mean 'batch_sizes'"),
    ("inference", {"workload": "cnn"}, "workload: 'cnn'.*its steps are not those of inference"),
    ("inference", {"batch_sizes": [1, 10**30]}, "batch_sizes: 1000000000000000000000000000000: .*larger than"),
    ("equivalence", {"models": [BERT]}, "models.0.hyperparameters"),
    ("devices", {"devices": ["cuda"]}, r"devices: \['cuda'\]: add cpu"),
    ("devices", {"devices": ["cpu", "gpu"]}, "devices.1: 'gpu'"),
    ("operators", {"operators": [{**CONV, "vary": {}}]}, "operators.0.vary: {}"),
    ("operators", {"operators": [{**CONV, "vary": {"chanels": [4]}}]}, "did you mean 'in_channels'"),
    ("operators", {"operators": [{**CONV, "vary": {"batch_size": [10**18]}}]}, "operators.0.vary.batch_size: 1000"),
    ("operators", {"passes": ["backward"]}, "passes.0: 'backward'"),
    ("learning_rate", {"subjects": [{**PYTORCH, "learning_rates": [0.0]}]}, "subjects.0.learning_rates.0: 0.0"),
    ("learning_rate", {"subjects": [PYTORCH]}, "subjects.0.learning_rates: missing"),
    ("learning_rate", {"threshold": 60}, "threshold 60"),
    ("scaling", {"world_sizes": [1]}, "world_sizes.0: 1"),
    ("scaling", {"workload": "linear", "data": "random", "hyperparameters": {}}, "trains nothing"),
    ("modes", {"tasks": [CNN]}, "tasks.0.epochs: missing"),
    ("frameworks", {"tasks": [{**CNN, "epochs": 3, "most_epochs": 2}]}, "tasks.0.most_epochs: 2"),
    ("instrument", {"subjects": [{**PYTORCH, "lane": "default"}]}, "the same condition twice"),
]


@pytest.mark.parametrize(("notebook", "changes", "told"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_parameters_are_refused_by_file_key_and_value(notebook: str, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(BenchlibError, match=told) as refused:
        planned(notebook, **changes)
    assert all(f"quick/{notebook}.yaml: " in line for line in str(refused.value).splitlines())
