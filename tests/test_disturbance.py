"""Blocks that are far from their process's others are marked, and what was mostly disturbed has no verdict anywhere."""

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import psutil
import pytest
from synthetic_lab import SyntheticLab

from benchlib.cache import Block, final_takes
from benchlib.caveats import early_ends, of_rows, throttled_blocks
from benchlib.condition import Condition
from benchlib.runner import interference, rounds
from benchlib.runner.interference import (
    FAR_OFF,
    IDLE_WORKERS,
    NO_CPU,
    OTHERS,
    STOPPED,
    THROTTLED,
    Pace,
    Watch,
    mark_outliers,
)
from benchlib.stats import frame as tidy
from benchlib.stats.amortisation import amortisation
from benchlib.stats.comparison import DISTURBED, SLOWER, Comparison, same_within
from benchlib.stats.planner import BUDGET, PRECISION
from benchlib.stats.training_runs import drop_disturbed
from benchlib.tables import wide

TORCH = Condition(workload="cnn", hyperparameters={"image_size": 16})
MINDSPORE = TORCH.but(framework="mindspore", mode="graph", lane="tuned")
ASKED = {"precision": 0.03, "budget_s": 60.0, "block_s": 0.1}


def blocks(*step_ms: float, cores: float = 1.9, **changes: Any) -> list[Block]:
    """A block of 5 steps a round, of so many milliseconds each."""
    together = []
    for number, ms in enumerate(step_ms):
        wall_s = 5 * ms / 1000
        timed = {"started_s": 0.0, "wall_s": wall_s, "cpu_s": cores * wall_s}
        together.append(Block(round=number, position=0, steps=5, samples=5, **{**timed, **changes}))
    return together


def of(ms: float, cores: float) -> Block:
    return blocks(ms, cores=cores)[0]


SLOW, STARVED, HALF = of(900, 0.02), of(60, 0.1), of(60, 0.95)
NOISY = blocks(300, 310, 320, disturbed=True, disturbed_by=OTHERS)


@pytest.mark.parametrize(
    ("made", "warm_up", "device", "marks"),
    [
        *[  # the noise of a machine counts
            (blocks(*step_ms), Pace(0.03, 1.9), "cpu", [""] * len(step_ms))
            for step_ms in ((25, 33, 26, 32, 25, 33), (30, 31, 60, 29, 62, 30), (37, 37), (37,), (30, 15, 30, 16))
        ],
        # far from the others, whatever its side and wherever it is
        (blocks(37, 36, 6041, 38), Pace(0.037, 1.9), "cpu", ["", "", FAR_OFF, ""]),
        (blocks(37, 36, 6, 38), Pace(0.037, 1.9), "cpu", ["", "", FAR_OFF, ""]),
        (blocks(37, 36, 6041, 38), Pace(0.037, 1.9), "cuda", ["", "", FAR_OFF, ""]),
        (blocks(6041), Pace(0.037, 1.9), "cpu", [FAR_OFF]),  # the first has but the warm-up beside it
        (blocks(6041, 37), Pace(0.037, 1.9), "cpu", [FAR_OFF, ""]),
        (blocks(37, 37, 37), Pace(0.3, 1.9), "cpu", [""] * 3),  # it was the warm-up that was disturbed
        # more blocks take a mark back or make one
        (blocks(400), Pace(0.1, 1.9), "cpu", [FAR_OFF]),
        (blocks(400, 390, 410, 400), Pace(0.1, 1.9), "cpu", [""] * 4),
        (blocks(100, 400, 390), Pace(0.1, 1.9), "cpu", ["", FAR_OFF, FAR_OFF]),
        (blocks(100, 400, 390, 410), Pace(0.1, 1.9), "cpu", [FAR_OFF, "", "", ""]),
        # next to no CPU time, on the CPU only
        ([*blocks(30, 30, 30), STARVED], Pace(0.03, 1.9), "cpu", ["", "", "", NO_CPU]),
        ([*blocks(30, 30, 30), STARVED], Pace(0.03, 1.9), "cuda", [""] * 4),
        (blocks(30, 30, 60, cores=0.1), Pace(0.03, 0.1), "cpu", [""] * 3),  # it is what this process always takes
        # stopped for a part of it, on the CPU only
        ([*blocks(30, 31, 29), HALF], Pace(0.03, 1.9), "cpu", ["", "", "", STOPPED]),
        ([*blocks(30, 31, 29), HALF], Pace(0.03, 1.9), "cuda", [""] * 4),
        ([*blocks(30, 31, 29), of(60, 1.9)], Pace(0.03, 1.9), "cpu", [""] * 4),  # slower cores are noise
        ([*blocks(30, 31, 29), of(40, 1.0)], Pace(0.03, 1.9), "cpu", [""] * 4),  # not that much longer
        ([HALF], Pace(0.03, 1.9), "cpu", [STOPPED]),
        ([HALF, *blocks(61, 60, 62, cores=0.95)], Pace(0.03, 1.9), "cpu", [""] * 4),
        # what others disturbed is not what is usual
        ([*NOISY, of(31, 1.9)], Pace(0.03, 1.9), "cpu", [OTHERS, OTHERS, OTHERS, ""]),
        # without a warm-up the first block may compile, but not be stopped
        (blocks(900, 30, 31, 30), None, "cpu", [""] * 4),
        ([HALF, *blocks(30, 31, 29)], None, "cpu", [""] * 4),
        ([SLOW, *blocks(30, 31, 30)], None, "cpu", [NO_CPU, "", "", ""]),
        (blocks(30, 31, 900, 30), None, "cpu", ["", "", FAR_OFF, ""]),
    ],
)
def test_a_block_is_compared_with_the_others_of_its_process(made, warm_up, device, marks) -> None:
    made = [block.model_copy() for block in made]
    for seen in range(1, len(made) + 1):  # the last look counts
        mark_outliers(made[:seen], device, warm_up)
    assert [block.disturbed_by for block in made] == marks
    assert [block.disturbed for block in made] == [bool(mark) for mark in marks]


LONGER = 160
"""How many times as long as the others a block takes that is disturbed: four seconds of a stop beside 25 ms."""


def compared(folder: Path, flags: dict[str, list[bool]], spread: float = 0.001) -> Comparison:
    """Two conditions, each process of which has its blocks disturbed, and so longer, as ``flags`` of its role say."""
    lab = SyntheticLab(folder, spread=spread)
    comparison = lab.compare([TORCH, MINDSPORE], **ASKED)
    for m in comparison.measurements:
        for block, flag in zip(m.blocks, flags.get(m.role, [False] * 5), strict=True):
            block.disturbed = flag
            block.wall_s *= LONGER if flag else 1
    return comparison


MOSTLY = [True, True, True, False, False]


def ratio_row(comparison: Comparison) -> pd.Series:
    """The one ratio of a comparison, as a row of its frame."""
    (row,) = (row for _, row in wide(tidy.of_comparison(comparison, part=0), "throughput_ratio").iterrows())
    return row


@pytest.mark.parametrize("role", ["baseline", "condition"])
def test_more_than_half_of_the_rounds_disturbed_on_either_side_is_no_verdict(tmp_path: Path, role: str) -> None:
    comparison = compared(tmp_path, {role: MOSTLY})
    row = comparison.ratios().set_index("role").loc["condition"]
    assert row["verdict"] == DISTURBED
    assert row[["ratio", "low", "high"]].isna().all(), "no number that could be quoted"
    assert row["processes"] == 5
    for interval in (comparison.ratio(MINDSPORE), comparison.between(MINDSPORE, TORCH)):
        assert not interval.excludes(1)
        assert str(interval).startswith("nan")
    interval, verdict = comparison.verdict(MINDSPORE, TORCH)
    assert (verdict, interval.excludes(1)) == (DISTURBED, False)
    assert comparison.throughput()["samples_per_second"].isna().tolist() == [role == "baseline", role == "condition"]
    assert ratio_row(comparison)["why"] == DISTURBED


def test_rounds_disturbed_in_every_take_are_in_no_mean(tmp_path: Path) -> None:
    quiet = compared(tmp_path, {})
    comparison = compared(tmp_path, {"condition": [False, False, True, False, False]})
    for role in ("baseline", "control"):  # one process of them has no round left
        one = next(m for m in comparison.measurements if m.role == role)
        for block in one.blocks:
            block.disturbed, block.wall_s = True, LONGER * block.wall_s
    assert comparison.ratio(MINDSPORE).estimate == pytest.approx(quiet.ratio(MINDSPORE).estimate, rel=0.01)
    assert comparison.ratio(MINDSPORE).processes == 4
    for name in ("samples_per_second", "step_ms"):
        assert list(comparison.throughput()[name]) == pytest.approx(list(quiet.throughput()[name]), rel=0.01)
    pays, paid = (amortisation(one, TORCH, MINDSPORE)[1] for one in (comparison, quiet))
    for name in ("step_eager_ms", "step_graph_ms"):
        assert pays[name].estimate == pytest.approx(paid[name].estimate, rel=0.01)
    assert comparison.plan.half_width < 0.03, "of what counts"
    assert comparison.plan.spent_s == pytest.approx(quiet.plan.spent_s), "but all of it took its time"


def test_a_plan_of_disturbed_rounds_goes_on(tmp_path: Path) -> None:
    assert compared(tmp_path, {}).plan.ended == PRECISION
    assert compared(tmp_path, {"condition": MOSTLY}).plan.ended == BUDGET
    comparison = compared(tmp_path, dict.fromkeys(("baseline", "control", "condition"), [True] * 5))
    assert comparison.plan.ended == BUDGET, "60 s are spent"
    longer = dataclasses.replace(comparison, budget_s=600.0).plan
    assert (longer.ended, longer.more_processes) == (None, 1), "it may become quieter"
    assert longer.spent_s == pytest.approx(100.0)


def test_what_was_disturbed_is_not_called_slowing_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = SyntheticLab(tmp_path, spread=0.001)
    comparison = lab.compare([TORCH, MINDSPORE], **ASKED)
    for m in comparison.measurements:
        m.blocks += [block.model_copy(update={"round": 5 + block.round}) for block in m.blocks]
        if m.role == "condition":
            for block in m.blocks[-2:]:
                block.disturbed, block.wall_s = True, LONGER * block.wall_s
        if m.role == "control":  # without a round that the others have
            m.blocks[8].disturbed = True
    assert not comparison.slows_down(MINDSPORE), "its last rounds were disturbed"
    assert comparison.ratios()["verdict"].tolist() == [same_within(0.05), SLOWER]
    monkeypatch.setattr(Comparison, "slows_down", lambda *_: True)
    mostly = compared(tmp_path, {"condition": MOSTLY})
    assert mostly.ratios().set_index("role").loc["condition", "verdict"] == DISTURBED
    assert mostly.verdict(TORCH, MINDSPORE)[1] == DISTURBED


def test_the_last_undisturbed_take_counts_though_a_later_one_is_marked() -> None:
    first, second, third = blocks(30, 31, 32)
    takes = [take.model_copy(update={"round": 0}) for take in (first, second, third)]
    for flags, counts in {(0, 0, 0): 2, (1, 0, 1): 1, (0, 1, 1): 0, (1, 1, 1): 2}.items():
        for take, flag in zip(takes, flags, strict=True):
            take.disturbed = bool(flag)
        assert final_takes(takes) == [takes[counts]]


def test_a_block_is_not_taken_again_once_a_take_of_it_is_undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter(blocks(91, 300, 31))
    entry = SimpleNamespace(measurement=SimpleNamespace(blocks=[]), job=SimpleNamespace(condition=TORCH))
    entry.warm_up = Pace(0.03, 1.9)
    monkeypatch.setattr(rounds, "_block", lambda *_: next(taken))
    rounds._blocks(entry, 0, 0, [])
    assert [block.wall_s for block in entry.measurement.blocks] == pytest.approx([0.455, 1.5])
    assert [block.disturbed for block in entry.measurement.blocks] == [False, True], "it was the warm-up that was odd"


def test_a_disturbed_control_is_no_interval_and_is_told(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"control": MOSTLY})
    assert comparison.ratios()["verdict"].tolist() == [DISTURBED, SLOWER]
    assert not comparison.control.excludes(1)
    row = ratio_row(comparison)
    assert row[["control", "control_low"]].isna().all()
    assert row["control_why"] == DISTURBED
    assert pd.isna(ratio_row(compared(tmp_path, {}))["control_why"])
    assert early_ends([comparison]) == [], "its width is not what it lacks"


def test_training_runs_that_were_disturbed_are_in_no_ratio(tmp_path: Path) -> None:
    lab = SyntheticLab(tmp_path)
    runs = lab.train([TORCH, MINDSPORE], seeds=[0, 1, 2], epochs=3)
    whole = runs.first_epoch(TORCH)
    for block in runs.measurements[0].blocks[:1]:
        block.disturbed, block.wall_s = True, 30.0
    runs.measurements[0].epochs[0].wall_s = 30.0
    frame = runs.runs()
    assert frame["disturbed_time"].iloc[0] > 0.9
    assert (frame["disturbed_time"].iloc[1:] == 0).all()
    assert len(drop_disturbed(frame)) == 5
    assert runs.first_epoch(TORCH).processes == 2
    assert runs.first_epoch(TORCH).estimate == pytest.approx(whole.estimate, rel=0.1), "not ten times as long"
    (told,) = of_rows(tidy.of_training(runs, part=0))
    assert "Training runs were disturbed" in told
    assert "(33 %)" in told


@pytest.mark.parametrize("stop", [6.0, 0.5])
def test_a_run_that_was_stopped_before_the_threshold_is_in_no_time_to_it(tmp_path: Path, stop: float) -> None:
    lab = SyntheticLab(tmp_path, metric=lambda condition, seed, epoch: 0.1 * min(epoch, 9), step=lambda _: 0.05)
    runs = lab.train([TORCH], seeds=[0, 1, 2], epochs=12, threshold=0.3)
    before, first_epoch = runs.runs(), runs.first_epoch(TORCH, with_compilation=False).estimate
    (block,) = (block for block in runs.measurements[0].blocks if block.epoch == 2)
    block.disturbed, block.wall_s = True, block.wall_s + stop
    runs.measurements[0].epochs[1].wall_s += stop
    row = runs.runs().iloc[0]
    assert row["seconds_to_threshold"] == pytest.approx(before["seconds_to_threshold"][0] + stop)
    assert row["disturbed_time"] < 0.5, "of all its time"
    assert [m.seed for m in runs.measurements if m.seed in set(drop_disturbed(runs.runs())["seed"])] == [1, 2]
    assert row["epoch_s"] == pytest.approx(before["epoch_s"][0], rel=0.02), "of the epochs that were not"
    assert runs.first_epoch(TORCH, with_compilation=False).estimate == pytest.approx(first_epoch, rel=0.02)
    (told,) = of_rows(tidy.of_training(runs, part=0))
    assert "(33 %)" in told


@pytest.mark.parametrize(
    ("chunks", "stopped"),
    [
        ([(0.02, 0.04)] * 50, False),
        ([*[(0.02, 0.04)] * 50, (5.02, 0.04)], True),
        ([(5.0, 5.0), *[(0.02, 0.3)] * 50], False),  # it compiled, in one thread of 15
        ([*[(0.02, 0.04)] * 50, (0.08, 0.02)], False),  # too short to matter
        ([(0.02, 0.002)] * 50, False),  # it is what this process always takes
    ],
)
def test_a_process_that_was_stopped_in_its_warm_up_is_seen(chunks: list[tuple[float, float]], stopped: bool) -> None:
    assert interference.was_stopped(chunks) == stopped


def watched(monkeypatch: pytest.MonkeyPatch, busy_s: list[float], throttled_s: float) -> SimpleNamespace:
    """What is seen beside a block during which each processor, of which the first is ours, was so long at work, and a
    quota took core seconds.
    """
    times, worker = psutil.cpu_times(), SimpleNamespace(process=SimpleNamespace(pid=os.getpid()), condition=TORCH)
    each = iter([type(times)(spent, *[0.0] * (len(times) - 1)) for spent in of] for of in ([0.0, 0.0], busy_s))
    quota = iter([0.0, throttled_s])
    with monkeypatch.context() as patch:
        patch.setattr(interference.psutil, "cpu_times", lambda percpu: next(each))
        patch.setattr(interference.machine, "cpus", lambda: {0})
        patch.setattr(interference, "throttled_s", lambda: next(quota))
        patch.setattr(interference, "cpu_s", lambda _: 0.0)
        return Watch(worker, []).end()


def test_who_works_on_processors_that_are_not_ours_disturbs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, [0.0, 9.0], 0.0).disturbed_by == ""
    assert watched(monkeypatch, [9.0, 0.0], 0.0).disturbed_by == OTHERS


def test_a_quota_that_held_a_block_back_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert watched(monkeypatch, [0.0, 0.0], 0.01).disturbed_by == ""
    seen = watched(monkeypatch, [0.0, 0.0], 0.3)
    assert (seen.throttled_s, seen.disturbed, seen.disturbed_by) == (0.3, True, THROTTLED)
    comparison = compared(tmp_path, {})
    assert throttled_blocks([comparison]) == []
    one = comparison.measurements[0]
    one.machine["cpu_quota"], one.blocks[0].disturbed_by = 1.5, THROTTLED
    (said,) = throttled_blocks([comparison])
    assert said.startswith("1 of 75 blocks")
    assert "1.5 cores" in said
    comparison.measurements[1].machine["cpu_quota"] = None
    comparison.measurements[1].blocks[0].disturbed_by = THROTTLED
    (said,) = throttled_blocks([comparison])
    assert said.startswith("2 of 75 blocks")
    assert "1.5 cores" in said
    one.machine["cpu_quota"] = None
    assert "a CPU quota (" in throttled_blocks([comparison])[0]


def test_the_first_epoch_with_compilation_is_without_first_steps_that_were_disturbed(tmp_path: Path) -> None:
    runs = SyntheticLab(tmp_path).train([TORCH], seeds=[0, 1, 2], epochs=3)
    whole = runs.first_epoch(TORCH)
    runs.measurements[0].first_step_s, runs.measurements[0].first_step_disturbed_by = 60.0, NO_CPU
    assert runs.first_epoch(TORCH).processes == 2
    assert runs.first_epoch(TORCH).estimate == pytest.approx(whole.estimate, rel=0.1), "not ten times as long"
    assert runs.runs()["first_step_s"].isna().tolist() == [True, False, False]
    runs.measurements[1].first_step_disturbed_by = OTHERS
    assert math.isnan(runs.first_epoch(TORCH).estimate)
    assert tidy.of_training(runs).set_index("quantity").loc["first_epoch_ratio", "why"] == DISTURBED
    assert runs.first_epoch(TORCH, with_compilation=False).processes == 3


BUSY = "import os\nwhile sum(os.times()[:2]) < 0.4: pass\n"
COMPILES = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])\nprint(1, flush=True)\ninput()"


def test_what_a_worker_has_started_is_its_own_work_while_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", COMPILES], **pipes) as process:
        worker = SimpleNamespace(process=process, cpu=psutil.Process(process.pid), condition=TORCH)

        def machine_without_others(percpu: bool) -> Any:
            own = os.times()
            busy = interference.with_children_s(worker) + own.user + own.system
            return [type(every)(busy, *[0.0] * (len(every) - 1))]

        every = psutil.cpu_times()
        monkeypatch.setattr(interference.psutil, "cpu_times", machine_without_others)
        monkeypatch.setattr(interference.machine, "cpus", lambda: {0})
        compiling, stepping = Watch(worker, [], compiles=True), Watch(worker, [])
        assert process.stdout.readline() == "1\n"
        assert (compiling.end().disturbed_by, stepping.end().disturbed_by) == ("", OTHERS)
        assert compiling.own_s > 0.3
        process.communicate("\n")


@pytest.mark.parametrize(("compiles", "restless"), [(True, False), (False, True)])
def test_who_is_not_at_rest_beside_a_first_step_is_not_restless_for_ever(monkeypatch, compiles, restless) -> None:
    """It would be stopped beside every block."""
    seconds = iter([0.0, 5.0])
    monkeypatch.setattr(interference, "cpu_s", lambda worker: 0.0 if worker is mine else next(seconds))
    told = {"condition": TORCH, "unasked_s": 0.0, "watched_s": 0.0, "restless": False}
    mine, other = (SimpleNamespace(process=SimpleNamespace(pid=os.getpid() + n), **told) for n in range(2))
    seen = Watch(mine, [other], compiles).end()
    assert IDLE_WORKERS in seen.disturbed_by
    assert other.restless is restless
