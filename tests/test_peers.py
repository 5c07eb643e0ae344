"""Whose variances a comparison may borrow: what lies in the outputs folder, kind by kind, in whichever order."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from synthetic_lab import SyntheticLab

from benchlib import store as results
from benchlib.analysis.moderation import Spread
from benchlib.analysis.peers import Peers, host_of, kind
from benchlib.analysis.statistics import rounds_of
from benchlib.condition import Condition
from benchlib.store import Measurement, Store, seconds_by_round
from benchlib.worker.steady import SLOWING

PYTORCH = Condition(workload="cnn")
MINDSPORE = Condition(workload="cnn", framework="mindspore")


def measured(folder: Path, conditions: list[Condition], **choices) -> list[Measurement]:
    """What a comparison gives; it is in the store of the folder."""
    asked = {"precision": 0.03, "budget_s": 60.0, "block_s": 0.25}
    return SyntheticLab(folder, **choices).compare(conditions, **asked).measurements


def stored(folder: Path) -> Store:
    return Store(folder / "measurements")


def peers_in(folder: Path) -> Peers:
    peers = Peers(stored(folder))
    peers.refresh()
    return peers


def at_batch(*sizes: int, **choices) -> list[list[Condition]]:
    return [[PYTORCH.but(batch_size=size), MINDSPORE.but(batch_size=size, **choices)] for size in sizes]


def of_kind(one: Condition, other: Condition, control: bool = False, machine: dict | None = None):
    synthetic = {"cores": 2, "cpu": "synthetic", "memory_gib": 8.0, "gpus": [], "cann": ""}
    return kind(one, other, control, host_of(machine or synthetic))


PAIR = of_kind(PYTORCH, MINDSPORE)


def test_a_spread_is_that_of_the_logarithms_of_ratios_within_rounds(tmp_path):
    together = measured(tmp_path, [PYTORCH, MINDSPORE])
    by_role = {(m.role, m.repetition): seconds_by_round(m) for m in together}
    logs = [rounds_of(by_role["baseline", n], by_role["condition", n]) for n in range(5)]
    assert peers_in(tmp_path).of("another", PAIR) == (Spread.of(logs),)
    assert Spread.of(logs).freedom == 4


def test_a_comparison_is_no_peer_of_its_own(tmp_path):
    groups = {measured(tmp_path, conditions)[0].group for conditions in at_batch(8, 16, 32)}
    peers = peers_in(tmp_path)
    assert len(peers.of("another", PAIR)) == 3
    for group in groups:
        assert len(peers.of(group, PAIR)) == 2


def test_of_one_kind_are_the_same_frameworks_lanes_device_and_host(tmp_path):
    for conditions in at_batch(8, 16):
        measured(tmp_path, conditions)
    measured(tmp_path, [PYTORCH.but(batch_size=4), PYTORCH.but(batch_size=4, mode="graph")])
    (tuned,) = at_batch(64, lane="tuned")
    measured(tmp_path, tuned)
    (on_gpu,) = at_batch(128, device="cuda")
    measured(tmp_path, on_gpu)
    peers = peers_in(tmp_path)
    assert len(peers.of("another", PAIR)) == 2
    assert len(peers.of("another", of_kind(PYTORCH, PYTORCH))) == 1
    assert len(peers.of("another", of_kind(*tuned))) == 1
    assert len(peers.of("another", of_kind(*on_gpu))) == 1
    assert len(peers.of("another", of_kind(PYTORCH, PYTORCH, control=True))) == 5, "every baseline has a control"
    elsewhere = {"cores": 64, "cpu": "another", "memory_gib": 8.0, "gpus": [], "cann": ""}
    assert peers.of("another", of_kind(PYTORCH, MINDSPORE, machine=elsewhere)) == ()


def test_one_ratio_of_a_comparison_counts(tmp_path):
    """They share a baseline: they are not independent."""
    measured(tmp_path, [PYTORCH, MINDSPORE, MINDSPORE.but(mode="graph"), PYTORCH.but(mode="graph")])
    peers = peers_in(tmp_path)
    assert len(peers.of("another", PAIR)) == 1
    assert len(peers.of("another", of_kind(PYTORCH, PYTORCH))) == 1


def test_measurements_of_an_older_format_lend_nothing(tmp_path, monkeypatch):
    measured(tmp_path, at_batch(8)[0])
    monkeypatch.setattr(results, "_SINCE", {})  # as if they had only what that format had
    with monkeypatch.context() as patch:
        patch.setattr(results, "FORMAT", results.LENDING - 1)
        older = measured(tmp_path, at_batch(16)[0])
    assert [stored(tmp_path)._rows(m.file)[0]["format"] for m in older] == [5] * len(older), "they are whole"
    assert len(peers_in(tmp_path).of("another", PAIR)) == 1


def test_a_damaged_file_is_passed_over_and_read_when_it_has_been_measured_again(tmp_path):
    together = measured(tmp_path, [PYTORCH, MINDSPORE])
    whole = peers_in(tmp_path).of("another", PAIR)
    path = stored(tmp_path).path(together[0].file)
    content = path.read_bytes()
    path.write_bytes(content[:100])
    peers = peers_in(tmp_path)
    assert [spread.freedom for spread in peers.of("another", PAIR)] == [3], "four processes are left"
    path.write_bytes(content)
    peers.refresh()
    assert peers.of("another", PAIR) == whole


def test_rounds_that_were_disturbed_do_not_count(tmp_path):
    together = measured(tmp_path, [PYTORCH, MINDSPORE])
    before = peers_in(tmp_path).of("another", PAIR)
    for repetition in range(5):
        ones = [m for m in together if m.repetition == repetition]
        for m in ones:
            m.blocks[1].wall_s *= 50 * (m.role == "condition") * (repetition + 1) + 1
            m.blocks[1].disturbed = True
        stored(tmp_path).save(ones)
    (after,) = peers_in(tmp_path).of("another", PAIR)
    assert after.variance == pytest.approx(before[0].variance)
    assert after.within == pytest.approx(before[0].within, abs=1e-12)


def test_a_process_that_failed_lends_nothing_and_keeps_no_other_from_it(tmp_path):
    measured(tmp_path, [PYTORCH, MINDSPORE], fails=lambda condition: condition == MINDSPORE)
    measured(tmp_path, at_batch(8)[0])
    assert len(peers_in(tmp_path).of("another", PAIR)) == 1


def test_in_whichever_order_the_files_come_it_is_the_same(tmp_path):
    source = tmp_path / "source"
    for conditions in at_batch(8, 16, 32):
        measured(source, conditions)
    files = sorted((source / "measurements").glob("*.parquet"))
    expected = peers_in(source).of("another", PAIR)
    assert len(expected) == 3
    for number in range(4):
        order = random.Random(number).sample(files, len(files))
        folder = tmp_path / str(number)
        stored(folder).folder.mkdir(parents=True)
        peers = Peers(stored(folder))
        for some in (order[:4], order[4:9], order[9:]):
            for file in some:
                shutil.copy(file, stored(folder).folder)
            peers.refresh()
        assert peers.of("another", PAIR) == expected


def hosted(folder: Path, comparisons: list[list[Measurement]], opened: float, repetitions: range = range(5)) -> None:
    """As though these repetitions of the comparisons had been measured in the same processes."""
    for repetition in repetitions:
        for together in comparisons:
            ones = [m for m in together if m.repetition == repetition]
            for m in ones:
                m.opening_s, m.shared_by = opened + repetition / 7, len(comparisons)
            stored(folder).save(ones)


def test_of_comparisons_that_have_processes_in_common_one_lends_and_to_others_only(tmp_path):
    sizes = enumerate(at_batch(4, 8, 16, 32, 64, 128), start=1)
    compared = [measured(tmp_path, conditions, spread=number / 100) for number, conditions in sizes]
    places = sorted(range(6), key=lambda place: compared[place][0].group)
    place_of = dict(zip(peers_in(tmp_path).of("another", PAIR), places, strict=True))
    hosted(tmp_path, compared[:3], 5.0)
    hosted(tmp_path, compared[3:5], 6.0)
    peers = peers_in(tmp_path)

    def lenders(number: int) -> set[int]:
        return {place_of[spread] for spread in peers.of(compared[number][0].group, PAIR)}

    assert len(peers.of("another", PAIR)) == 3, "of three and of two one each, and the one that was alone"
    assert len(peers.of(compared[5][0].group, PAIR)) == 2
    for number in range(3):
        assert lenders(number) in ({3, 5}, {4, 5}), "none that is fast or slow with it"
    for number in (3, 4):
        assert len(lenders(number)) == 2
        assert not lenders(number) & {3, 4}


def test_one_repetition_in_common_is_enough_for_two_not_to_be_independent(tmp_path):
    compared = [measured(tmp_path, conditions) for conditions in at_batch(8, 16, 32)]
    hosted(tmp_path, compared[:2], 5.0, range(4, 5))
    peers = peers_in(tmp_path)
    assert len(peers.of("another", PAIR)) == 2
    assert len(peers.of(compared[0][0].group, PAIR)) == 1


def test_a_condition_that_has_no_variance_leaves_it_to_another_of_its_comparison(tmp_path):
    together = measured(tmp_path, [PYTORCH, MINDSPORE, MINDSPORE.but(mode="graph")])
    first = min(m.condition.key for m in together if m.role == "condition")
    (before,) = peers_in(tmp_path).of("another", PAIR)
    for repetition in range(5):
        ones = [m for m in together if m.repetition == repetition]
        for m in ones:
            if m.condition.key == first and repetition:
                m.failure = "it died"
        stored(tmp_path).save(ones)
    (after,) = peers_in(tmp_path).of("another", PAIR)
    assert after.freedom == 4
    assert after != before


def test_a_ratio_that_is_mostly_disturbed_lends_nothing(tmp_path):
    together = measured(tmp_path, [PYTORCH, MINDSPORE])
    for number, lends in ((2, 1), (3, 0)):
        for repetition in range(5):
            ones = [m for m in together if m.repetition == repetition]
            for m in ones:
                for block in m.blocks:
                    block.disturbed = m.role == "condition" and block.round < number
            stored(tmp_path).save(ones)
        assert len(peers_in(tmp_path).of("another", PAIR)) == lends, f"{number} of 5 rounds were disturbed"


@pytest.mark.parametrize("role", ["baseline", "condition"])
def test_a_ratio_whose_processes_slow_down_lends_nothing(tmp_path, role):
    together = measured(tmp_path, [PYTORCH, MINDSPORE])
    slow = {"baseline": {"baseline", "control"}, "condition": {"condition"}}[role]
    for repetition in range(5):
        ones = [m for m in together if m.repetition == repetition]
        for m in ones:
            m.steady = SLOWING if m.role in slow else m.steady
        stored(tmp_path).save(ones)
    peers = peers_in(tmp_path)
    assert peers.of("another", PAIR) == ()
    assert len(peers.of("another", of_kind(PYTORCH, PYTORCH, control=True))) == (role == "condition")
