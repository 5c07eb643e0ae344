"""TensorBoard's event files of training runs."""

import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from synthetic_lab import SyntheticLab
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

from benchlib import tensorboard
from benchlib.cache import Measurement
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.runner import epochs, interference
from benchlib.stats.training_runs import TrainingRuns

TORCH = Condition(workload="cnn", lane="tuned", hyperparameters={"image_size": 8})
SEEDS, EPOCHS = [0, 1], 3


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toy_framework: None) -> Lab:
    monkeypatch.setattr(interference, "_too_much", lambda *_: False)  # what else goes on on this machine
    return Lab(outputs=tmp_path / "outputs", patience_s=20)


def toy() -> Condition:
    return Condition(workload="toy", framework="toy", hyperparameters={"burn_ms": 0.1})


def train(lab: Lab, seeds: list[int] = SEEDS) -> TrainingRuns:
    return tensorboard.train(lab, [toy()], seeds=seeds, epochs=EPOCHS)


def read(path: Path) -> list[tuple[str, int, float, float]]:
    """Tag, step, time and value of each number in an event file."""
    events = LegacyEventFileLoader(str(path)).Load()
    return [(one.tag, event.step, event.wall_time, one.simple_value) for event in events for one in event.summary.value]


def files(lab: Lab) -> list[Path]:
    return sorted(lab.folder.glob("events/**/*tfevents*"))


def expected(run: Measurement) -> list[tuple[str, int, float]]:
    """What is to be read of a run, but for its times."""
    numbers = [(one.epoch, *pair) for one in run.epochs for pair in (("loss", one.loss), ("accuracy", one.metric))]
    return [(f"{run.condition.workload}/{tag}", epoch, np.float32(value)) for epoch, tag, value in numbers]


def without_times(numbers: list[tuple[str, int, float, float]]) -> list[tuple[str, int, float]]:
    return [(tag, step, value) for tag, step, _, value in numbers]


def test_every_run_has_a_file_with_its_numbers(lab: Lab) -> None:
    runs, rest = train(lab), "fp32 cpu default batch 32 lr 0.1 digits burn_ms=0.1"
    assert [path.parent.relative_to(lab.folder / "events").parts for path in files(lab)] == [
        ("toy", "toy", "eager", rest, f"seed {run.seed} {run.file[:8]}") for run in runs.measurements
    ]
    for run, path in zip(runs.measurements, files(lab), strict=True):
        numbers = read(path)
        assert without_times(numbers) == expected(run)
        assert sorted(EventAccumulator(str(path.parent)).Reload().Tags()["scalars"]) == ["toy/accuracy", "toy/loss"]
        first, last = numbers[0][2], numbers[-1][2]
        assert last - first == pytest.approx(sum(epoch.wall_s for epoch in run.epochs[1:]), abs=1e-3)


def test_an_epoch_is_there_as_soon_as_it_has_ended(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    there, write = [], tensorboard.write

    def looked_at(folder: Path, run: Measurement, again: bool) -> None:
        write(folder, run, again)
        if again:
            there.append((run.epochs[-1].epoch, without_times(read(files(lab)[-1])) == expected(run)))

    monkeypatch.setattr(tensorboard, "write", looked_at)
    train(lab, seeds=[0])
    assert there == [(1, True), (2, True), (3, True)]


def test_what_is_kept_is_not_written_again_and_written_where_it_is_gone(lab: Lab) -> None:
    runs, before = train(lab), {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files(lab)}
    train(lab)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files(lab)} == before
    shutil.rmtree(lab.folder / "events" / tensorboard.name(runs.measurements[0]))
    assert len(files(lab)) == len(SEEDS) - 1
    train(lab)
    assert {path: path.read_bytes() for path in files(lab)} == {path: data for path, (data, _) in before.items()}


def test_an_interrupted_run_can_be_read_and_the_next_takes_its_place(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    epoch = epochs._epoch

    def interrupted(entry: object, others: object, number: int) -> object:
        if number == 3:
            raise KeyboardInterrupt
        return epoch(entry, others, number)

    with monkeypatch.context() as patch:
        patch.setattr(epochs, "_epoch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(lab, seeds=[0])
    (path,) = files(lab)
    assert [step for _, step, _, _ in read(path)] == [1, 1, 2, 2]
    time.sleep(1.1)  # so that the next begins in another second, which is in its file's name
    (run,) = train(lab, seeds=[0]).measurements
    (again,) = files(lab)
    assert again.parent == path.parent
    assert without_times(read(again)) == expected(run)


def test_a_run_that_failed_has_the_epochs_before(tmp_path: Path) -> None:
    run = SyntheticLab(tmp_path).train([TORCH], seeds=[0], epochs=2).measurements[0]
    run.failure = "the worker died"
    never = run.model_copy(update={"file": "another", "epochs": []})
    for one in (run, never):
        tensorboard.write(tmp_path / "events", one)
    (path,) = tmp_path.glob("events/**/*tfevents*")
    assert without_times(read(path)) == expected(run)


def test_a_disk_that_is_full_ends_no_run_and_is_said_once(lab: Lab, monkeypatch, capsys) -> None:
    write = tensorboard.write

    def full(folder: Path, run: Measurement, again: bool) -> None:
        if len(run.epochs) == 2:
            raise OSError(28, "No space left on device")
        write(folder, run, again)

    monkeypatch.setattr(tensorboard, "write", full)
    assert list(train(lab).runs()["epochs"]) == [EPOCHS] * 2
    assert capsys.readouterr().err.count("could not be written (No space left on device)") == 1
    assert files(lab) == [], "nothing that is not whole"
    monkeypatch.setattr(tensorboard, "write", write)
    train(lab)
    assert len(files(lab)) == len(SEEDS), "another time all is written"
