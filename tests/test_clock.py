"""One clock for a whole report: what it allows, what it has cost, and what it says when that is too little."""

import json
import math
import time
from pathlib import Path

import pytest
from synthetic_lab import SyntheticLab

from benchlib import lab
from benchlib.errors import BenchlibError
from benchlib.stats import planner
from benchlib.suite import clock, profile


@pytest.fixture
def now(monkeypatch):
    """A clock that stands still until it is moved."""
    hands = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: hands[0])
    return hands


def quick(*names):
    return {name: profile.plan_notebook(name, Path(f"parameters/quick/{name}.yaml")).study for name in names}


def test_the_minutes_of_a_profile_are_those_of_all_runs_together_and_more_count_from_now_on(tmp_path, now):
    first = clock.Clock(tmp_path, "these inputs", 10, None, 0)
    assert first.shared
    now[0] += 240
    assert first.left_s == 360
    first.keep()
    assert clock.Clock(tmp_path, "these inputs", 10, None, 0).left_s == 360
    assert clock.Clock(tmp_path, "other inputs", 10, None, 0).left_s == 600, "they have had none of it"
    more = clock.Clock(tmp_path, "these inputs", 10, 5, 0)
    assert more.left_s == 300
    now[0] += 60
    more.keep()
    assert json.loads((tmp_path / "clock.json").read_text())["seconds"] == 300
    assert not clock.Clock(tmp_path, "these inputs", 10, 0, 0).measures
    unlimited = clock.Clock(tmp_path, "these inputs", None, None, 0)
    assert (unlimited.shared, unlimited.measures, unlimited.left_s) == (False, True, math.inf)


@pytest.mark.parametrize("content", ["{", "[]", '{"of": "these"}', '{"of": "these", "seconds": "x"}', "null"])
def test_a_damaged_count_starts_again_and_one_that_cannot_be_kept_is_said(tmp_path, content, capsys):
    (tmp_path / "clock.json").write_text(content)
    assert clock.Clock(tmp_path, "these", 10, None, 0).left_s == pytest.approx(600, abs=5)
    (tmp_path / "file").touch()
    clock.Clock(tmp_path / "file", "these", 10, None, 0).keep()
    assert "could not be written" in capsys.readouterr().err


def test_less_time_than_pilots_runs_and_notebooks_need_is_refused_with_the_least_that_would_do():
    (study,) = quick("batch_size").values()
    processes = sum(1 + len(group) for group in study.groups)
    start_s, settings = planner.LEAST_START_S, study.settings
    pilots_s = settings["pilot"] * processes * (start_s + planner.LEAST_ROUNDS * settings["block_s"])
    by_gate = 2  # PyTorch and MindSpore, each in one mode
    least = pilots_s + start_s * (study.least_runs + by_gate)
    assert study.least_runs > 0
    clock.require(least / 60 + 0.001, [study])
    with pytest.raises(BenchlibError, match="first processes take"):
        clock.require(least / 60 - 0.001, [study])
    with pytest.raises(BenchlibError, match=r"minutes 1: .*: give 2 or more, or 0"):
        clock.require(1, [], 14)
    clock.require(2, [], 14)


def test_the_gate_needs_a_process_in_each_environment(torch_2_9):
    (study,) = quick("versions").values()
    least = clock.pilots_s(study) + 2 * planner.LEAST_START_S
    clock.require(least / 60 + 0.001, [study])
    with pytest.raises(BenchlibError, match="at the very least"):
        clock.require(least / 60 - 0.001, [study])


class Labs:
    """In place of labs: what they are asked for. ``pilots`` and ``sharpen`` stand in for theirs."""

    def __init__(self, monkeypatch, pilots=lambda: True, sharpen=lambda until: None):
        self.made, self.pilots, self.sharpen, self.done = [], pilots, sharpen, []
        monkeypatch.setattr(clock, "Lab", self._lab)

    def _lab(self, outputs, measures, after_keeping=None):
        made = SyntheticLab(outputs)
        made.measures, made.until, made.waited_s, made.after_keeping = measures, None, 0.0, after_keeping
        made.pilots = lambda: self.done.append("pilots") or self.pilots()
        made.sharpen = lambda until: setattr(made, "until", until) or self.sharpen(until)
        self.made.append(made)
        return made


def raises(error):
    def fail(*given):
        raise error

    return fail


def test_pilots_of_all_come_before_what_is_left_is_shared(tmp_path, now, monkeypatch):
    labs = Labs(monkeypatch)
    assert clock.measure(quick("batch_size", "inference"), tmp_path, clock.Clock(tmp_path, "these", 10, None, 4)) == []
    (made,) = labs.made
    assert made.measures is lab.Measures.LATER
    assert {asked[0] for asked in made.asked} == {"compare", "train"}
    assert labs.done == ["pilots"]
    assert made.until == 1000 + 600 - clock.NOTEBOOK_S * 4, "some is kept to execute the notebooks"
    assert clock.Clock(tmp_path, "these", 10, None, 4).left_s == 0, "what no repetition fits into is no reason to start"
    assert json.loads((tmp_path / "clock.json").read_text())["seconds"] == 0, "it is not said to have been spent"
    assert clock.Clock(tmp_path, "these", 12, None, 4).left_s == 720 - clock.NOTEBOOK_S * 4, "a profile may give more"
    assert clock.read(tmp_path, "these")["piloted"]
    assert not clock.read(tmp_path, "others")["piloted"]


def test_more_minutes_leave_a_profile_what_it_had_left(tmp_path, now, monkeypatch):
    Labs(monkeypatch, sharpen=lambda until: now.__setitem__(0, until))
    for more, left_s in [(600, 3720 * 60), (None, 0)]:
        clock.measure(quick("inference"), tmp_path, clock.Clock(tmp_path, "these", 4320, more, 0))
        assert clock.Clock(tmp_path, "these", 4320, None, 0).left_s == left_s


@pytest.mark.parametrize("broken", ["pilots", "sharpen"])
def test_what_breaks_off_leaves_what_was_measured_and_is_a_failure(tmp_path, now, monkeypatch, capsys, broken):
    Labs(monkeypatch, **{broken: raises(OSError("no space left"))})
    allowed = clock.Clock(tmp_path, "these", 10, None, 0)
    assert clock.measure(quick("inference"), tmp_path, allowed) == []
    assert "OSError: no space left" in capsys.readouterr().err
    assert allowed.broke_off
    assert clock.read(tmp_path, "these")["piloted"] is (broken == "sharpen")
    assert clock.Clock(tmp_path, "these", 10, None, 0).left_s == 600, "there was no end to it"


def test_without_a_clock_each_comparison_has_its_own_budget(tmp_path, monkeypatch):
    labs = Labs(monkeypatch)
    assert clock.measure(quick("inference"), tmp_path, clock.Clock(tmp_path, "these", None, None, 0)) == []
    assert (labs.made[0].measures, labs.made[0].until) == (lab.Measures.BUDGET, None)


def test_a_notebook_that_cannot_be_measured_stops_no_other(tmp_path, monkeypatch, capsys):
    labs, notebooks = Labs(monkeypatch), quick("batch_size", "inference")
    monkeypatch.setattr(notebooks["batch_size"], "measure", raises(RuntimeError("a bug")))
    assert clock.measure(notebooks, tmp_path, clock.Clock(tmp_path, "these", 10, None, 0)) == ["batch_size"]
    assert labs.made[0].asked, "the other was measured"
    assert "batch_size: not measured, and tried again by itself: RuntimeError: a bug" in capsys.readouterr().err


def test_models_are_checked_together_before_the_first_and_while_it_waits_the_clock_stands(tmp_path, now, monkeypatch):
    labs, notebooks, asked = Labs(monkeypatch), quick("batch_size", "inference"), []
    time_ = clock.Clock(tmp_path, "these", 10, None, 0)

    def certify(lab, conditions):
        asked.append(conditions)
        now[0] += 120
        lab.waited_s += 120.0
        raise KeyError("weights")  # which is said of the notebook that it is of

    monkeypatch.setattr(SyntheticLab, "certify", certify)
    for study in notebooks.values():
        monkeypatch.setattr(study, "measure", lambda lab: None)
    assert clock.measure(notebooks, tmp_path, time_) == []
    assert asked == [[condition for study in notebooks.values() for condition in study.every]]
    assert labs.made[0].until - now[0] == 600


def test_what_was_spent_is_written_down_whenever_something_is_kept(tmp_path, now, monkeypatch, capsys):
    labs, notebooks = Labs(monkeypatch), quick("inference")

    def slow(of):
        now[0] += 700
        labs.made[-1].waited_s = 30.0
        of.after_keeping()
        assert json.loads((tmp_path / "clock.json").read_text())["seconds"] == 670, "it waited for others for the rest"

    monkeypatch.setattr(notebooks["inference"], "measure", slow)
    clock.measure(notebooks, tmp_path, clock.Clock(tmp_path, "these", 10, None, 0))
    assert "more than there was" in capsys.readouterr().err
