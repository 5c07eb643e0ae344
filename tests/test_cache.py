"""Measurements come back from disk as they were, or not at all."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchlib import cache as results
from benchlib.cache import FORMAT, Block, Epoch, Measurement, Sample, Store
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.runner.roofline import Ceiling


def measurement(**changes):
    told = {
        **{"kind": "comparison", "group": "g", "file": "f", "repetition": 0, "role": "baseline", "seed": 3},
        "condition": Condition(workload="cnn"),
        "started_utc": "2026-01-01T00:00:00+00:00",
        "versions": {"torch": "2"},
        "machine": {"cores": 2, "gpus": []},
        "blocks": [Block(round=0, position=1, steps=2, samples=128, started_s=1.5, wall_s=0.25, cpu_s=0.5)],
        "trace": [Sample(at_s=1.6, machine_cpu_percent=99.0, worker_cores=1.9, rss_mib=300.5)],
        "epochs": [Epoch(epoch=1, wall_s=0.25, loss=float("inf"), metric=0.5)],
    }
    return Measurement(**{**told, **changes})


def test_what_is_read_is_what_was_written(tmp_path):
    store = Store(tmp_path / "measurements")
    written = [measurement(), measurement(role="control", failure="it died", blocks=[], trace=[], epochs=[])]
    store.save(written)
    assert store.load("f") == written
    assert store.load("other") is None
    assert [path.name for path in store.folder.iterdir()] == ["f.parquet"]
    frame = results.frame(store.all())
    assert list(frame["role"]) == ["baseline", "control"]
    assert frame["failure"].isna().tolist() == [True, False]
    assert frame.loc[0, "steps"] == 2
    row = pq.read_table(store.path("f")).to_pylist()[0]  # without benchlib
    assert row["blocks"][0]["wall_s"] == 0.25
    assert row["label"].startswith("cnn pytorch eager")


CHANGED = dict.fromkeys(("kind", "group", "role", "label", "started_utc", "failure"), "another")
CHANGED |= {"repetition": 1, "seed": 4, "measurement": "{}", "blocks": [], "trace": [], "epochs": []}


def _rewrite(path, change):
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), table.schema), path)


def _setting(column):
    return lambda rows: [{**rows[0], column: CHANGED[column]}, *rows[1:]]


TAKEN_OUT_OR_DOUBLED = [lambda rows: rows[:1], lambda rows: [*rows, rows[0]], lambda rows: []]


@pytest.mark.parametrize("change", [*map(_setting, CHANGED), *TAKEN_OUT_OR_DOUBLED], ids=[*CHANGED, *"123"])
def test_every_column_of_every_row_is_hashed(tmp_path, change):
    store = Store(tmp_path)
    store.save([measurement(), measurement(role="control")])
    assert len(store.load("f")) == 2
    _rewrite(store.path("f"), change)
    with pytest.raises(BenchlibError, match=r"f\.parquet: .*changed after it was measured"):
        store.load("f")


def test_a_file_under_another_key_is_named(tmp_path):
    Store(tmp_path / "others").save([measurement()])
    store = Store(tmp_path / "mine")
    store.folder.mkdir()
    with pytest.raises(BenchlibError, match=r"others/f\.parquet: holds measurements with the key f, which"):
        store.load("../others/f")


@pytest.mark.parametrize("edit", [lambda text: text.replace("1.5", "2.5"), lambda text: text[:-20], lambda _: "[]"])
def test_a_limit_that_was_edited_is_named_and_put_aside(tmp_path, edit):
    path = tmp_path / "ceilings" / "f.json"
    limits = Ceiling(device="cpu", precision="fp32", multiply_adds_per_s=1.5, bytes_per_s=float("inf"))
    results.save(path, limits)
    assert results.load(Ceiling, path) == limits
    path.write_text(edit(path.read_text()))
    with pytest.raises(BenchlibError, match=rf"{path}: .*; delete it to measure again"):
        results.load(Ceiling, path)
    assert results.load_or_set_aside(Ceiling, path) is None
    assert [one.name for one in path.parent.rglob("*.json")] == ["f.json"]
    assert not path.exists()


def test_a_full_disk_loses_no_other_measurement(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.save([measurement()])

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(BenchlibError, match=r"g2\.parquet: No space left on device"):
        store.save([measurement(file="g2")])
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["f.parquet"]
    assert store.load("f") == [measurement()]


def test_what_cannot_be_used_is_named_and_the_rest_is_read(tmp_path):
    store = Store(tmp_path)
    for file in ("f", "cut", "edited", "newer"):
        store.save([measurement(file=file)])
    store.path("cut").write_bytes(store.path("cut").read_bytes()[:200])
    _rewrite(store.path("edited"), lambda rows: rows[0]["blocks"][0].update(wall_s=0.1) or rows)
    _rewrite(store.path("newer"), lambda rows: [{**rows[0], "format": FORMAT + 1}])
    found, wrong = store.read(["f", "cut", "edited", "newer", "gone"])
    assert found == [measurement()]
    for told, reason in zip(wrong, ("not a whole parquet", "changed after", "gone", "written in format"), strict=True):
        assert reason in told
    with pytest.raises(BenchlibError, match=r"cut\.parquet"):
        store.all()


def test_a_damaged_file_is_put_aside_and_said_so_that_it_can_be_measured_again(tmp_path, capsys):
    store = Store(tmp_path)
    store.save([measurement()])
    cut = store.path("f").read_bytes()[:200]
    store.path("f").write_bytes(cut)
    assert store.load_or_set_aside("f") is None
    assert not store.path("f").exists()
    assert (store.folder / "damaged" / "f.parquet").read_bytes() == cut
    said = capsys.readouterr().err
    assert "damaged/f.parquet" in said
    store.save([measurement()])
    assert store.load_or_set_aside("f") == store.all() == [measurement()], "the file put aside is not read"
