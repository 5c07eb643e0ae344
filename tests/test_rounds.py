"""Processes that take part in some parts of a repetition only."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from benchlib.condition import Condition
from benchlib.measure import disturbance, entries, record, rounds
from benchlib.measure.jobs import INITIAL_SEED, prepare_job
from benchlib.measure.processes import WorkerProcess

pytestmark = pytest.mark.usefixtures("toy_framework")

SETTINGS = rounds.Settings(block_s=0.01)


def toy(**hyperparameters: object) -> Condition:
    return Condition(workload="toy", framework="toy", hyperparameters=hyperparameters)


def part(file: str, condition: Condition, places: list[int], inputs: Path) -> rounds.Part:
    together = SimpleNamespace(group=file, repetition=0, number=0, file=file)
    job = prepare_job(condition, INITIAL_SEED, inputs)
    empty = [record.begin("comparison", "rounds", together, f"place {place}", job, 0) for place in places]
    return rounds.Part(empty, [job] * len(places), SETTINGS, rounds=2, places=places)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that are started, by number."""
    numbers = []

    class Counted(WorkerProcess):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)
            numbers.append(self.process.pid)

    monkeypatch.setattr(entries, "WorkerProcess", Counted)
    monkeypatch.setattr(disturbance, "_too_much", lambda *_: False)  # what else this machine does is no matter
    return numbers


def test_a_process_measures_the_parts_in_which_it_has_a_place(tmp_path: Path, started: list[int]) -> None:
    parts = [part("before", toy(burn_ms=3.0), [0], tmp_path), part("both", toy(), [1, 0], tmp_path)]
    measured = list(rounds.measure_repetition(parts, 30.0))
    assert measured == parts
    assert len(started) == 2
    (first,), (alone, hosted) = (one.measurements for one in parts)
    assert [m.failure for m in (first, alone, hosted)] == [None] * 3
    assert [m.hosted_after for m in (first, alone, hosted)] == [0, 0, 1]
    assert {block.round for block in alone.blocks} == {block.round for block in hosted.blocks} == {0, 1}


def test_who_has_no_place_in_a_part_should_sleep_meanwhile(
    tmp_path: Path, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep: list[set[int]] = []
    monkeypatch.setattr(rounds, "hold_still", lambda others: asleep.append({one.process.pid for one in others}))
    parts = [part(name, toy(), places, tmp_path) for name, places in [("one", [0]), ("two", [1]), ("both", [0, 1])]]
    list(rounds.measure_repetition(parts, 30.0))
    assert len(asleep) >= 8
    assert all(len(pids) == 1 for pids in asleep)
    assert set.union(*asleep) == set(started)


def test_a_process_ends_after_the_last_part_that_has_a_place_for_it(tmp_path: Path, started: list[int]) -> None:
    parts = [part(name, toy(), [place], tmp_path) for name, place in [("one", 0), ("two", 1), ("three", 0)]]
    measured = rounds.measure_repetition(parts, 30.0)
    assert [sum(map(psutil.pid_exists, started)) for _ in measured] == [2, 1, 0]


def test_a_process_that_has_failed_takes_what_it_would_have_hosted_with_it(tmp_path: Path, started: list[int]) -> None:
    parts = [part("before", toy(misbehave="die"), [0], tmp_path), part("both", toy(), [1, 0], tmp_path)]
    list(rounds.measure_repetition(parts, 30.0))
    alone, hosted = parts[1].measurements
    assert alone.ok
    assert "its process had failed with" in hosted.failure
    assert parts[0].measurements[0].failure in hosted.failure
    assert hosted.lost
    assert not parts[0].measurements[0].lost
    third = part("third", toy(burn_ms=2.0), [0], tmp_path)
    more = [part("before", toy(misbehave="die"), [0], tmp_path), part("both", toy(), [0], tmp_path), third]
    list(rounds.measure_repetition(more, 30.0))
    assert third.measurements[0].failure == more[1].measurements[0].failure, "the first failure is the one to know"
