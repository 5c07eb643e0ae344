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
    with monkeypatch.context() as patch:
        patch.setattr(results, "FORMAT", results.LENDING - 1)
        measured(tmp_path, at_batch(16)[0])
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
