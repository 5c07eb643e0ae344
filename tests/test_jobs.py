"""Jobs: a comparison goes whole to one host, what comes back is rows of the cache, and nothing is measured twice."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import clusters
import pytest
from clusters import asked
from patience import until

from benchlib import env_vars
from benchlib.cache import Store
from benchlib.cli import main
from benchlib.cluster import engines, jobs
from benchlib.cluster.lab import VARIABLE, Lab, why_absent
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.lab import Measures, NotMeasured
from benchlib.provenance import installed, knobs
from benchlib.runner import interference

DOUBLES = Path(__file__).parent / "doubles"
ASKED = {"precision": 0.9, "budget_s": 0.1, "block_s": 0.02, "pilot": 3}


def toy(**hyperparameters):
    return Condition(workload="toy", framework="toy", hyperparameters=hyperparameters)


class Here(engines.Local):
    """Jobs are done in this process, as they are submitted."""

    submitted: list
    breaks: dict  # by the toy's milliseconds: how often it is killed before it ends

    def submit(self, name, command, log, gpus, node, without):
        if without:
            raise BenchlibError("there is no other machine")
        self.submitted.append(name)
        sent = json.loads(Path(command[-1]).read_text())
        burned = sent["conditions"][0]["hyperparameters"].get("burn_ms")

        def make(**choices):
            if self.breaks.get(burned, 0) > 0:
                self.breaks[burned] -= 1
                raise KeyboardInterrupt  # as if it was killed
            return Lab(on="", **choices)

        with contextlib.suppress(KeyboardInterrupt):
            jobs.work(Path(command[-1]), make)


@pytest.fixture
def engine(monkeypatch, toy_framework):
    monkeypatch.setattr(interference, "_too_much", lambda *_: False)
    monkeypatch.setattr(jobs, "POLL_S", 0.01)
    monkeypatch.setattr(Here, "submitted", [], raising=False)
    monkeypatch.setattr(Here, "breaks", {}, raising=False)
    monkeypatch.setitem(engines.ENGINES, "here", Here)
    return Here


def rows(measured):
    return sorted((m.file, m.role) for m in measured)


def test_a_comparison_is_one_job_and_its_rows_are_those_of_the_host_itself(engine, tmp_path, monkeypatch):
    pair = [toy(), toy(burn_ms=1.0)]
    comparison = Lab(outputs=tmp_path, on="here --anything").compare(pair, **ASKED)
    assert len(comparison.measurements) == 3 * 3
    assert all(proof.same for proof in comparison.certificates.values())
    before = rows(Store(tmp_path / "measurements").all())
    assert Lab(outputs=tmp_path).compare(pair, **ASKED).measurements[0].file in {file for file, _ in before}
    assert rows(Store(tmp_path / "measurements").all()) == before, "how it was sent is in no key"
    monkeypatch.setenv(VARIABLE, "here")
    assert len(Lab(outputs=tmp_path).compare(pair, **ASKED).measurements) == 9
    kernels = Lab(outputs=tmp_path, measures=Measures.NOTHING)
    assert len(kernels.compare(pair, **ASKED).measurements) == 9
    assert len(engine.submitted) == 1, "what is done is not sent again, whoever asks and with which options"
    with pytest.raises(NotMeasured, match="no host has"):
        kernels.compare([toy(burn_ms=3.0)], **ASKED)


def test_one_bad_job_stops_no_other_and_one_that_was_killed_goes_on(engine, tmp_path, capsys):
    engine.breaks = {1.0: 1, 3.0: 99}
    made = Lab(outputs=tmp_path, on="here").compare_each([[toy(burn_ms=3.0)], [toy(burn_ms=1.0)], [toy()]], **ASKED)
    assert [len(one.measurements) for one in made] == [0, 6, 6]
    assert "it ended 3 times without a new row" in capsys.readouterr().err
    assert len(engine.submitted) == 3 + 2 + 1
    with pytest.raises(NotMeasured, match="no host has"):
        Lab(outputs=tmp_path, on="here").compare([toy(burn_ms=3.0)], **ASKED)


def test_a_crash_is_sent_again_by_the_next_driver_and_once_by_each(engine, tmp_path):
    died = toy(misbehave="once", flag=str(tmp_path / "died"))
    first = Lab(outputs=tmp_path, on="here")
    assert [one.verdict for _ in range(2) for one in first.certify([died]).values()] == ["not checked"] * 2
    assert len(engine.submitted) == 1
    assert Lab(outputs=tmp_path, on="here").certify([died])[died.key].same
    for damage, sent in ((lambda path: None, 2), (lambda path: path.write_text("{"), 3)):
        damage(next((tmp_path / "jobs").glob("*.result.json")))
        assert Lab(outputs=tmp_path, on="here").certify([died])[died.key].same
        assert len(engine.submitted) == sent, "what went well is not sent again, unless its result is damaged"


def test_another_package_knob_or_variable_is_another_job_and_what_was_known_stays(engine, tmp_path, monkeypatch):
    def name():
        return jobs.document("compare", [toy()], {})["name"]

    names = [name()]
    for module, function in ((installed, "packages"), (knobs, "find"), (env_vars, "identity")):
        with monkeypatch.context() as patch:
            patch.setattr(module, function, lambda *_: {"of another": "1"})
            names.append(name())
    assert (len(set(names)), name()) == (4, names[0])
    comparison = Lab(outputs=tmp_path, on="here").compare([toy(burn_ms=3.0)], **ASKED)
    engine.breaks = {3.0: 99}
    again = Lab(outputs=tmp_path, on="here").compare([toy(burn_ms=3.0)], **{**ASKED, "pilot": 4})
    assert (rows(again.measurements), again.certificates) == (rows(comparison.measurements), comparison.certificates)


def test_a_controller_that_is_away_for_a_while_is_asked_again(tmp_path, monkeypatch):
    answer = tmp_path / "squeue"
    answer.write_text('#!/bin/sh\nif [ -f "$0.asked" ]; then echo "a|RUNNING||None"; else touch "$0.asked"; exit 1; fi')
    answer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(engines.time, "sleep", lambda seconds: None)
    assert engines.Slurm(tmp_path).states() == {"a": "there"}
    answer.write_text("#!/bin/sh\necho no controller >&2; exit 1")
    with pytest.raises(BenchlibError, match="no controller"):
        engines.Slurm(tmp_path).states()


def test_gate_timers_and_training_are_jobs_too(engine, tmp_path):
    lab = Lab(outputs=tmp_path, on="here")
    assert [one.same for one in lab.certify([toy(), toy(burn_ms=1.0)]).values()] == [True, True]
    assert [m.seed for m in lab.train([toy(), toy(burn_ms=1.0)], seeds=[0, 1], epochs=1).measurements] == [0, 1, 0, 1]
    assert lab.check_timers([toy()])[0].condition == toy()
    assert len(engine.submitted) == 3
    assert lab.ceiling("cpu") is None
    later = Lab(outputs=tmp_path, on="here", measures=Measures.LATER)
    (made,) = later.compare_each([[toy()]], **ASKED)
    later.sharpen(0.0)  # without time left there are the pilots
    assert (len(made.measurements), len(engine.submitted)) == (6, 4)


def test_a_host_that_cannot_says_why(engine, tmp_path, capsys, monkeypatch):
    missing = toy().but(environment="nowhere")
    document = jobs.document("compare", [toy()], {"block_s": 0.1}, {})
    other = document | {"conditions": [missing.model_dump(mode="json")]}
    for sent, said in ((other, "nowhere"), (document | {"code": ["another"]}, "the code that measures is another")):
        jobs.Executor("here", tmp_path).run([sent])
        shown = capsys.readouterr().err
        assert all(one in shown for one in (said, "there is no other machine"))
    assert "cuda" in why_absent("pytorch", "cuda", "default")
    monkeypatch.setenv(VARIABLE, "here")
    assert why_absent("pytorch", "cuda", "default") is None, "whether there is a GPU is asked where it measures"
    monkeypatch.setenv("PATH", str(tmp_path))
    for on, said in (("slrm", "did you mean 'slurm'"), ("slurm", "squeue is not on PATH")):
        assert main(["run", "--on", on, "--outputs", str(tmp_path / "new")]) == 2
        assert said in capsys.readouterr().err
    assert not [*tmp_path.glob("new/*/*")], "nothing was started"


def test_names_of_jobs_have_the_user_and_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("USER", "ada")
    names = {jobs.Executor("local", tmp_path / name).prefix for name in "ab"}
    assert [name[:13] for name in names] == ["benchlib-ada-"] * 2


DRIVER = """
from benchlib import Condition, Lab
lab = Lab(outputs={folder!r}, on={on!r}, plugins=[{doubles!r}])
toys = [[Condition(workload="toy", framework="toy", hyperparameters={{"burn_ms": ms}})] for ms in (1.0, 2.0)]
print([len(one.measurements) for one in lab.compare_each(toys, precision=0.9, budget_s=0.1, block_s=0.02, pilot=8)])
"""


@pytest.fixture
def drive(tmp_path, toy_framework, monkeypatch):
    """Starts a driver, kills it once both comparisons have begun, and starts it again; the jobs' results; the rows."""
    lock = f"import pathlib, benchlib.runner.machine_lock as of; of.LOCK = pathlib.Path({str(tmp_path / 'lock')!r})"
    (tmp_path / "sitecustomize.py").write_text(lock)  # jobs, too, wait for no other benchlib on this machine
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv(env_vars.WORKER_PATH)
    folder = tmp_path / "out"

    def results():
        return [json.loads(path.read_text()) for path in folder.glob("jobs/*.result.json")]

    def begun(on):
        command = [sys.executable, "-c", DRIVER.format(folder=str(folder), doubles=str(DOUBLES), on=on)]
        driver = subprocess.Popen(command, start_new_session=True)
        until(lambda: len(results()) == 2 and all(one["kept"] for one in results()), 90)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        return command, subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    return begun, results, Store(folder / "measurements")


@pytest.mark.slow
def test_slurm_places_comparisons_and_survives_its_drivers_and_nodes(tmp_path, drive, monkeypatch):
    begun, results, store = drive
    with clusters.slurm(tmp_path, monkeypatch) as cluster:
        command, again = begun(cluster.on)
        assert (nodes := {one["node"] for one in results()}) == {"n1", "n2"}
        assert len(asked("squeue", "-h", "--states=all", "-o", "%i").split()) == 2, "the new driver has found its jobs"
        (job,) = asked("squeue", "--me", "-h", "-w", "n1", "-o", "%i").split()
        assert asked("scancel", job) == "", "as when its time is up"
        assert again.communicate(timeout=240)[0] == "[16, 16]\n"
        assert len(asked("squeue", "-h", "--states=all", "-o", "%i").split()) == 3, "what was left was sent again"
        assert {one["node"] for one in results()} == nodes, "to the host that had begun it"
        hosts = sorted({(m.machine["host"], m.group) for m in store.all()})
        assert ([host for host, _ in hosts], len(store.all())) == (["n1.toys", "n2.toys"], 32), "none has rows of two"
        cluster.kill("n1")
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == "[16, 16]\n", "what is done needs no node"


@pytest.mark.slow
def test_ray_brings_home_what_was_measured_where_no_folder_is_shared(tmp_path, drive, monkeypatch):
    begun, results, store = drive
    with clusters.ray(tmp_path, monkeypatch) as cluster:
        stays, lost = cluster.daemons
        absent = [[toy(burn_ms=ms).but(environment="nowhere")] for ms in (1.0, 2.0, 3.0)]
        with pytest.raises(NotMeasured, match="no host has"):  # each node says that it has no such environment
            Lab(outputs=tmp_path, on=cluster.on).compare_each(absent, **ASKED)
        _, again = begun(cluster.on)
        assert {one["node"] for one in results()} == {stays, lost}
        cluster.kill(lost)
        assert again.communicate(timeout=240)[0] == "[16, 16]\n"
        assert {one["node"] for one in results()} == {stays}, "what a lost node had begun was begun anew"
        whole = {file for one in results() for file in one["files"]}
        found = [(m.group, m.machine["host"], m.repetition, m.role) for m in store.all()]
        assert len(found) == len({*found})
        assert {m.machine["host"] for m in store.all() if m.file in whole} == {stays}
        assert whole < {m.file for m in store.all()}, "and what it had measured is kept"
