"""Scratch folders: whoever made them removes them, and of whom that cannot, the next start does, whatever their age."""

import errno
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchlib import scratch

ROOT = Path(__file__).parents[1]

OWNER = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from benchlib import scratch
print(scratch.make("worker"), flush=True)
input()
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Where temporary files go."""
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def owner():
    """A process with a folder."""
    return subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_that_of_a_killed_owner_is_removed_however_young_and_that_of_a_living_one_is_not(place):
    with owner() as killed, owner() as living:
        folders = [Path(one.stdout.readline().strip()) for one in (killed, living)]
        scratch.remove_stale()
        assert sorted(place.iterdir()) == sorted(folders)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        scratch.remove_stale()
        assert list(place.iterdir()) == [folders[1]]
        living.communicate("\n")


def test_own_ones_stay_until_they_are_removed(place):
    with scratch.scratch("kernel") as folder:
        (folder / "file").touch()
        scratch.remove_stale()
        assert (folder / "file").exists()
    assert not list(place.iterdir())
    scratch.remove(folder)  # once more


def test_without_room_nothing_is_left(place, monkeypatch):
    really = scratch.os.open

    def full(path, *arguments, **options):
        if str(path).endswith("-soon"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return really(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(scratch.os, "open", full)
        with pytest.raises(OSError, match="No space left"):
            scratch.make("worker")
    assert not list(place.iterdir())


def test_where_there_are_no_locks_nothing_young_is_removed(place, monkeypatch):
    def without(*arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr(scratch.fcntl, "flock", without)
        folder = scratch.make("worker")
    scratch.remove_stale()
    assert folder.is_dir()
    scratch.remove(folder)
