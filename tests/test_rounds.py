"""A repetition: a fresh process for each condition, one busy at a time."""

from pathlib import Path

import psutil
import pytest

from benchlib.cache import Measurement
from benchlib.condition import Condition
from benchlib.runner import interference, recording, rounds, worker_sessions
from benchlib.runner.jobs import INITIAL_SEED, prepare_job
from benchlib.runner.processes import WorkerProcess

pytestmark = pytest.mark.usefixtures("toy_framework")


def repetition(inputs: Path, *hyperparameters: dict[str, object]) -> list[Measurement]:
    place = {"kind": "comparison", "group": "group", "repetition": 0, "file": "file", "role": "condition", "seed": 0}
    conditions = [Condition(workload="toy", framework="toy", hyperparameters=one) for one in hyperparameters]
    jobs = [prepare_job(one, INITIAL_SEED, inputs) for one in conditions]
    empty = [recording.begin("rounds", job, **place) for job in jobs]
    rounds.measure_repetition(empty, jobs, rounds.RoundSettings(block_s=0.01), 2, 30.0)
    return empty


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that are started, by number."""
    numbers = []

    class Counted(WorkerProcess):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)
            numbers.append(self.process.pid)

    monkeypatch.setattr(worker_sessions, "WorkerProcess", Counted)
    monkeypatch.setattr(interference, "_too_much", lambda *_: False)  # what else this machine does is no matter
    return numbers


def test_each_condition_has_a_process_that_sleeps_between_its_turns_and_ends(tmp_path, started, monkeypatch) -> None:
    asleep: list[set[int]] = []
    monkeypatch.setattr(rounds, "hold_still", lambda others: asleep.append({one.process.pid for one in others}))
    one, other = repetition(tmp_path, {}, {"burn_ms": 2.0})
    assert (one.failure, other.failure) == (None, None)
    assert {block.round for block in one.blocks} == {block.round for block in other.blocks} == {0, 1}
    assert len(set(started)) == 2
    assert all(len(pids) == 1 for pids in asleep)
    assert set.union(*asleep) == set(started)
    assert one.repetition_s == other.repetition_s > one.rounds_s > 0
    assert not any(map(psutil.pid_exists, started))


def test_a_process_that_fails_leaves_the_others_alone(tmp_path: Path, started: list[int]) -> None:
    failed, well = repetition(tmp_path, {"misbehave": "die"}, {})
    assert "died" in failed.failure
    assert well.ok
    assert {block.round for block in well.blocks} == {0, 1}
    assert not any(map(psutil.pid_exists, started))
