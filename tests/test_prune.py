"""What is taken away is what nothing needs: never what the report is made of, never another folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchlib.cli import main
from benchlib.errors import BenchlibError
from benchlib.suite import prune
from benchlib.suite.run_lock import hold_lock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of results: two notebooks' measurements, one of nobody, a part, and inputs."""
    for name in ("notebooks", "measurements", "inputs/digits", "tables"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "progress.log").touch()
    for key in ("aa", "bb", "cc"):
        (tmp_path / "measurements" / f"{key}.parquet").write_bytes(b"1234")
    (tmp_path / "measurements" / ".partial-dd-1").write_bytes(b"12")
    (tmp_path / "inputs" / "digits" / "x.npy").write_bytes(b"1")
    for name, key in {"modes": "aa", "scaling": "bb"}.items():
        record(tmp_path, name, {f"measurements/{key}.parquet": ""})
    return tmp_path


def record(folder: Path, name: str, files: dict[str, str], status: str = "succeeded") -> None:
    (folder / "notebooks" / f"{name}.json").write_text(json.dumps({"status": status, "files": files}))


def test_a_reader_who_has_enough_is_no_error(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "benchlib", "clean", "--outputs", str(folder)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_what_no_notebook_names_is_listed_and_goes_only_when_it_is_said(folder: Path, capsys) -> None:
    gone = {folder / "measurements" / "cc.parquet", folder / "measurements" / ".partial-dd-1", folder / "inputs"}
    record(folder, prune.MERGED, {"measurements/cc.parquet": ""})
    assert set(prune.unused_files(folder)) == gone - {folder / "measurements" / "cc.parquet"}, "it was merged into this"
    (folder / "notebooks" / f"{prune.MERGED}.json").unlink()
    assert set(prune.unused_files(folder)) == gone
    assert main(["clean", "--outputs", str(folder)]) == 0
    assert "add --yes" in capsys.readouterr().out
    assert all(path.exists() for path in gone)
    assert not (folder / ".lock").exists(), "nothing is written where nothing is taken away"
    assert main(["clean", "--outputs", str(folder), "--yes"]) == 0
    assert not any(path.exists() for path in gone)
    assert {path.name for path in (folder / "measurements").iterdir()} == {"aa.parquet", "bb.parquet"}


def test_event_files_go_with_their_measurements(folder: Path) -> None:
    runs = folder / "events" / "cnn" / "pytorch" / "eager" / "fp32 cpu"
    for name in ("seed 0 aa", "seed 1 cc"):
        (runs / name).mkdir(parents=True)
        (runs / name / "events.out.tfevents.1.benchlib").touch()
    assert runs / "seed 1 cc" in prune.unused_files(folder)
    assert main(["clean", "--outputs", str(folder), "--yes"]) == 0
    assert [path.name for path in runs.iterdir()] == ["seed 0 aa"]


@pytest.mark.parametrize("damage", ["cut record", "no record", "failed", "running"])
def test_where_it_is_not_known_what_is_needed_nothing_goes(folder: Path, damage: str) -> None:
    path = folder / "notebooks" / "modes.json"
    if damage == "cut record":
        path.write_text('{"status": "succ')
    elif damage == "no record":
        path.rename(path.with_suffix(".ipynb"))
    else:
        record(folder, "modes", {}, damage)
    with pytest.raises(BenchlibError, match="the needed files are not known"):
        prune.unused_files(folder)
    assert main(["clean", "--outputs", str(folder), "--yes"]) == 2
    assert (folder / "measurements" / "aa.parquet").exists()


def test_everything_goes_of_a_folder_of_results_only(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("project")
    (other / "notebooks").mkdir()
    for options in (["--all", "--yes"], ["--all"], ["--yes"], []):
        assert main(["clean", "--outputs", str(other), *options]) == 2
    assert [path.name for path in other.iterdir()] == ["notebooks"]
    assert main(["clean", "--outputs", str(folder), "--all", "--yes"]) == 0
    assert list(folder.iterdir()) == []


def test_while_a_run_is_at_work_there_nothing_goes(folder: Path) -> None:
    with hold_lock(folder):
        assert main(["clean", "--outputs", str(folder), "--all", "--yes"]) == 2
    assert (folder / "measurements" / "aa.parquet").exists()
