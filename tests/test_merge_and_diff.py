"""Folders of results united, and compared: nothing is pooled, nothing half done, and what got slower is seen."""

import importlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from synthetic_lab import SyntheticLab, step_seconds

from benchlib.cache import Store, save
from benchlib.cli import main
from benchlib.cluster import diff, diff_page
from benchlib.cluster.merge import merge
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import Certificate, Check
from benchlib.errors import BenchlibError

BASE = Condition(workload="linear", framework="pytorch")
OTHER = BASE.but(mode="graph")
BATCHES = (8, 16, 32, 64)
ASKED = {"precision": 0.1, "budget_s": 60.0, "block_s": 0.1}


def measured(folder, host="n1", seed=0, step=step_seconds, day="2026-11-01", versions=None):
    """Made-up comparisons at some batch sizes: the rows of one host and one day."""
    lab = SyntheticLab(folder, step=step)
    lab.random = np.random.default_rng(seed)
    for batch in BATCHES:
        rows = lab.compare([one.but(batch_size=batch) for one in (BASE, OTHER)], **ASKED).measurements
        for m in rows:
            m.file, m.group, m.started_utc = f"{m.file}{host}", f"{m.group}{host}", f"{day}T00:00:00+00:00"
            m.machine["host"] = host
            m.versions |= (versions or {}).get(m.condition.mode, {})
        for file in {m.file for m in rows}:
            lab.store.path(file.removesuffix(host)).unlink()
            lab.store.save([m for m in rows if m.file == file])
    return folder


def slowed(mode, by):
    return lambda condition: step_seconds(condition) * (by if condition.mode == mode else 1)


def code_of(*arguments):
    return main([str(one) for one in arguments])


@pytest.fixture
def two(tmp_path):
    return measured(tmp_path / "a"), measured(tmp_path / "b", host="n2", seed=1)


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_folders_of_two_hosts_are_united_and_the_same_rows_are_there_once(two, tmp_path, capsys):
    shutil.copytree(two[0], tmp_path / "copy")
    assert code_of("merge", *two, tmp_path / "copy", "--outputs", tmp_path / "c") == 0
    assert "120 rows in 40 files, of n1, n2; 20 files were in two folders" in capsys.readouterr().out
    rows = Store(tmp_path / "c" / "measurements").all()
    given = [m for one in two for m in Store(one / "measurements").all()]
    assert sorted((m.file, m.role) for m in rows) == sorted((m.file, m.role) for m in given)
    assert all(f"/{m.file}.parquet" in (tmp_path / "c/notebooks/.merged.json").read_text() for m in rows), "for clean"
    found = diff.read_side(str(tmp_path / "c"))
    assert {one.host for one in found} == {"n1", "n2"}
    assert all(len(one.logs) == 5 for one in found), "no interval has the processes of two hosts"


def test_a_conflict_is_named_and_nothing_is_written(two, tmp_path):
    other = measured(tmp_path / "d", seed=2)
    with pytest.raises(BenchlibError, match="measured twice, with other numbers") as raised:
        merge([two[0], two[1], other], tmp_path / "c")
    assert str(two[0]) in str(raised.value)
    assert str(other) in str(raised.value)
    assert left_in(tmp_path) == ["a", "b", "d"]


def test_rows_without_a_host_are_refused(two, tmp_path):
    store = Store(two[1] / "measurements")
    rows = store.load(next(store.folder.iterdir()).stem)
    del rows[0].machine["host"]
    store.save(rows)
    with pytest.raises(BenchlibError, match=f"{rows[0].file}.parquet: from before hosts were recorded"):
        merge(two, tmp_path / "c")
    assert left_in(tmp_path) == ["a", "b"]


def test_of_one_host_timers_and_ceilings_are_the_first_folders_and_certificates_must_agree(two, tmp_path):
    proof = Certificate(condition=BASE, reference=BASE, file="k")
    for number, folder in enumerate(two):
        save(folder / "certificates" / "k.json", proof.model_copy(update={"commit": str(number)}))
        (folder / "timers").mkdir()
        (folder / "timers" / "t.json").write_text(str(number))
    merge(two, tmp_path / "c")
    assert (tmp_path / "c" / "timers" / "t.json").read_text() == "0"
    check = Check(name="outputs", difference=1.0, worst=1.0, at="x", tolerance=0.1)
    save(two[1] / "certificates" / "k.json", proof.model_copy(update={"checks": [check]}))
    with pytest.raises(BenchlibError, match="two verdicts of one key"):
        merge(two, tmp_path / "d")


def test_a_merge_that_breaks_off_leaves_nothing(two, tmp_path, monkeypatch):
    done, copy = [], shutil.copy2

    def full(*paths):
        done.append(paths)
        if len(done) > 3:
            raise OSError(28, "No space left on device")
        return copy(*paths)

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(BenchlibError, match="No space left"):
        merge(two, tmp_path / "c")
    assert left_in(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("what", ["there", "no folder", "damaged"])
def test_what_cannot_be_merged_is_refused(two, tmp_path, what):
    target, sources = tmp_path / "c", [*two]
    if what == "there":
        target = two[1]
    elif what == "no folder":
        sources.append(tmp_path / "none")
    else:
        next((two[0] / "measurements").iterdir()).write_bytes(b"x")
    with pytest.raises(BenchlibError, match=r"is there already|no folder of results|not a whole parquet file"):
        merge(sources, target)
    assert left_in(tmp_path) == ["a", "b"]


def test_a_crash_gives_way_to_what_was_measured_again(two, tmp_path):
    crashed = shutil.copytree(two[0], tmp_path / "d")
    store = Store(crashed / "measurements")
    rows = store.load(file := next(store.folder.iterdir()).stem)
    rows[-1].failure, rows[-1].blocks = "the worker died", []
    store.save(rows)
    for number, sources in enumerate(([crashed, two[0]], [two[0], crashed])):
        merge(sources, target := tmp_path / f"c{number}")
        assert all(m.ok for m in Store(target / "measurements").load(file))


def test_the_file_of_a_visit_is_merged_under_its_commit(two, tmp_path, monkeypatch):
    rows = Store(two[1] / "measurements").all()
    lines = [{"kind": "visit", "commit": "abc123"}, {"kind": "check"}]
    for m in rows:
        value = json.loads(m.model_dump_json())
        del value["machine"]["host"]
        lines.append({"kind": "measurement", "value": value | {"of an older time": 1}})
    visit = tmp_path / "gpu.jsonl"
    visit.write_text("\n".join(map(json.dumps, lines)) + '\n{"kind": "measurement", "val')
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    importlib.import_module("gpu").rows(visit, tmp_path / "visit")
    merge([two[0], tmp_path / "visit"], tmp_path / "c")
    merged = Store(tmp_path / "c" / "measurements").all()
    assert {m.machine["host"] for m in merged} == {"n1", "a visit at abc123"}
    assert not {m.group for m in merged if m.machine["host"] != "n1"} & {m.group for m in rows}
    assert len(diff.read_side(str(tmp_path / "c"))) == 2 * len(BATCHES)


@pytest.mark.parametrize(
    ("step", "codes", "who"),
    [
        (step_seconds, (0, 0), None),
        (slowed("graph", 1.1), (1, 1), "graph"),
        (slowed("eager", 1.1), (1, 1), "eager"),
        (slowed("graph", 1 / 1.1), (1, 0), "graph"),
        (slowed("eager", 1 / 1.1), (1, 0), "eager"),
        (lambda condition: 1.2 * step_seconds(condition), (0, 1), None),
    ],
    ids=["same", "slower", "baseline slower", "faster", "baseline faster", "all slower"],
)
def test_the_exit_code_says_what_changed_and_what_got_slower(tmp_path, step, codes, who, capsys):
    before = measured(tmp_path / "a")
    after = measured(tmp_path / "b", seed=1, step=step, day="2026-11-02")
    page = tmp_path / "page.html"
    for on, code in zip(("changed", "slower"), codes, strict=True):
        assert code_of("diff", before, after, "--fail-on", on, "--page", page) == code
    assert f"{4 if who else 0} of 4 ratios have changed" in capsys.readouterr().out
    found = diff.compare(str(before), str(after))
    assert {one.who[0].split()[2] for one in found.changed} == ({who} if who else set())
    assert "http" not in page.read_text()
    assert code_of("diff", before, after) == 0, "without --fail-on it only says so"
    assert code_of("diff", before, before, "--fail-on", "changed") == 0
    assert code_of("diff", before, after, "--page", tmp_path) == 2, "a folder is no page"


def test_between_hosts_the_one_whose_software_changed_is_named(tmp_path):
    before = measured(tmp_path / "a")
    changed = {"eager": {"pytorch": "2.0"}}
    for by, word in ((1.1, diff.SLOWER), (1 / 1.1, diff.FASTER)):
        after = measured(tmp_path / f"b{by}", host="n2", seed=1, step=slowed("eager", by), versions=changed)
        found = diff.compare(str(before), str(after))
        assert {one.who[1] for one in found.changed} == {word}
        assert found.fails("slower") == (word == diff.SLOWER)
        assert "pytorch: 1.0 -> 2.0" in diff_page.text(found)
    after = measured(tmp_path / "c", host="n2", seed=1, step=slowed("eager", 1.1))
    found = diff.compare(str(before), str(after))
    assert {one.who[1] for one in found.changed} == {diff.UNKNOWN}
    assert found.fails("slower"), "who cannot tell does not say that all is well"
    assert diff.Diff(("a", "b"), [], [["graph / eager"], []], []).fails("changed"), "a ratio is gone"
    assert not diff.Diff(("a", "b"), [], [[], ["graph / eager"]], []).fails("slower"), "one is new"


def test_each_side_is_taken_within_its_own_host(two, tmp_path, monkeypatch):
    merge(two, both := tmp_path / "both")
    slow = measured(tmp_path / "s", host="n2", seed=3, step=slowed("graph", 1.2))
    found = diff.compare(f"{both}@host=n1", f"{both}@host=n2")
    assert [(one.before.host, one.after.host) for one in found.changes] == [("n1", "n2")] * len(BATCHES)
    found = diff.compare(str(both), str(slow))
    assert [one.before.host for one in found.changed] == ["n2"] * len(BATCHES), "where both have a host: with itself"
    check = Check(name="outputs", difference=1.0, worst=1.0, at="x", tolerance=0.1)
    gated = gate.adapt(OTHER.but(batch_size=8))
    exact = gated.but(precision="fp64")
    monkeypatch.setattr(gate, "prerequisites", lambda one: [exact] if one == gated else [])
    wrong = Certificate(condition=exact, reference=BASE, file="k", checks=[check])
    right = {"condition": gated, "file": "l", "checks": [check.model_copy(update={"difference": 0.0})]}
    for proof in (wrong, wrong.model_copy(update=right)):
        assert len(diff.read_side(str(slow))) == len(BATCHES)
        save(slow / "certificates" / f"{proof.file}.json", proof)
    with pytest.raises(BenchlibError, match=r"no ratio; .*/s has comparisons of n2 2026-11-01 default"):
        diff.read_side(str(slow))  # in double precision another model
    third = measured(tmp_path / "t", host="n3", seed=4)
    found = diff.compare(str(both), str(third))
    assert (found.changes, len(found.unclear)) == ([], len(BATCHES)), "which of two hosts is meant is not guessed"


def test_the_report_says_how_much_of_the_spread_is_between_occasions(tmp_path):
    days = [measured(tmp_path / f"day{day}", f"n1.{day}", day, slowed("graph", 1.2**day)) for day in (0, 1)]
    merge(days, tmp_path / "c")
    cells = json.loads((Path(__file__).parents[1] / "notebooks" / "report.ipynb").read_text())["cells"]
    known = {"outputs": str(tmp_path / "c")}
    for source in ("".join(cell["source"]) for cell in cells if "itertools" in str(cell["source"])):
        exec(source, known)
    assert re.search(r"Of the spread of 4 ratios, .* (9\d|100)% is between these", str(known["said"]))


def test_a_side_is_chosen_by_date_or_version(tmp_path, capsys):
    first, later = measured(tmp_path / "a"), measured(tmp_path / "b", "n2", 1, day="2026-11-05")
    new = measured(tmp_path / "d", "n3", 2, versions={mode: {"pytorch": "2.0"} for mode in ("eager", "graph")})
    merge([first, later, new], both := tmp_path / "c")
    assert {one.host for one in diff.read_side(f"{both}@date=2026-11-05")} == {"n2"}
    assert {one.host for one in diff.read_side(f"{both}@date=2026-11-01..2026-11-03")} == {"n1", "n3"}
    assert {one.host for one in diff.read_side(f"{both}@pytorch=2.0")} == {"n3"}
    for wrong, said in (("@host=x", "n3 2026"), ("@date=2026-13-01", "give h"), ("@x", "give h"), ("x", "there is no")):
        with pytest.raises(BenchlibError, match=said):
            diff.read_side(f"{both}{wrong}")
    SyntheticLab(tmp_path / "e").compare([BASE.but(batch_size=3), OTHER.but(batch_size=3)], **ASKED)
    assert code_of("diff", first, tmp_path / "e") == 2
    assert "nothing was compared" in capsys.readouterr().err
