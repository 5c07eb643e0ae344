"""One clock for a whole report: what it allows, what it has cost, and what it says when that is too little."""

import json
import math
import re
import time
from pathlib import Path

import pytest
from synthetic_lab import SyntheticLab

from benchlib import lab
from benchlib.errors import BenchlibError
from benchlib.stats import planner
from benchlib.suite import clock, plan


@pytest.fixture
def now(monkeypatch):
    """A clock that stands still until it is moved."""
    hands = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: hands[0])
    return hands


def test_the_minutes_of_a_profile_are_those_of_all_runs_together(tmp_path, now):
    first = clock.Clock(tmp_path, "these inputs", 10, None, 0)
    assert first.shared
    assert first.measures
    assert first.left_s == 600
    now[0] += 240
    assert first.left_s == 360
    first.keep()
    assert clock.Clock(tmp_path, "these inputs", 10, None, 0).left_s == 360
    assert clock.Clock(tmp_path, "other inputs", 10, None, 0).left_s == 600, "they have had none of it"


def test_more_minutes_count_from_now_on(tmp_path, now):
    first = clock.Clock(tmp_path, "these", 10, None, 0)
    now[0] += 900
    assert first.left_s == -300
    first.keep()
    more = clock.Clock(tmp_path, "these", 10, 5, 0)
    assert more.left_s == 300
    now[0] += 60
    more.keep()
    assert json.loads((tmp_path / "clock.json").read_text())["seconds"] == 960
    nothing = clock.Clock(tmp_path, "these", 10, 0, 0)
    assert not nothing.measures
    unlimited = clock.Clock(tmp_path, "these", None, None, 0)
    assert not unlimited.shared
    assert unlimited.measures
    assert unlimited.left_s == math.inf


@pytest.mark.parametrize("content", ["{", "[]", '{"of": "these"}', '{"of": "these", "seconds": "x"}', "null"])
def test_a_damaged_count_starts_again(tmp_path, content):
    (tmp_path / "clock.json").write_text(content)
    assert clock.Clock(tmp_path, "these", 10, None, 0).left_s == pytest.approx(600, abs=5)


def test_a_count_that_cannot_be_kept_is_said_and_stops_nothing(tmp_path, capsys):
    clock.Clock(tmp_path / "nowhere", "these", 10, None, 0).keep()
    assert "could not be written" in capsys.readouterr().err


def quick(name):
    return plan.planned(name, Path(f"parameters/quick/{name}.yaml")).study


def test_less_time_than_the_pilots_need_is_refused_with_the_least_that_would_do():
    missing = {name: quick(name) for name in ("batch_size", "operators", "learning_rate")}
    with pytest.raises(BenchlibError, match=r"minutes 0\.1: .* at the very least: give \d or more, or 0 to make"):
        clock.require(0.1, missing)
    clock.require(0.1, {})
    pilots_s = sum(clock.pilots_s(missing[name], planner.least_s) for name in ("batch_size", "operators"))
    assert 10 < pilots_s < 120
    trained = len(missing["learning_rate"].every)
    assert trained == missing["learning_rate"].least_runs / 2, "from two seeds"
    by_gate = 2  # PyTorch and MindSpore, each in one mode
    least = pilots_s + planner.LEAST_START_S * missing["batch_size"].least_runs
    least += planner.LEAST_START_S * (2 * trained + by_gate)
    clock.require(least / 60 + 0.001, missing)
    with pytest.raises(BenchlibError, match=r"the training runs and the first processes"):
        clock.require(least / 60 - 0.001, missing)


def test_the_gate_needs_a_process_in_each_environment(torch_2_9):
    study = quick("versions")
    there = {condition.environment for condition in study.every}
    assert there == {"default", "torch-2.9"}
    least = clock.pilots_s(study, planner.least_s) + 2 * planner.LEAST_START_S
    clock.require(least / 60 + 0.001, {"versions": study})
    with pytest.raises(BenchlibError, match="at the very least"):
        clock.require(least / 60 - 0.001, {"versions": study})


def test_what_comes_before_the_time_is_shared_is_said_with_whether_it_fits():
    notebooks = {name: quick(name) for name in plan.notebooks() if not plan.gathers(name)}
    said = clock.expectation(30, notebooks)
    minutes = int(re.search(r"takes about (\d+) min on a quiet machine, training runs aside$", said)[1])
    assert 9 <= minutes <= 13, "README says 13, training runs included"
    assert clock.expectation(3, notebooks) == (
        f"{said}: more than the 3 min that there are, and all is measured all the same"
    )
    slow = quick("operators")
    slow.settings = {**slow.settings, "block_s": 2.0}
    assert clock.pilots_s(slow, planner.usual_s) == 3 * 12 * (planner.USUAL_START_S + planner.LEAST_ROUNDS * 2.0)


def test_the_least_time_counts_a_start_and_the_blocks_of_each_process():
    study = quick("batch_size")
    each = [1 + len(group) for group in study.groups]
    blocks_s = study.settings["pilot"] * planner.LEAST_ROUNDS * study.settings["block_s"] * sum(each)
    starts_s = study.settings["pilot"] * planner.LEAST_START_S * sum(each)
    assert clock.pilots_s(study, planner.least_s) == pytest.approx(blocks_s + starts_s)


class Labs:
    """In place of labs: what they are asked for."""

    def __init__(self, monkeypatch):
        self.made, self.done, self.missing = [], [], True
        monkeypatch.setattr(clock, "Lab", self._lab)

    def _lab(self, outputs, measures, after_keeping=None):
        made = SyntheticLab(outputs)
        made.measures, made.until, made.waited_s, made.after_keeping = measures, None, 0.0, after_keeping
        made.pilots = lambda: self.done.append("pilots") or self.missing
        made.sharpen = lambda until: setattr(made, "until", until)
        self.made.append(made)
        return made


def measured(notebooks, folder, time_):
    return clock.measure(notebooks, clock.lab_on(time_, folder), time_)


def test_pilots_of_all_come_before_what_is_left_is_shared(tmp_path, now, monkeypatch):
    labs = Labs(monkeypatch)
    notebooks = {name: quick(name) for name in ("batch_size", "inference")}
    time_ = clock.Clock(tmp_path, "these", 10, None, 4)
    assert measured(notebooks, tmp_path, time_) == []
    (made,) = labs.made
    assert made.measures is lab.Measures.LATER
    assert {asked[0] for asked in made.asked} == {"compare", "train"}
    assert labs.done == ["pilots"]
    assert made.until == 1000 + 600 - clock.NOTEBOOK_S * 4, "some is kept to execute the notebooks"
    assert clock.Clock(tmp_path, "these", 10, None, 4).left_s == 0, "what no repetition fits into is no reason to start"
    kept = json.loads((tmp_path / "clock.json").read_text())
    assert kept["seconds"] == 0, "it is not said to have been spent"
    assert clock.Clock(tmp_path, "these", 12, None, 4).left_s == 720 - clock.NOTEBOOK_S * 4, "a profile may give more"
    assert clock.is_piloted(tmp_path, "these")
    assert not clock.is_piloted(tmp_path, "others")


def test_more_minutes_leave_a_profile_what_it_had_left(tmp_path, now, monkeypatch):
    labs = Labs(monkeypatch)

    def made(*arguments, **named):
        lab_ = labs._lab(*arguments, **named)
        lab_.sharpen = lambda until: now.__setitem__(0, until)
        return lab_

    monkeypatch.setattr(clock, "Lab", made)
    notebooks = {"inference": quick("inference")}
    measured(notebooks, tmp_path, clock.Clock(tmp_path, "these", 4320, 600, 0))
    assert clock.Clock(tmp_path, "these", 4320, None, 0).left_s == 3720 * 60
    measured(notebooks, tmp_path, clock.Clock(tmp_path, "these", 4320, None, 0))
    assert clock.Clock(tmp_path, "these", 4320, None, 0).left_s == 0


def test_pilots_that_break_off_leave_the_clock_to_those_of_which_nothing_is_there(tmp_path, monkeypatch, capsys):
    labs = Labs(monkeypatch)

    def made(*arguments, **named):
        lab_ = labs._lab(*arguments, **named)

        def pilots():
            raise RuntimeError("a bug")

        lab_.pilots = pilots
        return lab_

    monkeypatch.setattr(clock, "Lab", made)
    notebooks = {name: quick(name) for name in ("batch_size", "inference")}
    measure = notebooks["batch_size"].measure

    def nothing_there(of):
        if of.measures is lab.Measures.NOTHING:
            raise lab.NotMeasured("its comparisons")
        return measure(of)

    monkeypatch.setattr(notebooks["batch_size"], "measure", nothing_there)
    allowed = clock.Clock(tmp_path, "these", 10, None, 0)
    assert measured(notebooks, tmp_path, allowed) == ["batch_size"], "the other shows what is there"
    assert allowed.broke_off, "the run has failed"
    assert "tried again by themselves: batch_size: RuntimeError: a bug" in capsys.readouterr().err
    assert not clock.is_piloted(tmp_path, "these")


def test_without_a_clock_each_comparison_has_its_own_budget(tmp_path, monkeypatch):
    labs = Labs(monkeypatch)
    unlimited = clock.Clock(tmp_path, "these", None, None, 0)
    assert measured({"inference": quick("inference")}, tmp_path, unlimited) == []
    assert labs.made[0].measures is lab.Measures.BUDGET
    assert labs.made[0].until is None


def test_a_notebook_that_cannot_be_measured_stops_no_other(tmp_path, monkeypatch, capsys):
    labs = Labs(monkeypatch)
    notebooks = {name: quick(name) for name in ("batch_size", "inference")}

    def broken(of):
        raise RuntimeError("a bug")

    monkeypatch.setattr(notebooks["batch_size"], "measure", broken)
    assert measured(notebooks, tmp_path, clock.Clock(tmp_path, "these", 10, None, 0)) == ["batch_size"]
    assert labs.made[0].asked, "the other was measured"
    assert "batch_size: not measured, and tried again by itself: RuntimeError: a bug" in capsys.readouterr().err


def test_pilots_that_take_longer_than_there_was_are_said(tmp_path, now, monkeypatch, capsys):
    labs = Labs(monkeypatch)
    study = quick("inference")
    measure = study.measure

    def slow(of):
        now[0] += 700
        return measure(of)

    monkeypatch.setattr(study, "measure", slow)
    measured({"inference": study}, tmp_path, clock.Clock(tmp_path, "these", 10, None, 0))
    assert "took 2 min more than there was" in capsys.readouterr().err
    labs.missing = False
    measured({"inference": study}, tmp_path, clock.Clock(tmp_path, "these", 10, None, 0))
    assert "more than there was" not in capsys.readouterr().err, "these took no time"


def test_what_goes_wrong_after_the_pilots_leaves_them_to_the_report(tmp_path, now, monkeypatch, capsys):
    labs = Labs(monkeypatch)

    def made(*arguments, **named):
        lab_ = labs._lab(*arguments, **named)

        def sharpen(until):
            raise OSError("no space left")

        lab_.sharpen = sharpen
        return lab_

    monkeypatch.setattr(clock, "Lab", made)
    allowed = clock.Clock(tmp_path, "these", 10, None, 0)
    assert measured({"inference": quick("inference")}, tmp_path, allowed) == []
    assert "no more is measured: OSError: no space left" in capsys.readouterr().err
    assert allowed.broke_off, "the run has failed"
    assert clock.Clock(tmp_path, "these", 10, None, 0).left_s == 600, "there was no end to it"


def test_what_was_spent_is_written_down_whenever_something_is_kept(tmp_path, now, monkeypatch):
    labs = Labs(monkeypatch)
    study = quick("inference")

    def killed(of):
        now[0] += 100
        labs.made[-1].waited_s = 30.0
        of.after_keeping()
        assert json.loads((tmp_path / "clock.json").read_text())["seconds"] == 70, "it waited for others for the rest"
        return []

    monkeypatch.setattr(study, "measure", killed)
    measured({"inference": study}, tmp_path, clock.Clock(tmp_path, "these", 10, None, 0))
    assert labs.made[0].until == 1100 + 530


def test_the_notebooks_have_their_share_of_what_is_least():
    with pytest.raises(
        BenchlibError, match=r"minutes 1: to execute the notebooks takes about .*: give 2 or more, or 0"
    ):
        clock.require(1, {}, 14)
    clock.require(2, {}, 14)
