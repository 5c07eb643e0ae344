"""What users download and unpack: archives, pickles and texts that are cut or hostile are refused by name."""

from __future__ import annotations

import gzip
import importlib
import io
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

from benchlib.data import archives, pickles, text
from benchlib.errors import BenchlibError

WANTED = "folder/wanted"
FUZZ = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.parametrize("reader", ["imdb", "text", "prepared", "measurements", "downloads"])
def test_some_damaged_data_of_every_kind_are_read_or_refused_by_name(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A few of the cases of ``benchmarks/fuzz_data.py``, the same each time."""
    monkeypatch.syspath_prepend(FUZZ)
    fuzz = importlib.import_module("fuzz_data")
    for name in ("BENCHLIB_DATA", "NO_PROXY", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # so that it is as before, afterwards
    assert sum(fuzz.run(reader, 15, tmp_path).values()) >= 15
    assert reader in fuzz.READERS


def packed(path: Path, *members: tuple[str, bytes, bytes]) -> Path:
    """An archive of members: name, type, content (of a link: where it leads)."""
    with tarfile.open(path, "w:gz") as tar:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, 0 if kind in b"1234" else len(content), "/etc/passwd"
            tar.addfile(member, io.BytesIO(content))
    return path


def refused(path: Path) -> str:
    with pytest.raises(BenchlibError) as error:
        list(archives.members(path, {WANTED, "other"}.__contains__, "get it again"))
    assert str(error.value).startswith(f"{path}: ")
    assert str(error.value).endswith("; get it again")
    return str(error.value)


def test_of_an_archive_only_what_is_wanted_is_read(tmp_path: Path):
    path = packed(tmp_path / "a.tar.gz", *((name, b"0", b"abc") for name in ("x", f"./{WANTED}", "y")))
    assert list(archives.members(path, WANTED.__eq__, "")) == [(WANTED, b"abc")]
    assert [one.name for one in tmp_path.iterdir()] == ["a.tar.gz"]


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_a_link_or_a_device_with_a_wanted_name_is_refused(tmp_path: Path, kind: bytes):
    assert f"member '{WANTED}' is a folder, a link or a device" in refused(
        packed(tmp_path / "a.tar.gz", (WANTED, kind, b""))
    )


@pytest.mark.parametrize("name", ["../other", "/other", "folder/../../other"])
def test_a_path_that_leads_out_of_the_archive_is_refused(tmp_path: Path, name: str):
    assert "leads out of the archive" in refused(packed(tmp_path / "a.tar.gz", (name, b"0", b"abc")))


def test_an_archive_that_unpacks_to_more_than_any_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 2**20)
    assert "more than 1,048,576 bytes" in refused(packed(tmp_path / "a.tar.gz", *[("x", b"0", bytes(2**19))] * 3))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_an_archive_that_is_cut_is_refused(tmp_path: Path, share: float):
    path = packed(tmp_path / "a.tar.gz", (WANTED, b"0", np.random.default_rng(0).bytes(50_000)))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    assert "cut" in refused(path)


class Evil:
    def __reduce__(self):
        return os.system, ("touch ran",)


def test_a_pickle_is_read_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for protocol in (2, 3, 4):
        assert pickles.load(pickle.dumps({"a": np.arange(3)}, protocol), "latin1")["a"].tolist() == [0, 1, 2]
        with pytest.raises(BenchlibError, match=r"asks for '\w+.system': it was refused, not run"):
            pickles.load(pickle.dumps({"a": Evil()}, protocol), "latin1")
    assert not Path("ran").exists()
    pickle.loads(pickle.dumps(Evil()))
    assert Path("ran").exists(), "Python's own loader runs it"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("words".encode("utf-16-le") * 9, "it has zero bytes"),
        ("é".encode("latin1"), "can't decode"),
        (gzip.compress(b"One sentence. Another one, which is longer.\n\n" * 50)[:-9], "ended"),
        (None, "directory"),
    ],
)
def test_a_text_that_cannot_be_read_is_named(tmp_path, monkeypatch, content: bytes | None, told: str):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    path = tmp_path / "text" / "mine.txt"
    path.parent.mkdir()
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(BenchlibError, match=rf"mine\.txt: no text in UTF-8 can be read from it .*{told}"):
        text.load()


@pytest.mark.parametrize("name", ["text/a.txt", "text/a.txt.gz"])
def test_texts_have_an_end(tmp_path, monkeypatch, name: str):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    monkeypatch.setattr(archives, "MOST_BYTES", 50)
    (tmp_path / "text").mkdir()
    (tmp_path / name).write_bytes(gzip.compress(b"b" * 60) if name.endswith(".gz") else b"b" * 60)
    with pytest.raises(BenchlibError, match=r"a\.txt.*: .*more than 50 bytes, the most that is read"):
        text.load()
