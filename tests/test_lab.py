"""Measuring end to end, with a framework in numpy that misbehaves when told to: that costs its own measurement only."""

import contextlib
import itertools
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from fixed_lab import FixedLab, all_the_same
from patience import until

from benchlib import cache as results
from benchlib import env_vars, frameworks, progress, scratch, workloads
from benchlib import lab as lab_module
from benchlib.condition import Condition
from benchlib.data import orders
from benchlib.equivalence import gate, trials
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.lab import Lab, Measures
from benchlib.provenance import fingerprint, installed
from benchlib.runner import epochs, interference, process_group, processes, recording, rounds, worker_sessions
from benchlib.runner import machine_lock as turn_module
from benchlib.runner.interference import NO_CPU
from benchlib.runner.jobs import INITIAL_SEED, prepare_job
from benchlib.runner.machine_lock import hold_machine
from benchlib.stats.comparison import (
    DISTURBED,
    MODELS_DIFFER,
    MODELS_NOT_CHECKED,
    NO_DIFFERENCE,
    NOT_MEASURED,
    SLOWER,
    SLOWS_DOWN,
)
from benchlib.stats.planner import BUDGET, FAILED, PILOT, PRECISION
from benchlib.worker.warmup import SLOWING

DOUBLES = Path(__file__).parent / "doubles"
QUICK = {"repetitions": 2, "rounds": 3, "block_s": 0.02}

pytestmark = pytest.mark.usefixtures("toy_framework")


@pytest.fixture
def lab(tmp_path):
    return FixedLab(outputs=tmp_path / "outputs", patience_s=5)


@pytest.fixture(autouse=True)
def neighbours_unseen(request, monkeypatch):
    """What else goes on on this machine is no business of a test, unless it asks for ``neighbours_seen``."""
    if "neighbours_seen" not in request.fixturenames:
        monkeypatch.setattr(interference, "_too_much", lambda *_: False)


@pytest.fixture
def neighbours_seen():
    """What else goes on on this machine is what the test is about."""


def toy(**hyperparameters):
    return Condition(workload="toy", framework="toy", hyperparameters=hyperparameters)


@pytest.fixture(scope="module")
def measured_before():
    """What :func:`compared` has measured, once for all tests."""
    return {}


@pytest.fixture
def compared(lab, measured_before, tmp_path_factory):
    """Two conditions compared as ``QUICK`` says, in a folder of which ``lab`` has a copy."""
    if not measured_before:
        folder = tmp_path_factory.mktemp("compared")
        comparison = FixedLab(outputs=folder).compare([toy(), toy(burn_ms=3.0)], **QUICK)
        measured_before.update(folder=folder, comparison=comparison)
    shutil.copytree(measured_before["folder"], lab.folder)
    return measured_before["comparison"]


def workers_alive(parent=None):
    """Workers of this process, or of ``parent`` (a pid, of a process that may be dead)."""
    alive = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            ours = process_group.WORKER in command and command[-1] == str(parent or os.getpid())
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process.pid)
        except psutil.Error:
            continue
    return alive


@pytest.mark.alone
def test_a_slower_condition_is_seen_and_the_control_shows_no_winner(lab):
    comparison = lab.compare([toy(), toy(burn_ms=6.0)], repetitions=4, rounds=4, block_s=0.03)
    ratios = comparison.ratios().set_index("role")
    assert ratios.loc["condition", "verdict"] == SLOWER
    assert 0.25 < ratios.loc["condition", "ratio"] < 0.45  # 2 ms against 6 ms
    assert ratios.loc["control", "processes"] == 4
    assert 0.8 < ratios.loc["control", "ratio"] < 1.25
    assert not workers_alive()


def test_a_comparison_records_what_it_takes_to_do_it_again(lab, compared):
    frame = lab.measurements()
    assert len(frame) == 2 * 3  # two repetitions of baseline, control, condition
    for column in ("label", "seed", "versions", "device", "lane", "cpu", "code", "commit", "started_utc"):
        assert frame[column].notna().all(), column
    measurement = lab.store.all()[0]
    assert measurement.versions["toy"] == "1.0"
    assert {*installed._imported_modules("toy")} > (hooks := {"sitecustomize", "usercustomize"}), "Python runs them"
    assert set(measurement.packages) - hooks == {"numpy", "files of numpy"}, "all that the toy needs"
    assert measurement.built["weights_sha256"] == measurement.built["weights_file_sha256"]
    assert [block.round for block in results.final_takes(measurement.blocks)] == [0, 1, 2], "however often taken"
    assert measurement.trace, "every block is followed by a sample"
    assert measurement.first_step_s > 0.0015
    assert measurement.settings == {"threads": 1}, "as the framework reads them back"
    assert measurement.warm_up_steps >= 8
    assert measurement.memory["peak"] >= measurement.memory["after_import"] > 10


def test_conditions_are_measured_one_at_a_time(compared):
    for repetition in (0, 1):
        together = [m for m in compared.measurements if m.repetition == repetition]
        blocks = sorted((block.started_s, block.started_s + block.wall_s) for m in together for block in m.blocks)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(blocks))
    assert all(block.idle_cpu_s <= 0.02 for m in compared.measurements for block in m.blocks), "the others sleep"


def test_the_order_within_a_round_is_random(lab, monkeypatch):
    monkeypatch.setattr(rounds, "LATE", 100)  # a busy machine may be slow
    comparison = lab.compare([toy(), toy(burn_ms=3.0)], repetitions=2, rounds=12, block_s=0.005)
    orders = set()
    for repetition, number in itertools.product((0, 1), range(12)):
        together = [m for m in comparison.measurements if m.repetition == repetition]
        takes = {m.role: next(block for block in m.blocks if block.round == number) for m in together}
        by_clock = sorted(takes, key=lambda role: takes[role].started_s)
        assert [takes[role].position for role in by_clock] == [0, 1, 2], "the position is the place in time"
        orders.add(tuple(by_clock))
    assert len(orders) >= 4, "of the 6 orders, 24 rounds show fewer than 4 less than once in 10**6 times"


def test_what_is_measured_is_not_measured_again(lab, compared):
    files = {path: path.stat().st_mtime_ns for path in lab.store.folder.iterdir()}
    again = FixedLab(outputs=lab.folder).compare([toy(), toy(burn_ms=3.0)], **QUICK)
    assert {path: path.stat().st_mtime_ns for path in lab.store.folder.iterdir()} == files
    assert again.ratios().equals(compared.ratios())
    more = lab.compare([toy(), toy(burn_ms=3.0)], **{**QUICK, "repetitions": 3})
    assert len(set(lab.store.folder.iterdir()) - set(files)) == 1, "a third repetition is all that was missing"
    assert len(more.measurements) == 9


def test_other_code_is_measured_again(lab, compared, monkeypatch):
    before = len(list(lab.store.folder.iterdir()))
    monkeypatch.setattr(fingerprint, "digest", lambda condition, procedure: "changed")
    lab.compare([toy(), toy(burn_ms=3.0)], **QUICK)
    assert len(list(lab.store.folder.iterdir())) == 2 * before


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """Changes a file of a copy of the doubles, which is in use instead of them."""
    folder = tmp_path / "doubles"
    shutil.copytree(DOUBLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv(env_vars.WORKER_PATH, str(folder))
    monkeypatch.setattr(fingerprint, "_loaded", {})
    for package in (frameworks, workloads):
        own = str(folder / package.__name__.rpartition(".")[2])
        monkeypatch.setattr(package, "__path__", [own, *(one for one in package.__path__ if "doubles" not in one)])

    def edit(file="workloads/toy/toy.py", text="WIDTH = 1\n"):
        path = folder / file
        path.write_text(path.read_text() + text)
        return path

    return edit


def kept(lab):
    return len(list(lab.store.folder.glob("*.parquet")))


@pytest.mark.parametrize("file", ["workloads/toy/toy.py", "toy_launcher.py"])  # the other: what only workers import
@pytest.mark.parametrize("when", ["between repetitions", "in a repetition"])
def test_a_comparison_ends_where_a_file_is_edited_meanwhile(lab, edited, monkeypatch, when, file):
    asked = {"conditions": [toy(), toy(burn_ms=3.0)], **QUICK}
    path = edited(file, text="")
    before, times = path.read_text(), path.stat()
    if when == "between repetitions":
        monkeypatch.setattr(lab, "_after_keeping", lambda: edited(file))
    else:
        monkeypatch.setattr(recording, "memory", lambda *_: kept(lab) and edited(file))
    with pytest.raises(BenchlibError, match=str(path)):
        lab.compare(**asked)
    assert kept(lab) == 1, "what was measured before is there"
    path.write_text(before)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # a folder of plug-ins is known by names and times
    monkeypatch.setattr(lab, "_after_keeping", lambda: None)
    monkeypatch.setattr(recording, "memory", lambda *_: None)
    assert len(lab.compare(**asked).measurements) == 6
    assert kept(lab) == 2, "and is used again with the code that it is of"


@pytest.mark.parametrize("file", ["workloads/toy/toy.py", "toy_launcher.py", "added.py"])
def test_no_certificate_is_of_a_file_that_is_edited_meanwhile(lab, edited, monkeypatch, file):
    def run(*asked, of_gate=gate.run):
        for computed in of_gate(*asked):
            path = edited(file) if file != "added.py" else edited("toy_launcher.py", "").with_name(file)
            path.touch()
            yield computed

    monkeypatch.setattr(gate, "run", run)
    with pytest.raises(BenchlibError, match=rf"/{file}: changed while it was measured"):
        lab.compare([toy(), toy(burn_ms=3.0)], **QUICK)
    assert not list(lab.folder.glob("certificates/*"))


def test_training_ends_where_a_file_is_edited_and_keeps_the_run_that_had_begun(lab, edited, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(recording, "first_step", lambda *_: edited())
        with pytest.raises(BenchlibError, match=r"toy\.py: changed"):
            lab.train([toy()], seeds=[0], epochs=1)
    assert not kept(lab)
    after_first = []
    with monkeypatch.context() as patch:
        patch.setattr(recording, "memory", lambda *_: after_first.append(edited()))
        with pytest.raises(BenchlibError, match=r"toy\.py: changed"):
            lab.train([toy()], seeds=[0, 1, 2], epochs=2)
    assert kept(lab) == len(after_first) == 1


def test_a_file_that_this_process_has_imported_before_it_was_edited_is_refused(lab, edited):
    lab.certify([toy()])
    path = edited("workloads/toy/workload.py")
    with pytest.raises(BenchlibError, match=f"{path}: changed since this process imported it"):
        lab.certify([toy()])


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("die", ["died in 'first_step' (signal SIGKILL)", "last words"]),
        ("hang", ["hung in 'first_step': silent for 5 s"]),
        ("hold the GIL", ["hung in 'first_step': silent for 5 s"]),
        ("rubbish", ["talked rubbish in 'first_step'", "not a message"]),
        ("raise", ["failed in 'first_step': RuntimeError: out of toys", "toy framework: a line on standard output"]),
        ("negative", ["impossible times"]),
        ("nan", ["impossible times"]),
        ("clock", ["impossible times", "its clock is wrong"]),
        ("die in a block", ["died in 'block' (signal SIGKILL)", "last words"]),
        ("hang in a block", ["hung in 'block': silent for"]),
        ("set threads", ["threads was 1 before workloads/toy/toy.py was imported, and is 2 after the last one"]),
        ("nan in a block", ["impossible times"]),
        ("raise half a character", ["failed in 'first_step': RuntimeError: out of ?"]),
    ],
)
def test_a_worker_that_misbehaves_costs_its_own_measurement(lab, monkeypatch, how, told):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # so that it is benchlib which sees that nothing said is lost
    monkeypatch.setattr(lab, "certify", all_the_same)  # the gate would refuse it before
    comparison = lab.compare([toy(), toy(misbehave=how), toy(burn_ms=3.0)], repetitions=1, rounds=2, block_s=0.01)
    failures = comparison.failures()
    assert list(failures["label"]) == [str(toy(misbehave=how))]
    for words in told:
        assert words in failures["failure"].iloc[0]
    verdicts = comparison.ratios().set_index("label")["verdict"]
    assert verdicts[str(toy(misbehave=how))] == NOT_MEASURED
    assert comparison.ratio(toy(burn_ms=3.0)).processes == 1
    assert not workers_alive()
    assert lab.store.all()[0].ok, "what went well is on disk"


def test_a_comparison_ends_where_only_its_control_is_left(lab, monkeypatch):
    monkeypatch.setattr(Lab, "certify", lambda self, conditions: all_the_same(conditions))
    asked = {"precision": 0.001, "budget_s": 6, "block_s": 0.01, "pilot": 5}
    for repetitions in (2, 4):  # another lab tries it again
        comparison = Lab(outputs=lab.folder).compare([toy(), toy(misbehave="die in a block")], **asked)
        assert (comparison.ended, len(comparison.measurements)) == (FAILED, 3 * repetitions)


@pytest.mark.parametrize(
    ("how", "told"),
    [("broken file", "predictions.npy cannot be read"), ("few predictions", "predictions of shape (359,) for (360,)")],
)
def test_a_worker_that_writes_what_cannot_be_used_has_failed(lab, monkeypatch, how, told):
    if how == "broken file":
        certificate = lab.certify([toy(misbehave=how)])[toy(misbehave=how).key]
        assert "wrote unusable results: computed.npz cannot be read" in certificate.reason
    monkeypatch.setattr(lab, "certify", all_the_same)
    runs = lab.train([toy(misbehave=how), toy()], seeds=[0], epochs=1).runs()
    assert runs["epochs"].tolist() == [0, 1]
    assert f"wrote unusable results: {told}" in runs["failure"].iloc[0]
    assert not workers_alive()


def ours(*arguments, **details):
    raise AttributeError("a fault of our own")


@pytest.mark.alone
@pytest.mark.parametrize(("do", "after_s", "burn_ms"), [("first_step", 0.1, 200.0), ("warm_up", 0.05, 30.0)])
def test_a_worker_that_is_stopped_before_its_rounds_is_said_to_be(lab, monkeypatch, do, after_s, burn_ms):
    asks, stopped = processes.WorkerProcess.ask, []

    def ask(worker, asked, *arguments, **details):
        if asked == do and not stopped:
            stopped.append(worker)
            stop(worker, after_s)
        return asks(worker, asked, *arguments, **details)

    monkeypatch.setattr(lab, "certify", all_the_same)
    monkeypatch.setattr(processes.WorkerProcess, "ask", ask)
    lab.patience_s = 60
    measured = lab.compare([toy(burn_ms=burn_ms)], repetitions=1, rounds=1, block_s=0.01).measurements
    seen = sorted((getattr(m, f"{do}_disturbed_by"), getattr(m, f"{do}_s") > STOPPED_S) for m in measured)
    assert seen == [("", False), (NO_CPU, True)]


@pytest.mark.parametrize("where", ["knobs.find", "env_vars.omissions", "knobs.for_session"])
def test_a_worker_that_could_not_be_started_leaves_nothing(tmp_path, monkeypatch, where):
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(f"benchlib.runner.processes.{where}", ours)
    with pytest.raises(AttributeError, match="a fault of our own"):
        processes.WorkerProcess(toy(), seed=0)
    assert not list(tmp_path.iterdir())
    assert not workers_alive()


PARENTS = {  # what the parent does with a worker, and the module that does it
    "starting": (processes.knobs, "environment"),
    "building": (recording, "record_build"),
    "a block": (recording, "require_plausible"),
    "a trace": (worker_sessions.Sampler, "tick"),
    "memory": (rounds.recording, "memory"),
}


@pytest.mark.parametrize("where", PARENTS)
def test_a_fault_of_the_parent_in_a_comparison_is_no_workers_failure(lab, monkeypatch, where):
    monkeypatch.setattr(lab, "certify", all_the_same)
    lab.compare([toy()], repetitions=1, rounds=1, block_s=0.01)
    monkeypatch.setattr(*PARENTS[where], ours)
    with pytest.raises(AttributeError, match="a fault of our own"):
        lab.compare([toy()], repetitions=2, rounds=1, block_s=0.01)
    assert not workers_alive()
    assert len(lab.measurements()) == 2, "what was measured before is kept"
    assert lab.measurements()["failure"].isna().all()


@pytest.mark.parametrize("where", [(trials, "_read"), (processes.knobs, "environment")])
def test_a_fault_of_the_parent_in_the_gate_is_no_workers_failure(lab, monkeypatch, where):
    monkeypatch.setattr(*where, ours)
    with pytest.raises(AttributeError, match="a fault of our own"):
        lab.certify([toy().but(framework="twin")])
    assert not workers_alive()
    assert not list(lab.folder.glob("certificates/*"))


def test_another_lab_that_has_measured_meanwhile_is_believed(lab, monkeypatch):
    asked = {"repetitions": 2, "rounds": 2, "block_s": 0.01}
    turns = []

    @contextmanager
    def after_another(tell):
        if not turns:  # the other one had its turn while this one waited for its own
            turns.append(1)
            FixedLab(outputs=lab.folder).compare([toy()], **asked)
        yield 0.0

    lab.certify([toy()])
    monkeypatch.setattr(lab_module, "hold_machine", after_another)
    mine = lab.compare([toy()], **asked)
    saved = {path: path.stat().st_mtime_ns for path in lab.store.folder.iterdir()}
    assert len(saved) == 2
    assert [m.started_utc for m in mine.measurements] == [m.started_utc for m in lab.store.all()]
    assert {m.file for m in mine.measurements} == {path.stem for path in saved}


def test_whoever_stops_asking_the_gate_leaves_no_worker(lab, tmp_path):
    gated = gate.run({toy(): 4, toy(burn_ms=1000.0): 4}, tmp_path, 60)  # the second would take long
    next(gated)
    assert workers_alive()
    gated.close()
    assert not workers_alive()


def test_a_model_that_another_process_checked_while_this_one_waited_is_not_checked_again(lab, monkeypatch):
    first, second = toy(burn_ms=1.0), toy(burn_ms=1.5)
    waiting = []

    @contextmanager
    def waited(tell):
        if not waiting:
            waiting.append(tell)
            FixedLab(outputs=lab.folder).certify([first])
        with hold_machine(tell) as waited_s:
            yield waited_s

    monkeypatch.setattr(lab_module, "hold_machine", waited)
    certificates = lab.certify([first, second])
    assert [certificates[one.key].same for one in (first, second)] == [True, True]
    paths = [lab.certificate_path(gate.adapt(one)) for one in (first, second)]
    assert certificates[first.key] == results.load(Certificate, paths[0])
    assert [path.stem in lab._own for path in paths] == [False, True], "the other made it"


def test_a_certificate_is_kept_as_soon_as_it_is_made(lab, monkeypatch):
    of_group = gate._compute_group

    first = threading.Event()

    def stopped(group, *others):
        if group.first.framework != "toy":
            assert first.wait(30)
            raise KeyboardInterrupt
        yield from of_group(group, *others)

    save = lab._save
    monkeypatch.setattr(lab, "_save", lambda *given: (save(*given), first.set()))
    twin = toy().but(framework="twin")
    with monkeypatch.context() as patch:
        patch.setattr(gate, "_compute_group", stopped)
        with pytest.raises(KeyboardInterrupt):
            lab.certify([toy(), twin])
    monkeypatch.setattr(gate, "_compute_group", lambda *_: pytest.fail("it was made again"))
    assert lab.certify([toy()])[toy().key].verdict == "same"


def test_a_model_that_differs_is_shown_as_such_is_not_timed_and_gets_no_ratio(lab, capsys):
    twin = toy().but(framework="twin")
    third = toy(burn_ms=3.0)
    comparison = lab.compare([toy(), twin, third], **QUICK)
    assert {m.condition for m in comparison.measurements} == {toy(), third}, "what gets no ratio is not timed"
    certificate = comparison.certificates[twin.key]
    assert certificate.verdict == "different"
    outputs = next(check for check in certificate.checks if check.name == "outputs")
    assert 0.005 < outputs.difference < 0.02  # the twin's outputs are 1 % larger
    row = comparison.ratios().set_index("label").loc[str(twin)]
    assert row["verdict"] == MODELS_DIFFER
    assert row[["ratio", "low", "high"]].isna().all()
    why = f"outputs: {outputs.why}"
    assert why in row["why"]
    assert why in str(certificate)
    assert why in comparison._repr_html_()
    assert why in capsys.readouterr().err
    assert comparison.throughput()["samples_per_second"].isna().tolist() == [False, True, False]
    for conditions in ([twin, toy()], [toy(), twin]):
        untimed = lab.compare(conditions, **QUICK)
        assert (untimed.measurements, untimed.ended) == ([], FAILED)
        assert untimed.ratios().set_index("role").loc["condition", "verdict"] == MODELS_DIFFER
        assert untimed._repr_html_()
    later = Lab(outputs=lab.folder, measures=Measures.LATER)
    later.compare([toy(), twin])
    assert not later.pilots(), "nor where the time is shared"
    later.sharpen(time.monotonic() + 60)
    unchecked = replace(comparison, certificates={})
    assert unchecked.ratios().set_index("label").loc[str(twin), "verdict"] == MODELS_NOT_CHECKED
    verdicts = Lab(outputs=lab.folder).certify([toy(), twin]).values()
    assert sorted(c.verdict for c in verdicts) == ["different", "same"]
    for path in (lab.folder / "certificates").iterdir():
        path.write_text(path.read_text()[:50])
    assert lab.certify([twin])[twin.key].verdict == "different", "a cut certificate is made again"


def test_training_learns_and_a_run_that_misses_the_threshold_is_censored(lab):
    runs = lab.train([toy()], seeds=[0, 1], epochs=2, threshold=0.8, most_epochs=5).runs()
    assert runs["reached"].all()
    assert (runs["metric"] > 0.8).all()
    assert runs["metric"].nunique() == 2, "another seed is another run"
    missed = lab.train([toy()], seeds=[0], epochs=2, threshold=1.0, most_epochs=3).runs().iloc[0]
    assert not missed["reached"]
    assert missed["epochs"] == 3
    assert missed[["epochs_to_threshold", "seconds_to_threshold"]].isna().all()


def test_a_parent_that_gets_an_answer_late_loses_no_training_run(lab, monkeypatch):
    """The worker goes on meanwhile: its next block is over when this process begins to wait for it."""
    at_once = epochs.Watch.end

    def late(watch):
        seen = at_once(watch)
        time.sleep(0.3)
        return seen

    monkeypatch.setattr(epochs.Watch, "end", late)
    assert lab.train([toy(burn_ms=10.0)], seeds=[0], epochs=1).runs()["failure"].tolist() == [None]


def test_the_order_of_the_data_is_the_parents_whatever_numpy_a_worker_has(lab, monkeypatch):
    monkeypatch.setattr(orders, "EPOCHS", 2)  # so that the third epoch's is in another file
    quick = {"burn_ms": 0.1}
    runs = lab.train([toy(**quick), toy(misbehave="other stream", **quick)], seeds=[0], epochs=3)
    curves = runs.curves().groupby("label", sort=False)
    one, other = (curve[["loss", "metric"]].to_numpy() for _, curve in curves)
    assert len(one) == 3
    assert (one == other).all()


def test_a_worker_that_takes_another_order_than_it_was_given_has_failed(lab, monkeypatch):
    certificate = lab.certify([toy(misbehave="own order")])[toy(misbehave="own order").key]
    assert "used another order than it was given" in certificate.reason
    monkeypatch.setattr(lab, "certify", all_the_same)
    comparison = lab.compare([toy(), toy(misbehave="own order")], repetitions=1, rounds=1, block_s=0.01)
    (failure,) = comparison.failures()["failure"]
    assert "used another order than it was given" in failure
    runs = lab.train([toy(misbehave="own order later")], seeds=[0], epochs=3).runs()
    assert runs["epochs"].tolist() == [1], "what was trained before is kept"
    assert "used another order than it was given" in runs["failure"].iloc[0]


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from fixed_lab import FixedLab, all_the_same
from benchlib.condition import Condition
from benchlib.runner import machine_lock as turn
turn.LOCK = sys.argv[1]
toy = Condition(workload="toy", framework="toy")
slower = toy.but(hyperparameters={{"burn_ms": 3.0}})
FixedLab(outputs={outputs!r}).compare([toy, slower], repetitions=4, rounds=3, block_s=0.2)
"""


@pytest.mark.slow
def test_after_kill_9_no_worker_is_left_and_it_goes_on_where_it_stopped(lab):
    killed = KILLED.format(outputs=str(lab.folder), tests=str(Path(__file__).parent))
    script = [sys.executable, "-c", killed, str(turn_module.LOCK)]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(DOUBLES.parents[1]), str(DOUBLES)])}
    parent = subprocess.Popen(script, stderr=subprocess.DEVNULL, env=surroundings)
    until(lambda: len(list(lab.store.folder.glob("*.parquet"))) >= 2, 120, 0.02)
    time.sleep(0.3)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: not workers_alive(parent.pid))  # the system ends them at once, when it comes to that
    kept = {path.name: path.stat().st_mtime_ns for path in lab.store.folder.glob("*.parquet")}
    assert 2 <= len(kept) < 4
    subprocess.run(script, check=True, stderr=subprocess.DEVNULL, env=surroundings)
    after = {path.name: path.stat().st_mtime_ns for path in lab.store.folder.glob("*.parquet")}
    assert len(after) == 4
    assert kept.items() <= after.items(), "what was measured before the kill is as it was"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"seeds": [0, 2**63]}, r"Training: seeds\.1: 9223372036854775808: the most is 4,294,967,295"),
        ({"seeds": [-1]}, r"Training: seeds\.0: -1: "),
        ({"epochs": 0}, "Training: epochs: 0: "),
        ({"most_epochs": 10**30}, "Training: most_epochs: .*: the most is 100,000"),
        ({"threshold": 60}, "threshold 60: accuracy is between 0 and 1"),
    ],
)
def test_training_that_cannot_be_is_refused_before_anything_starts(lab, asked, told):
    with pytest.raises(BenchlibError, match=told):
        lab.train([toy()], **{"seeds": [0], "epochs": 1, **asked})
    assert not lab.folder.exists()


@pytest.mark.parametrize(
    ("conditions", "asked", "told"),
    [
        ([], {}, "the grid is empty"),
        ([{}, {}], {}, "the same condition twice"),
        ([{"device": "cuda"}], {}, "device 'cuda'"),
        ([{"threads": 4096}], {}, "threads 4096, but this machine has"),
        ([{}], {"precision": 3}, "precision 3: give the half-width as a share"),
        ([{}], {"margin": 1}, "margin 1"),
    ],
)
def test_a_comparison_that_cannot_be_is_refused_before_anything_starts(tmp_path, conditions, asked, told):
    lab = Lab(outputs=tmp_path / "outputs")
    with pytest.raises(BenchlibError, match=told):
        lab.compare([toy().but(**one) for one in conditions], **asked)
    assert not lab.folder.exists(), "nothing was started, prepared or written"


def test_the_time_left_does_not_count_the_time_that_others_measured(lab, monkeypatch, capsys):
    clock = [0.0]

    @contextlib.contextmanager
    def turn_after_an_hour(tell):
        clock[0] += 3600
        yield 3600.0

    monkeypatch.setattr(lab_module, "hold_machine", turn_after_an_hour)
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    lab.compare([toy(), toy(burn_ms=3.0)], repetitions=3, rounds=2, block_s=0.01)
    lab.train([toy()], seeds=[0, 1, 2], epochs=1)
    said = capsys.readouterr().err.splitlines()
    left = [line for line in said if " left" in line]
    assert len(left) >= 4, said
    assert all(", 0 s left" in line for line in left), left


def test_two_labs_measure_one_after_the_other(tmp_path, monkeypatch):
    script = """
import sys
from pathlib import Path
from benchlib.runner import machine_lock as turn
turn.LOCK = Path(sys.argv[1])
with turn.hold_machine(print):
    print("in", flush=True)
    input()
"""
    monkeypatch.setattr(turn_module, "LOCK", tmp_path / "machine.lock")  # nobody else's measuring is in between
    with subprocess.Popen(
        [sys.executable, "-c", script, turn_module.LOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "in\n"
        lines = []
        waiting = threading.Thread(target=_hold_turn, args=(lines,))
        waiting.start()
        waiting.join(0.5)
        assert lines == ["waiting: another benchlib measures on this machine"]
        other.stdin.write("\n")
        other.stdin.flush()
        waiting.join(10)
        assert lines[1:] == ["the machine is free: measuring", "held after 0.5 s or more"]


def _hold_turn(told):
    with hold_machine(told.append) as waited_s:
        told.append(f"held after {0.5 if waited_s >= 0.5 else waited_s} s or more")


def test_a_worker_that_dies_in_the_gate_is_reported_and_there_is_no_ratio(lab):
    comparison = lab.compare([toy(), toy(misbehave="raise")], repetitions=1, rounds=2, block_s=0.01)
    failures = comparison.failures()
    assert "out of toys" in failures.loc[failures["role"] == "gate", "failure"].iloc[0]
    assert comparison.certificates[toy().key].same, "its mates are checked all the same"
    assert not comparison.measurements, "the baseline is not timed against itself alone"
    assert "out of toys" in comparison.ratios()["why"].iloc[1]


@pytest.mark.alone
def test_a_worker_that_works_unasked_is_stopped_while_others_are_measured(lab, monkeypatch, neighbours_seen):
    monkeypatch.setattr(lab, "certify", all_the_same)
    comparison = lab.compare([toy(), toy(misbehave="spin")], repetitions=1, rounds=2, block_s=0.2)
    baseline = next(m for m in comparison.measurements if m.role == "baseline")
    takes = {number: [block for block in baseline.blocks if block.round == number] for number in range(2)}
    seen = [block for m in comparison.measurements if m.condition == toy() for block in m.blocks]
    assert any(block.disturbed and block.idle_cpu_s > 0.05 for block in seen), "by whoever comes first"
    assert all(blocks[-1].idle_cpu_s <= 0.05 for blocks in takes.values()), "and then held"
    assert not workers_alive()


def test_what_a_worker_has_forked_is_seen_stopped_with_it_and_ended(tmp_path, neighbours_seen):
    job = prepare_job(toy(misbehave="fork"), 0, tmp_path)
    with processes.WorkerProcess(job.condition, 0, 60) as worker:
        worker.finish_open()
        worker.ask("build", **job.document())
        worker.ask("first_step")
        (child,) = psutil.Process(worker.process.pid).children()
        own = os.getsid(worker.process.pid)
        assert until(lambda: os.getsid(child.pid) != own), "it has left, as what becomes a daemon does"
        mine = SimpleNamespace(cpu=psutil.Process(), process=SimpleNamespace(pid=os.getpid()), condition=job.condition)
        causes = []
        while not worker.restless:
            watch = interference.Watch(mine, [worker])
            time.sleep(0.5)
            causes.append(watch.end().disturbed_by)
            assert len(causes) < 60
        assert set(causes) - {""} == {interference.OTHERS}
        interference.hold_still([worker])
        assert until(lambda: child.status() == psutil.STATUS_STOPPED)
        worker.release()
        assert until(lambda: child.status() != psutil.STATUS_STOPPED)
    assert until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize("how", ["leave a thread", "print"])
def test_a_worker_that_leaves_a_thread_or_prints_is_measured_and_ends(lab, monkeypatch, how):
    monkeypatch.setattr(lab, "certify", all_the_same)
    started = time.monotonic()
    comparison = lab.compare([toy(), toy(misbehave=how)], repetitions=1, rounds=2, block_s=0.01)
    assert comparison.failures().empty
    assert comparison.ratio(toy(misbehave=how)).processes == 1
    assert not workers_alive()
    assert time.monotonic() - started < 600, "nobody waits for what sleeps an hour"


def test_a_block_that_others_disturb_is_taken_again_and_gives_no_verdict(lab, neighbours_seen):
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            comparison = lab.compare([toy(), toy(burn_ms=6.0)], repetitions=2, rounds=2, block_s=0.2)
        finally:
            other.kill()
    blocks = comparison.measurements[0].blocks
    assert len(blocks) == 2 * rounds.TAKES
    assert all(block.disturbed and block.others_cpu_s > 0.1 for block in blocks)
    assert comparison.throughput()["disturbed"].tolist() == [1.0, 1.0]
    frame = comparison.ratios()
    assert frame["verdict"].tolist() == [DISTURBED, DISTURBED]
    assert frame[["ratio", "low", "high"]].isna().all().all()
    assert not comparison.control.excludes(1)


STOPPED_S = 4.0


def stop(worker, after_s):
    """Stop a worker in a while, as a container is that is paused, and let it go on later."""
    for seconds, what in ((after_s, signal.SIGSTOP), (after_s + STOPPED_S, signal.SIGCONT)):
        threading.Timer(seconds, os.kill, (worker.process.pid, what)).start()


@pytest.mark.parametrize("number", [0, 2])
def test_a_worker_stopped_within_a_block_is_seen_and_the_block_taken_again(lab, monkeypatch, number):
    stopped, lab.patience_s = [], 60

    def block(entry, in_round, position, others, takes=rounds._block):
        role = entry.measurement.role
        if in_round == number and role == "control" and role not in stopped:
            stopped.append(role)
            stop(entry.worker, 0.05)
        return takes(entry, in_round, position, others)

    monkeypatch.setattr(rounds, "_block", block)
    comparison = lab.compare([toy()], repetitions=1, rounds=4, block_s=0.2)
    control = next(m for m in comparison.measurements if m.role == "control")
    assert control.ok, control.failure
    first, *again = [taken for taken in control.blocks if taken.round == number]
    assert first.wall_s > STOPPED_S
    assert first.disturbed
    assert first.disturbed_by in {interference.FAR_OFF, interference.NO_CPU}
    assert again, "it was taken again"
    assert again[-1].wall_s < STOPPED_S
    assert 0.5 < comparison.control.estimate < 2, "one block of four, 20 times as long, would have made it 0.47"
    assert comparison.ratios()["verdict"].tolist() == [NO_DIFFERENCE]
    (kept,) = [m for m in lab.store.all() if m.role == "control"]
    assert kept.blocks == control.blocks


@pytest.mark.parametrize("number", [1, 2])
def test_a_training_run_that_was_stopped_says_so(lab, monkeypatch, number):
    def ask(worker, do, *args, asks=processes.WorkerProcess.ask, **details):
        if do == "epoch" and details["number"] == number:
            stop(worker, 0.1)
        return asks(worker, do, *args, **details)

    monkeypatch.setattr(processes.WorkerProcess, "ask", ask)
    lab.patience_s = 60
    runs = lab.train([toy(burn_ms=15.0)], seeds=[0], epochs=3)
    long = [block for block in runs.measurements[0].blocks if block.wall_s > STOPPED_S]
    assert [block.epoch for block in long] == [number]
    assert long[0].disturbed_by in {interference.FAR_OFF, interference.NO_CPU}
    assert runs.runs()["disturbed_time"][0] > 0.25


@pytest.mark.alone
def test_a_condition_that_keeps_slowing_down_is_not_averaged(lab, neighbours_seen):
    slowing = toy(misbehave="slow down")
    comparison = lab.compare([toy(), slowing], repetitions=6, rounds=6, block_s=0.05)
    assert comparison.slows_down(slowing)
    assert not comparison.slows_down(toy())
    row = comparison.ratios().set_index("role").loc["condition"]
    assert (row["verdict"], math.isnan(row["ratio"])) == (SLOWS_DOWN, True)


def test_a_condition_whose_processes_were_slowing_down_when_warm_up_ended_is_not_averaged(lab):
    slower = toy(burn_ms=1.0)
    comparison = lab.compare([toy(), slower], repetitions=3, rounds=1, block_s=0.01)
    mine = [m for m in comparison.measurements if m.condition == slower]
    mine[0].steady = SLOWING
    assert not comparison.slows_down(slower), "one of three"
    mine[1].steady = SLOWING
    assert comparison.slows_down(slower)
    assert comparison.ratios().set_index("role").loc["condition", "verdict"] == SLOWS_DOWN


def test_a_run_is_kept_before_the_next_of_its_pair_trains(lab, monkeypatch):
    done = []

    def train(entry, others, settings, progress, trains=epochs._train):
        if done:
            raise KeyboardInterrupt
        done.append(entry.job.seed)
        trains(entry, others, settings, progress)

    with monkeypatch.context() as patch:
        patch.setattr(epochs, "_train", train)
        with pytest.raises(KeyboardInterrupt):
            lab.train([toy()], seeds=[0, 1], epochs=1)
    assert not workers_alive()
    assert lab.measurements()["seed"].tolist() == done


def test_no_condition_is_always_started_first(lab, tmp_path, monkeypatch):
    started = []

    def start(condition, *arguments):
        started.append(condition)
        raise processes.WorkerFailed("it was only to be started")

    monkeypatch.setattr(worker_sessions, "WorkerProcess", start)
    other = toy(burn_ms=1.0)
    job = {one: prepare_job(one, INITIAL_SEED, tmp_path) for one in (toy(), other)}
    together = [toy(), toy(), other]
    for repetition in range(40):  # the order is drawn by the name of the file, which differs from code to code
        place = {"kind": "comparison", "group": "group", "file": f"group-{repetition}", "role": "condition", "seed": 0}
        jobs = [job[one] for one in together]
        empty = [recording.begin("rounds", one, repetition=repetition, **place) for one in jobs]
        rounds.measure_repetition(empty, jobs, rounds.RoundSettings(block_s=0.01), 1, 1.0)
    assert len(started) == 120, "a baseline, its control and the other"
    assert {started[i] for i in range(0, 120, 3)} == {toy(), other}


@pytest.mark.alone
def test_the_timer_has_to_see_planted_work(lab):
    queued, forgetful = (toy(burn_ms=10.0).but(framework=name) for name in ("toy_queued", "toy_forgetful"))
    lab.patience_s = 60  # on a busy machine what is planted is worked off slowly
    checks = lab.check_timers([queued, forgetful])
    assert [check.ok for check in checks] == [True, False], checks
    assert checks[0].known_s > 0.1
    assert checks[1].share < 0.2


@pytest.mark.alone
def test_measured_to_a_precision_and_continued_to_a_finer_one(tmp_path):
    lab = Lab(outputs=tmp_path / "outputs", patience_s=20)
    coarse = lab.compare([toy(), toy(burn_ms=4.0)], precision=0.5, budget_s=60, block_s=0.03)
    assert coarse.plan.ended == PRECISION
    assert len({m.repetition for m in coarse.measurements}) == PILOT
    budget_s = coarse.plan.spent_s * 2
    finer = lab.compare([toy(), toy(burn_ms=4.0)], precision=0.001, budget_s=budget_s, block_s=0.03)
    assert finer.plan.ended == BUDGET
    assert finer.plan.more_processes > 0
    assert len({m.repetition for m in finer.measurements}) > PILOT
    before = sorted(path.stat().st_mtime_ns for path in lab.store.folder.iterdir())
    again = lab.compare([toy(), toy(burn_ms=4.0)], precision=0.5, budget_s=60, block_s=0.03)
    assert sorted(path.stat().st_mtime_ns for path in lab.store.folder.iterdir()) == before
    assert len(again.measurements) == len(finer.measurements), "what is there counts, whatever it was measured for"
