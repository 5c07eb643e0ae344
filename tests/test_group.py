"""Data-parallel groups, with a framework in numpy that misbehaves when told to; the real ones are at the end, slow."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest
from fixed_lab import FixedLab

import benchlib.frameworks
from benchlib.condition import Condition
from benchlib.equivalence import trials
from benchlib.equivalence.certificate import DIFFERENT, SAME
from benchlib.errors import BenchlibError
from benchlib.runner import process_group
from benchlib.runner.jobs import INITIAL_SEED, prepare_job
from benchlib.runner.processes import WorkerFailed, WorkerProcess
from benchlib.runner.worker_sessions import Sampler
from benchlib.stats.comparison import MODELS_DIFFER, MODELS_NOT_CHECKED, NOT_MEASURED
from benchlib.worker import files
from benchlib.worker.channel import ChannelGarbage

QUICK = {"repetitions": 2, "rounds": 3, "block_s": 0.02}


@pytest.fixture
def lab(tmp_path):
    return FixedLab(outputs=tmp_path / "outputs", patience_s=60)


def toy(world_size=1, communication=True, batch_size=32, **hyperparameters):
    together = {"world_size": world_size, "communication": communication, "threads": 1, "batch_size": batch_size}
    return Condition(workload="toy", framework="toy", hyperparameters=hyperparameters, **together)


@pytest.fixture(autouse=True)
def place(monkeypatch):
    """A folder of each test's own for temporary files, which the commands of its processes name; a short name, for
    sockets lie in there.
    """
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


def repetitions_of(comparison, condition):
    """In which it was timed; how many of them give a ratio is for the host to say, which may be busy in all rounds."""
    return {m.repetition for m in comparison.measurements if m.ok and m.condition == condition}


def ranks_alive():
    alive = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            command = " ".join(process.cmdline())
            of_test = tempfile.gettempdir() in command and process_group.WORKER in command
            alive += [command] if of_test and process.status() != psutil.STATUS_ZOMBIE else []
    return alive


@pytest.mark.usefixtures("toy_framework")
class TestToy:
    def test_a_group_is_one_row_and_trains_as_one_process_does(self, lab):
        two, alone = toy(2), toy(2, communication=False)
        comparison = lab.compare([toy(), two, alone], **QUICK)
        assert not len(comparison.failures()), comparison.failures()["failure"].tolist()
        certificates = comparison.certificates
        assert certificates[two.key].verdict == SAME, certificates[two.key].checks
        assert certificates[two.key].reference.world_size == 1
        assert certificates[alone.key] == certificates[two.key], "the model is the same, whoever talks to whom"
        measured = [m for m in comparison.measurements if m.condition == two]
        assert len(measured) == 2
        block, base = measured[0].blocks[-1], comparison.measurements[0].blocks[-1]
        assert block.samples == block.steps * 32, "the whole batch"
        assert block.cpu_s / block.steps > 1.6 * 0.002, "of both processes, who burn 2 ms each"
        assert base.cpu_s / base.steps < 1.6 * 0.002
        assert measured[0].memory["peak"] > 1.5 * comparison.measurements[0].memory["peak"]
        assert not ranks_alive()

    def test_gradients_that_are_not_exchanged_are_found_by_the_gate(self, lab, monkeypatch):
        def alone(worker, message, send=WorkerProcess._request):
            send(worker, {**message, **({"communication": False} if message["do"] == "open" else {})})

        monkeypatch.setattr(WorkerProcess, "_request", alone)
        comparison = lab.compare([toy(), toy(2)], **QUICK)
        assert comparison.certificates[toy(2).key].verdict == DIFFERENT
        rows = comparison.ratios().set_index("role")
        assert rows.loc["condition", "verdict"] == MODELS_DIFFER

    @pytest.mark.parametrize("how", ["rank 1: die in a block", "rank 1: die", "rank 1: raise"])
    def test_a_process_that_fails_ends_its_group_soon_and_nothing_else(self, lab, how):
        started = time.monotonic()
        bad = toy(2, misbehave=how)
        comparison = lab.compare([toy(), bad, toy(burn_ms=3.0)], **QUICK)
        assert time.monotonic() - started < 30
        rows = comparison.ratios().set_index("label")
        assert rows.loc[str(bad), "verdict"] == (NOT_MEASURED if "in a block" in how else MODELS_NOT_CHECKED)
        assert repetitions_of(comparison, toy(burn_ms=3.0)) == {0, 1}, "the others are measured"
        failures = comparison.failures()
        assert len(failures) == 1, "in a process that was timed, or in the gate, whose condition is another"
        failure = failures["failure"].iloc[0]
        said = "process 1 of 2: RuntimeError: out of toys" if "raise" in how else "process 1 of 2 is gone"
        assert said in failure
        assert not ranks_alive()

    def test_a_process_that_dies_before_it_connects_ends_its_group_though_its_launcher_waits(self, lab):
        with WorkerProcess(toy(2), INITIAL_SEED, patience_s=60) as worker:
            launcher, started = psutil.Process(worker.process.pid), []
            while not started:  # between fork and exec a child has its launcher's command, which names the script, too
                time.sleep(0.005)
                commands = [(one, one.cmdline()) for one in launcher.children() if one.cmdline() != launcher.cmdline()]
                started = [one for one, line in commands if process_group.WORKER in line]
            started[0].suspend()  # so that it has not connected
            threading.Timer(2, started[0].kill).start()
            with pytest.raises(WorkerFailed, match=f"died in 'open' .process {started[0].pid}, .* is gone"):
                worker.finish_open()
        assert not ranks_alive()

    def test_a_process_that_dies_between_its_blocks_ends_its_group_and_nothing_else(self, lab, monkeypatch):
        def killed(sampler, start=Sampler.start):
            usage = sampler._worker
            if isinstance(usage, process_group.GroupUsage):
                gone = psutil.Process(usage.channel.pids[1])
                gone.kill()
                gone.wait(10)  # its launcher reaps it
            start(sampler)

        monkeypatch.setattr(Sampler, "start", killed)
        comparison = lab.compare([toy(), toy(2), toy(burn_ms=3.0)], **QUICK)
        rows = comparison.ratios().set_index("label")
        assert rows.loc[str(toy(2)), "verdict"] == NOT_MEASURED
        assert repetitions_of(comparison, toy(burn_ms=3.0)) == {0, 1}, "the others are measured"
        assert "worker died: process PID not found" in comparison.failures()["failure"].iloc[0]
        assert not ranks_alive()

    def test_processes_whose_weights_part_are_not_the_reference(self, lab, monkeypatch):
        def parted(worker, file, world_size, read=trials._read):
            if world_size > 1:
                other = Path(f"{file}.1.npz")
                arrays = files.unpack(other)
                files.pack(other, {name: array + ("update:weight" in name) * 1e-3 for name, array in arrays.items()})
            return read(worker, file, world_size)

        monkeypatch.setattr(trials, "_read", parted)
        certificate = lab.certify([toy(2)])[toy(2).key]
        assert certificate.verdict == DIFFERENT
        assert [check.name for check in certificate.checks if not check.ok] == ["updates", "repetition"]

    def test_a_launcher_that_ends_is_told(self, lab, monkeypatch):
        monkeypatch.setattr(benchlib.frameworks, "launcher", lambda name: ("-c", "raise SystemExit('no torchrun')"))
        comparison = lab.compare([toy(), toy(2)], **QUICK)
        failure = comparison.failures()["failure"].iloc[0]
        assert "the launcher ended before all processes had started" in failure
        assert "no torchrun" in failure

    def test_what_a_group_cannot_be_asked_is_refused(self, lab):
        with pytest.raises(BenchlibError, match="training runs are of one process"):
            lab.train([toy(2)], seeds=[0], epochs=1)
        with pytest.raises(BenchlibError, match=r"world_size 512 of 1 threads, but this machine has \d+ cores"):
            lab.compare([toy(), toy(512, batch_size=512)], **QUICK)


def test_what_the_processes_answer_is_put_together():
    one = {"started_s": 2.0, "wall_s": 0.5, "cpu_s": 1.0, "samples": 16, "steps": 4, "settings": {"threads": 1}}
    two = {"started_s": 1.9, "wall_s": 0.6, "cpu_s": 1.5, "samples": 16, "steps": 4, "settings": {"threads": 9}}
    both = {"started_s": 1.9, "wall_s": 0.6, "cpu_s": 2.5, "samples": 32, "steps": 4, "settings": {"threads": 1}}
    one |= {"loss": 1.0, "files": {"a": "/a.py", "b": "/b.py"}}
    two |= {"loss": 3.0, "files": {"b": "/b.py", "c": "/c.py"}}
    both |= {"loss": 2.0, "files": {"a": "/a.py", "b": "/b.py", "c": "/c.py"}}
    assert process_group.merge_answers([one, two]) == both
    assert process_group.merge_answers([{"block": one}, {"block": two}]) == {"block": both}
    with pytest.raises(ChannelGarbage, match=r"do not have the same steps: \[4, 5\]"):
        process_group.merge_answers([one, {**two, "steps": 5}])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"communication": False}, "one process has no other to exchange gradients with"),
        ({"world_size": 2}, "threads: say how many each of the 2 processes has"),
        ({"world_size": 3, "threads": 1}, "batch_size 64: 3 processes cannot share it evenly"),
        ({"world_size": 2, "threads": 1, "workload": "linear"}, "linear trains nothing that they could share"),
    ],
)
def test_a_group_that_has_no_sense_is_refused(given, said):
    with pytest.raises(BenchlibError, match=said):
        Condition(**{"workload": "cnn", **given})


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize(("framework", "mode"), [("pytorch", "eager"), ("pytorch", "graph"), ("mindspore", "graph")])
def test_two_processes_have_the_gradient_of_one(lab, framework, mode):
    small = {"batch_size": 8, "hyperparameters": {"image_size": 8}}
    two = Condition(workload="cnn", framework=framework, mode=mode, lane="tuned", world_size=2, threads=1, **small)
    certificate = lab.certify([two])[two.key]
    assert certificate.verdict == SAME, (certificate.reason, certificate.checks)


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "mode"), [("pytorch", "eager"), ("mindspore", "graph")])
def test_a_group_starts_where_the_machine_s_own_name_does_not_resolve(monkeypatch, framework, mode):
    unnamed = ["unshare", "--user", "--map-root-user", "--uts", "sh", "-c", 'hostname nosuchname; exec "$0" "$@"']
    if subprocess.run([*unnamed, "true"], check=False).returncode:
        pytest.skip("no namespaces here")
    start = subprocess.Popen
    monkeypatch.setattr(process_group.subprocess, "Popen", lambda command, **how: start([*unnamed, *command], **how))
    condition = Condition(workload="cnn", framework=framework, mode=mode, world_size=2, threads=1)
    with WorkerProcess(condition, INITIAL_SEED, 120) as worker:
        assert worker.finish_open()["versions"]


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "mode"), [("pytorch", "eager"), ("mindspore", "graph")])
def test_a_process_that_is_killed_ends_its_group_within_half_a_minute(tmp_path, framework, mode):
    condition = Condition(workload="cnn", framework=framework, mode=mode, lane="tuned", world_size=2, threads=1)
    job = prepare_job(condition, INITIAL_SEED, tmp_path)
    with WorkerProcess(condition, INITIAL_SEED, 300) as worker:
        worker.finish_open()
        worker.ask("build", **job.document())
        worker.ask("first_step")
        worker.begin("block", steps=10_000)
        time.sleep(1)
        os.kill(worker.channel.pids[1], signal.SIGKILL)
        started = time.monotonic()
        with pytest.raises(WorkerFailed, match=r"process \d of 2 is gone"):
            worker.finish("block")
        assert time.monotonic() - started < 30
        assert not ranks_alive()
