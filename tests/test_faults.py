"""Kills and faults (``benchmarks/faults.py``): the judge says what is wrong with a doctored folder, and real runs give
it nothing to say.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from test_cache import measurement

import benchlib.frameworks
import benchlib.workloads
from benchlib.cache import Measurement, Store

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import fault_judge
import fault_subject
import fault_trials
import faults

KINDS = {
    "kill -9 of the parent": "comparison",
    "SIGTERM to the parent": "pdf",
    "Ctrl-C": "suite",
    "kill -9 of a worker": "group",
    "SIGTERM to a worker": "training",
    "kill -9 of the kernel": "suite",
    "a worker stands still": "training",
    "two at once": "gate",
    "a full disk for the results": "training",
    "a full disk for temporary files": "training",
    "results that cannot be written": "comparison",
    "a worker gets no more memory": "gate",
    "a worker is killed for memory": "training",
    "HOME unset, LANG=C": "comparison",
    "torch.py, numpy.py, json.py on PYTHONPATH": "comparison",
    "a folder torch/ in the working directory": "pytorch",
}
"""One kind of run for each trial."""


def repetition(number: int, file: str | None = None, **failed: str) -> list[Measurement]:
    """Of a comparison; ``failed`` are failures by role."""
    together = {"repetition": number, "file": file or f"r{number}", "group": "g"}
    return [measurement(role=role, failure=failed.get(role), **together) for role in ("baseline", "control")]


class Folder:
    """Results that nothing is wrong with, which tests then doctor."""

    def __init__(self, outputs: Path) -> None:
        self.outputs, self.store = outputs, Store(outputs / "measurements")
        for number in (0, 1):
            self.store.save(repetition(number))
        self.kept = fault_judge.Kept(outputs)
        self.kept.look()
        self.expected = fault_judge.measured(self.store.all())

    def wrong(self) -> list[str]:
        return fault_judge.results(self.outputs, self.kept, self.expected)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "outputs")


def test_nothing_is_said_of_a_run_that_went_on(folder: Folder) -> None:
    folder.store.save(repetition(2, baseline="it died"))
    folder.store.save(repetition(3))
    assert folder.wrong() == []


def test_a_process_that_failed_is_replaced_by_one_of_another_repetition(folder: Folder) -> None:
    folder.expected |= fault_judge.measured(repetition(2))
    folder.store.save(repetition(2, control="it died"))
    assert folder.wrong() == [f"not measured in the end: ('g', 'control', '{measurement().condition.key}')"]
    folder.store.save(repetition(3))
    assert folder.wrong() == []


def test_a_training_run_that_failed_may_be_run_again(folder: Folder) -> None:
    died = measurement(kind="training", file="t", group="t", failure="it died")
    folder.store.save([died])
    folder.kept.look()
    folder.store.save([died.model_copy(update={"failure": None})])
    assert folder.kept.wrong() == []


def cut(folder: Folder) -> None:
    path = folder.store.path("r0")
    path.write_bytes(path.read_bytes()[:100])


def changed(number: int, **changes: object) -> Callable[[Folder], None]:
    """Measure a repetition with something else in it."""
    return lambda folder: folder.store.save([m.model_copy(update=changes) for m in repetition(number)])


def leave_a_part(folder: Folder) -> None:
    (folder.outputs / "certificates").mkdir()
    (folder.outputs / "certificates" / "x.partial").touch()


def leave_a_notebook(folder: Folder) -> None:
    (folder.outputs / "notebooks").mkdir()
    (folder.outputs / "notebooks" / "modes.json").write_text('{"status": "running"}', encoding="utf-8")


@pytest.mark.parametrize(
    ("doctor", "words"),
    [
        (lambda folder: folder.store.path("r1").unlink(), ["lost: r1.parquet", "not measured in the end: ('g', 'base"]),
        (changed(1, first_step_s=9.0), ["changed, or measured twice: r1.parquet"]),
        (changed(1, file="another"), ["2 times the same process: ('g', 1, 'control'"]),
        (cut, ["changed, or measured twice: r0.parquet", "cannot be read: "]),
        (changed(0, group="h", file="h"), ["another key: ('h', 0, 'baseline'"]),
        (leave_a_part, ["in part: certificates/x.partial"]),
        (leave_a_notebook, ["modes is running"]),
    ],
)
def test_a_doctored_folder_is_seen(folder: Folder, doctor: Callable[[Folder], None], words: list[str]) -> None:
    doctor(folder)
    wrong = "\n".join(folder.wrong())
    for word in words:
        assert word in wrong


def test_a_process_that_is_left_is_seen_by_where_it_works_and_by_what_it_was_started_with(tmp_path: Path) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    (tmp_path / "trial").mkdir()
    elsewhere = {"cwd": tmp_path, "env": {**os.environ, "TMPDIR": str(tmp_path / "trial")}}
    assert fault_judge.left_processes(tmp_path / "trial", grace_s=0) == []
    for options in ({"cwd": tmp_path / "trial"}, elsewhere):
        left = subprocess.Popen(sleep, **options)
        try:
            wrong = fault_judge.left_processes(tmp_path / "trial", grace_s=0)
            assert [text.split()[2] for text in wrong] == [str(left.pid)]
        finally:
            left.kill()
            left.wait()
    soon = subprocess.Popen(["sleep", "0.3"], cwd=tmp_path / "trial")
    assert fault_judge.left_processes(tmp_path / "trial", grace_s=10) == [], "it had ended before"
    soon.wait()
    hung = subprocess.Popen(["sleep", "600"], cwd=tmp_path / "trial")
    fault_judge.end_processes(tmp_path / "trial")
    assert hung.wait(timeout=10) == -signal.SIGKILL


def test_a_file_that_is_left_is_seen_and_made_old(tmp_path: Path) -> None:
    (tmp_path / "benchlib-worker-x").mkdir()
    (tmp_path / "tmpabc.json").touch()
    (tmp_path / "of-somebody-else").touch()
    place = "left in the folder for temporary files:"
    assert fault_judge.left_files(tmp_path) == [f"{place} benchlib-worker-x", f"{place} tmpabc.json"]
    fault_judge.age(tmp_path)
    assert all(time.time() - path.stat().st_mtime > 3000 for path in tmp_path.iterdir())


def test_a_traceback_is_seen_unless_a_worker_said_it() -> None:
    own = "measuring: started\nTraceback (most recent call last):\n  File x\nKeyError: 'y'"
    assert fault_judge.tracebacks(own) == ["Traceback (most recent call last): ... KeyError: 'y'"]
    quoted = f"measuring failed: worker died. {fault_judge.QUOTE}\nTraceback (most recent call last):\nKeyError: 'y'"
    assert fault_judge.tracebacks(quoted) == []
    assert fault_judge.tracebacks("error: outputs: No space left on device") == []


def test_an_exit_code_must_be_one_of_those_and_a_run_must_end() -> None:
    assert fault_judge.ended(130, {0, 130}) == []
    assert fault_judge.ended(1, {0, 130}) == ["exit code 1 instead of 0 or 130"]
    assert fault_judge.ended(None, {0}) == ["it hung"]


def test_every_trial_is_made_here_once_and_all_take_turns_there() -> None:
    assert {trial.name for trial in fault_trials.TRIALS} == set(KINDS)
    number = len(fault_trials.TRIALS)
    order = faults.in_turn(0, fault_trials.TRIALS)
    first, second = ([next(order)[1] for _ in range(number)] for _ in range(2))
    assert set(first) == set(second) == set(fault_trials.TRIALS)
    assert first != second


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[faults.Bench]:
    """In a folder with a short name, for sockets lie in there."""
    folder = tmp_path_factory.mktemp("f")
    with pytest.MonkeyPatch.context() as patch, fault_trials.interruptible(), closing(faults.Bench(folder, 0)) as one:
        for package, name in ((benchlib.frameworks, "frameworks"), (benchlib.workloads, "workloads")):
            patch.setattr(package, "__path__", [*package.__path__, str(fault_subject.DOUBLES / name)])
        yield one


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_lost_doubled_or_left_behind(bench: faults.Bench, name: str) -> None:
    trial = next(one for one in fault_trials.TRIALS if (one.name, one.kind) == (name, KINDS[name]))
    outcome = bench.outcome(1, trial)
    assert outcome.wrong == "", outcome
