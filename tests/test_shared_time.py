"""One time for several comparisons: pilots first, then where it narrows most; what is there is not measured again."""

import time
import zlib
from contextlib import contextmanager, suppress
from unittest.mock import Mock

import pytest
from fixed_lab import all_the_same

from benchlib import lab as lab_module
from benchlib import manifest
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.lab import Lab, Measures, NotMeasured
from benchlib.runner import interference, rounds, timer_check, worker_sessions
from benchlib.runner.scheduler import Asked
from benchlib.stats import planner
from benchlib.stats.planner import PRECISION
from benchlib.study import Study

ASKED = {"precision": 0.9, "budget_s": 60.0, "block_s": 0.004, "pilot": 3}
COARSE = {**ASKED, "precision": 0.001}

pytestmark = pytest.mark.usefixtures("toy_framework")


@pytest.fixture(autouse=True)
def even(monkeypatch):
    """Short warm-ups, few rounds, and blocks that take what they should, but for some percent that differ from process
    to process: the machine that the tests run on may be busy.
    """
    block = rounds._block

    def timed(entry, number, position, others):
        measured = block(entry, number, position, others)
        one = entry.measurement  # by its number: a key hashes the code, and by chance would make all processes alike
        share = zlib.crc32(f"{one.condition} {one.role} {one.repetition}".encode()) % 100 + number % 2
        step_s = entry.job.condition.hyperparameters["burn_ms"] / 1000 * (1 + share / 5000)
        return measured.model_copy(update={"wall_s": measured.steps * step_s, "disturbed": False})

    monkeypatch.setattr(interference, "_too_much", lambda *_: False)
    monkeypatch.setattr(rounds, "_block", timed)
    monkeypatch.setattr(rounds, "WARM_UP_LIMIT_S", 0.02)
    monkeypatch.setattr(rounds, "PILOT_ROUNDS", rounds.LEAST_ROUNDS)


@pytest.fixture
def started(monkeypatch):
    """The conditions whose processes were started."""
    conditions, start = [], worker_sessions.WorkerProcess
    monkeypatch.setattr(worker_sessions, "WorkerProcess", lambda one, *how: conditions.append(one) or start(one, *how))
    return conditions


def toy(**hyperparameters):
    return Condition(workload="toy", framework="toy", hyperparameters=hyperparameters)


def lab_of(folder, measures=Measures.BUDGET):
    return Lab(outputs=folder / "outputs", patience_s=60, measures=measures)


class Enough(Exception):
    """The time is not up, and all that the test asks for has been seen."""


def until_told(times):
    """Takes what a lab says; ends it when it has said so many times where its comparisons stand."""
    lines = []

    def tell(line):
        lines.append(line)
        if sum("widest half-width" in one for one in lines) == times:
            raise Enough

    return tell


def repetitions(comparisons):
    return [len({m.repetition for m in one.measurements}) for one in comparisons]


def groups():
    return [[toy(burn_ms=1.0), toy(burn_ms=2.0)], [toy(burn_ms=3.0), toy(burn_ms=1.5)]]


def test_what_was_finished_is_kept_when_the_rest_is_stopped(tmp_path, monkeypatch, started):
    measure, calls = rounds.measure_repetition, []

    def stopped(*arguments):
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt
        measure(*arguments)

    monkeypatch.setattr(rounds, "measure_repetition", stopped)
    lab = lab_of(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        lab.compare_each(groups(), **ASKED)
    kept = {path.name: path.stat().st_mtime_ns for path in lab.store.folder.iterdir()}
    assert len(kept) == 1
    monkeypatch.setattr(rounds, "measure_repetition", measure)
    compared = lab_of(tmp_path).compare_each(groups(), **ASKED)
    now = {path.name: path.stat().st_mtime_ns for path in lab.store.folder.iterdir()}
    assert kept.items() <= now.items()
    assert len(now) == 6, "three repetitions of two comparisons: none was measured twice"
    assert [one.plan.ended for one in compared] == [PRECISION] * 2
    whole = Lab(outputs=tmp_path / "whole", patience_s=10).compare_each(groups(), **ASKED)
    for one, uninterrupted in zip(compared, whole, strict=True):
        assert one.ratios().equals(uninterrupted.ratios())


@pytest.mark.alone
def test_a_process_is_measured_about_as_long_as_it_took_to_start(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "PILOT_ROUNDS", planner.PILOT_ROUNDS)
    comparison = lab_of(tmp_path).compare([toy(burn_ms=1.0), toy(burn_ms=2.0)], **{**ASKED, "block_s": 0.02})
    for m in comparison.measurements:
        start_s = m.repetition_s - m.rounds_s
        assert 0.4 * start_s < m.rounds_s < 2 * start_s or len({b.round for b in m.blocks}) == rounds.LEAST_ROUNDS


def test_rounds_that_are_late_end_sooner(tmp_path, monkeypatch):
    block = rounds._block
    monkeypatch.setattr(rounds, "PILOT_ROUNDS", 40)

    def slow(*arguments):
        time.sleep(0.25)
        return block(*arguments)

    monkeypatch.setattr(rounds, "_block", slow)
    comparison = lab_of(tmp_path).compare([toy(burn_ms=1.0)], **ASKED)
    numbers = {len({b.round for b in m.blocks}) for m in comparison.measurements}
    assert max(numbers) < 40
    assert min(numbers) >= rounds.LEAST_ROUNDS


def test_a_comparison_that_two_notebooks_ask_for_is_as_the_one_that_asks_for_more(tmp_path):
    lab = lab_of(tmp_path, Measures.LATER)
    lab.compare([toy(burn_ms=1.0)], **{**ASKED, "pilot": 4, "precision": 0.02})
    lab.compare([toy(burn_ms=1.0)], **{**ASKED, "pilot": 3, "precision": 0.9})
    (one,) = lab.comparisons.values()
    assert (one.comparison.pilot, one.comparison.precision) == (4, 0.02)


def test_what_is_kept_is_told_and_waiting_for_others_is_counted(tmp_path, monkeypatch):
    times = []
    lab = Lab(outputs=tmp_path / "outputs", patience_s=10, after_keeping=lambda: times.append(1))
    turned = lab_module.hold_machine

    @contextmanager
    def late(tell):
        with turned(tell) as waited_s:
            yield waited_s + 5.0

    monkeypatch.setattr(lab_module, "hold_machine", late)
    compared = lab.compare([toy(burn_ms=1.0)], **ASKED)
    assert len(times) == len({m.file for m in compared.measurements}) == 3
    assert lab.waited_s >= 15.0


def test_a_lab_that_measures_pilots_stops_there_and_another_goes_on(tmp_path):
    pilots = lab_of(tmp_path, Measures.LATER)
    compared = pilots.compare_each(groups(), **COARSE)
    assert not any(one.measurements for one in compared)
    pilots.pilots()
    assert repetitions(compared) == [3, 3]
    assert all(one.plan.ended is None for one in compared), "there is no budget of its own"
    with pytest.raises(Enough):
        pilots.sharpen(time.monotonic() + 60, until_told(1))
    assert sorted(repetitions(compared)) == [3, 4]
    read = lab_of(tmp_path, Measures.NOTHING).compare_each(groups(), **COARSE)
    assert repetitions(read) == repetitions(compared)


def test_an_unchanged_notebook_shows_what_the_last_run_left_and_a_changed_one_measures(tmp_path, monkeypatch, capsys):
    run = lab_of(tmp_path, Measures.LATER)
    compared = run.compare([toy(burn_ms=1.0)], **COARSE)
    run.pilots()
    files = {f"measurements/{m.file}.parquet": "" for m in compared.measurements}
    manifest.path_of(run.folder, "toys").parent.mkdir()
    manifest.write(manifest.path_of(run.folder, "toys"), {"parameters": {"settings": COARSE}, "files": files})

    def measures(burn_ms=1.0, **changed):
        settings = {**COARSE, "margin": 0.05, **changed}
        study = Study("toys", title="Toys", question="", settings=settings, outputs=run.folder)
        study.compare([toy(burn_ms=burn_ms)])
        with monkeypatch.context() as patch, suppress(Enough):
            patch.setattr(Asked, "repeat", Mock(side_effect=Enough))
            study.measure()
            return False
        return True

    assert not measures()
    assert "or more minutes" in capsys.readouterr().err, "it is said how to go on"
    assert measures(burn_ms=2.0), "that is new"
    assert measures(budget_s=90.0), "more of it is asked for"
    assert measures(precision=0.002)


@pytest.mark.parametrize(("asked", "seconds"), [(ASKED, 60), (COARSE, 0.2)], ids=["precise", "too late"])
def test_time_is_not_spent_beyond_its_end_or_where_nothing_is_wanted(tmp_path, started, asked, seconds):
    lab = lab_of(tmp_path, Measures.LATER)
    lab.compare_each(groups(), **asked)
    lab.pilots()
    started.clear()
    lab.sharpen(time.monotonic() + seconds)
    assert not started
    lab_of(tmp_path, Measures.LATER).sharpen(time.monotonic() + 60)  # of nothing


def test_time_goes_where_it_narrows_most(tmp_path, monkeypatch):
    noisy, quiet = groups()
    block = rounds._block

    def noise(entry, *details):
        measured, own = block(entry, *details), entry.measurement
        uneven = entry.job.condition in noisy and own.repetition % 2 and own.role == "baseline"
        return measured.model_copy(update={"wall_s": measured.wall_s * (1.5 if uneven else 1.0)})

    monkeypatch.setattr(rounds, "_block", noise)
    lab = lab_of(tmp_path, Measures.LATER)
    compared = lab.compare_each([noisy, quiet], **COARSE)
    lab.pilots()
    with pytest.raises(Enough):
        lab.sharpen(time.monotonic() + 60, until_told(3))
    of_noisy, of_quiet = repetitions(compared)
    assert of_noisy > of_quiet


def test_a_lab_that_measures_nothing_says_what_is_not_there(tmp_path, started):
    lab = lab_of(tmp_path, Measures.NOTHING)
    with pytest.raises(NotMeasured, match=r"toy.*nothing is to be measured now"):
        lab.compare_each(groups(), **ASKED)
    with pytest.raises(NotMeasured, match="the machine's limits on cpu"):
        lab.ceiling("cpu")
    with pytest.raises(NotMeasured, match="the timer of"):
        lab.check_timers([toy()])
    lab_of(tmp_path).certify([toy()])
    started.clear()
    with pytest.raises(NotMeasured, match=r"2 of 2 training runs of toy"):
        lab.train([toy()], seeds=[0, 1], epochs=1)
    with pytest.raises(NotMeasured, match=r"1 at toy batch 32"):
        lab.compare([toy()], **ASKED)
    assert not started
    lab_of(tmp_path).train([toy()], seeds=[0], epochs=1)
    started.clear()
    assert len(lab.train([toy()], seeds=[0], epochs=1).runs()) == 1
    assert not started


@pytest.fixture
def uncertified(monkeypatch):
    """The gate would refuse what misbehaves before it is timed."""
    monkeypatch.setattr(Lab, "certify", lambda self, conditions: all_the_same(conditions))


@pytest.mark.usefixtures("uncertified")
@pytest.mark.parametrize(("how", "again"), [("die", 2), ("raise", 0)], ids=["crash", "refusal"])
def test_what_crashed_in_a_comparison_is_measured_again_by_another_lab_and_a_refusal_is_a_result(tmp_path, how, again):
    conditions, lab = [toy(burn_ms=1.0), toy(burn_ms=1.0, misbehave=how), toy(burn_ms=2.0)], lab_of(tmp_path)
    first = lab.compare(conditions, **ASKED)
    assert first.ratio(conditions[2]).processes == 3, "the others are measured"
    assert first.failures()["crashed"].tolist() == [again > 0]
    labs = (lab, lab_of(tmp_path, Measures.NOTHING), lab_of(tmp_path))
    counts = [one.compare(conditions, **ASKED).ratio(conditions[2]).processes for one in labs]
    assert counts == [3, 3, 3 + again]


@pytest.mark.usefixtures("uncertified")
def test_a_process_that_crashed_is_replaced_by_another(tmp_path):
    flaky = toy(burn_ms=1.0, misbehave="once", flag=str(tmp_path / "flag"))
    comparison = lab_of(tmp_path).compare([toy(burn_ms=1.0), flaky], **ASKED)
    assert comparison.ratio(flaky).processes == 3
    assert comparison.throughput()["failed"].tolist() == [0, 1]
    assert comparison.failures().empty


@pytest.mark.usefixtures("uncertified")
@pytest.mark.parametrize(("how", "again"), [("die", True), ("raise", False)], ids=["crash", "refusal"])
def test_a_training_run_that_failed_is_shown_where_nothing_is_measured(tmp_path, started, how, again):
    asked = {"conditions": [toy(burn_ms=1.0), toy(misbehave=how)], "seeds": [0], "epochs": 1}
    lab = lab_of(tmp_path)
    first = lab.train(**asked)
    assert first.failures()["crashed"].tolist() == [again]
    started.clear()
    for one in (lab, lab_of(tmp_path, Measures.NOTHING)):
        assert one.train(**asked).runs().equals(first.runs())
    assert not started
    with pytest.raises(NotMeasured, match=r"2 of 4 training runs of toy"):
        lab_of(tmp_path, Measures.NOTHING).train(**{**asked, "seeds": [0, 1]})
    lab_of(tmp_path).train(**asked)
    assert started == asked["conditions"][1:] * again


@pytest.mark.parametrize(("how", "again"), [("die", True), ("raise", False)], ids=["crash", "refusal"])
def test_what_could_not_be_checked_is_shown_where_nothing_is_measured(tmp_path, monkeypatch, how, again):
    made = []
    for module, name in ((gate, "certify"), (timer_check, "check")):
        make = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, make=make, name=name: made.append(name) or make(*given))
    failing, lab = toy(misbehave=how), lab_of(tmp_path)
    for ask in (lambda one: [*one.certify([failing]).values()], lambda one: one.check_timers([failing])):
        made.clear()
        (first,) = ask(lab)
        assert first.crashed == again
        for other in (lab, lab_of(tmp_path, Measures.NOTHING)):
            assert repr(ask(other)) == repr([first])
        ask(lab_of(tmp_path))
        assert len(made) == 1 + again, made
