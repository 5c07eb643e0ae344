"""What users download and unpack: archives, pickles and texts in gzip that are hostile are refused by name, at once."""

from __future__ import annotations

import gzip
import importlib
import io
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchlib.data import archives, cora, multi30k, pickles, text
from benchlib.errors import BenchlibError

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
WANTED = "folder/wanted"


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("fuzz_data")


@pytest.mark.parametrize(
    "reader", ["cifar10", "cora", "imdb", "multi30k", "text", "prepared", "measurements", "downloads"]
)
def test_some_damaged_data_of_every_kind_are_read_or_refused_by_name(
    fuzz, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A few of the cases of ``benchmarks/fuzz_data.py``, the same each time."""
    for name in ("BENCHLIB_DATA", "NO_PROXY", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # so that it is as before, afterwards
    count = fuzz.run(reader, 15, tmp_path)
    assert sum(count.values()) >= 15
    assert set(fuzz.READERS) == {
        "cifar10", "cora", "imdb", "multi30k", "text", "prepared", "measurements", "downloads"
    }  # fmt: skip


# Archives


def packed(path: Path, *members: bytes) -> Path:
    path.write_bytes(gzip.compress(b"".join(members) + b"\0" * 1024, 1))
    return path


def refused(path: Path) -> str:
    """The message; what is refused takes no time."""
    started = time.process_time()
    with pytest.raises(BenchlibError) as error:
        list(archives.members(path, {WANTED, "other"}.__contains__, "get it again"))
    assert time.process_time() - started < 5
    assert str(error.value).startswith(f"{path}: ")
    assert str(error.value).endswith("; get it again")
    return str(error.value)


def test_of_an_archive_only_what_is_wanted_is_read(fuzz, tmp_path: Path):
    members = [fuzz.header(name, 3) + fuzz.padded(b"abc") for name in ("x", WANTED, "y")]
    path = packed(tmp_path / "a.tar.gz", *members)
    assert list(archives.members(path, WANTED.__eq__, "")) == [(WANTED, b"abc")]
    assert [one.name for one in tmp_path.iterdir()] == ["a.tar.gz"]


@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"4", b"5", b"6"])
def test_a_link_or_a_device_with_a_wanted_name_is_refused(fuzz, tmp_path: Path, kind: bytes):
    path = packed(tmp_path / "a.tar.gz", fuzz.header(WANTED, 0, kind, "/etc/passwd"))
    assert f"member '{WANTED}' is a folder, a link, a device or has holes" in refused(path)


@pytest.mark.parametrize("size", [2**31, 2**40, 2**62, -1, -512])
def test_a_size_that_cannot_be_is_refused(fuzz, tmp_path: Path, size: int):
    path = packed(tmp_path / "a.tar.gz", fuzz.header("x", size), fuzz.header(WANTED, 0))
    assert f"member 'x' says that it has {size:,} bytes" in refused(path)


def pax(fuzz, record: bytes) -> bytes:
    record = b"%d %b\n" % (len(record) + len(str(len(record) + 4)) + 2, record)
    return fuzz.header("pax", len(record), b"x") + fuzz.padded(record)


@pytest.mark.parametrize("record", [b"size=9223372036854775807", b"size=-5", b"GNU.sparse.size=99999999999999"])
def test_an_extended_header_has_no_more_to_say(fuzz, tmp_path: Path, record: bytes):
    """Python's own reader skips as much as it is told, in steps of 10 KiB, behind the end, too."""
    path = packed(
        tmp_path / "a.tar.gz", pax(fuzz, record), fuzz.header("x", 3), fuzz.padded(b"abc"), fuzz.header("other", 0)
    )
    assert "member 'x' says that it has" in refused(path)


def test_what_an_archive_skips_ends_with_it(fuzz, tmp_path: Path):
    """The header inside says where the next one is, the one outside, how large the member is."""
    inner = pax(fuzz, b"size=9223372036854775807")
    path = packed(
        tmp_path / "a.tar.gz", pax(fuzz, b"GNU.sparse.size=5"), inner, fuzz.header("x", 3), fuzz.padded(b"abc")
    )
    assert "it ends before what its headers say that it has" in refused(path)


def test_an_extended_header_is_short(fuzz, tmp_path: Path):
    digits = b"1" * 300_000  # 40,000 take Python 3.11.7 1.6 s, twice as many four times that
    path = packed(
        tmp_path / "a.tar.gz", fuzz.header("pax", len(digits), b"x"), fuzz.padded(digits), fuzz.header("x", 0)
    )
    assert "it has an extended header of 300,000 bytes" in refused(path)


def test_extended_headers_without_end_are_refused(fuzz, tmp_path: Path):
    path = packed(tmp_path / "a.tar.gz", *[pax(fuzz, b"a=b")] * 3000, fuzz.header(WANTED, 0))
    assert "RecursionError" in refused(path)


def test_an_archive_that_unpacks_to_more_than_any_is_refused(fuzz, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 2**20)
    path = packed(tmp_path / "a.tar.gz", *[fuzz.header("x", 2**19) + bytes(2**19)] * 3)
    assert "it holds more than 1,048,576 bytes" in refused(path)


def test_an_archive_of_more_members_than_any_is_refused(fuzz, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "MOST_MEMBERS", 5)
    assert "it has more than 5 members" in refused(packed(tmp_path / "a.tar.gz", *[fuzz.header("x", 0)] * 6))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.99])
def test_an_archive_that_is_cut_is_refused(fuzz, tmp_path: Path, share: float):
    content = np.random.default_rng(0).bytes(50_000)
    path = packed(tmp_path / "a.tar.gz", fuzz.header(WANTED, len(content)), fuzz.padded(content))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    assert "cut" in refused(path)


def test_a_member_that_has_less_than_it_says_is_refused(fuzz, tmp_path: Path):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(fuzz.header(WANTED, 2000) + b"abc"))
    assert "cut" in refused(path)


def test_a_text_that_unpacks_to_more_than_the_most_is_refused(tmp_path: Path):
    path = tmp_path / "a.gz"
    content = np.random.default_rng(0).bytes(3 * 2**20)
    path.write_bytes(gzip.compress(content, 1))
    assert archives.unpacked(path, 3 * 2**20) == content
    with pytest.raises(BenchlibError, match=r"a\.gz: it holds more than 1,048,576 bytes"):
        archives.unpacked(path, 2**20)


def test_a_text_that_unpacks_to_more_than_any_of_its_size_is_refused(tmp_path: Path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(3 * 2**20)))
    most = archives.MOST_FOR_ONE * path.stat().st_size + 2**20
    with pytest.raises(BenchlibError, match=rf"a\.gz: it holds more than {most:,} bytes"):
        archives.unpacked(path)


# Pickles


def load(content: bytes) -> object:
    return pickles.load(io.BytesIO(content), "this", "latin1", {})


def said(word: bytes) -> bytes:
    return b"U" + bytes([len(word)]) + word


def array(kind: bytes, state: bytes, shape: bytes = b"K\x01\x85", content: bytes = said(b"A" * 8)) -> bytes:
    """A pickled array with a type as it is told."""
    told = b"cnumpy\ndtype\n" + said(kind) + b"K\x00K\x01\x87R" + state
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    return b"\x80\x02" + made + b"(K\x01" + shape + told + b"\x89" + content + b"tb."


def state(order: bytes, rest: bytes = b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00") -> bytes:
    return b"(K\x03" + said(order) + rest + b"tb"


AN_OBJECT = b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R"
FORGED = b"N(U\x01at}U\x01a" + AN_OBJECT + b"K\x00\x86sK\x08K\x01K\x00"  # a field of objects, and flags that deny it


def test_plain_arrays_are_read():
    np.testing.assert_array_equal(load(array(b"f4", state(b"<"), b"K\x02\x85")), np.frombuffer(b"A" * 8, "<f4"))
    numbers = bytes(range(8))
    np.testing.assert_array_equal(
        load(array(b"i4", state(b">"), b"K\x02\x85", said(numbers))), [0x00010203, 0x04050607]
    )
    assert load(array(b"u1", state(b"|"), b"K\x02K\x04\x86")).shape == (2, 4)


FORGERIES = {
    "a field of objects": array(b"V8", state(b"|", FORGED)),
    "fields of a plain type": array(b"u1", state(b"|", FORGED)),
    "an object": array(b"O8", state(b"|")),
    "two types": array(b"O,u1", state(b"|")),
    "a date": array(b"M8", state(b"<")),
    "text": array(b"U2", state(b"<")),
    "an alignment": array(b"u1", state(b"|", b"NNNK\x7fK\x7fK\x01")),
    "a shape of more": array(b"i8", state(b"<"), b"J\x00\x00\x00\x7f\x85"),
    "a negative shape": array(b"i8", state(b"<"), b"J\xff\xff\xff\xff\x85"),
    "a shape of texts": array(b"i8", state(b"<"), said(b"1") + b"\x85"),
    "a list for bytes": array(b"i8", state(b"<"), content=b"]K\x01a"),
}


@pytest.mark.parametrize("content", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_array_is_refused_and_crashes_nothing(tmp_path: Path, content: bytes):
    """In a process of its own: with numpy's own reader the first of them was a segmentation fault."""
    path = tmp_path / "data_batch_1"
    path.write_bytes(b"\x80\x02}(U\x04dataK\x01U\x06labels" + content[2:-1] + b"u.")
    code = (
        "import sys\nfrom benchlib.data import cifar10\nfrom benchlib.errors import BenchlibError\n"
        "try:\n    cifar10._batch(open(sys.argv[1], 'rb'), sys.argv[1])\n"
        "except BenchlibError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: its pickle asks for ")
    assert "it was refused, not run" in done.stdout


TUPLES = b")q\xfa" + b"h\xfah\xfa\x86q\xfa" * 64  # each of two of those before
LISTS = b"](K\x01K\x01eq\xfa" + b"](h\xfah\xfaeq\xfa" * 40


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\x80\x02" + TUPLES + b"}h\xfaK\x01s.", "keys are no texts or numbers"),
        (b"\x80\x02" + TUPLES + b"(h\xfaK\x01d.", "keys are no texts or numbers"),
        (b"\x80\x02]" * (2**20 + 1), "more than 1,048,576 operations"),
        (b"\x80\x02\x8f.", "an operation b'\\x8f'"),  # a set
        (b"\x80\x02cnumpy\ndtype\n}U\x04textK\x01sb.", "a state of a method"),
        (b"\x80\x02" + TUPLES + b"cnumpy\ndtype\nh\xfa\x85R.", "the numpy type a tuple"),
        (b"\x80\x02cnumpy\nndarray\nK\x05\x85R.", "a call of what cannot be called"),
        (b"\x80\x02" + TUPLES + b"c_codecs\nencode\nU\x01ah\xfa\x86R.", "the encoding a tuple"),
        (
            b"\x80\x02X\xe8\x03\x00\x00"
            + b"a" * 1000
            + b"q\x00"
            + b"c_codecs\nencode\nh\x00U\x06latin1\x86R" * 99
            + b".",
            "more than",
        ),
    ],
    ids=range(9),
)
def test_a_pickle_that_would_take_for_ever_is_refused_at_once(content: bytes, told: str):
    started = time.process_time()
    with pytest.raises((BenchlibError, pickle.UnpicklingError), match=None) as error:
        load(content)
    assert told in str(error.value)
    assert len(str(error.value)) < 300
    assert time.process_time() - started < 10


def test_a_place_in_the_memory_of_a_pickle_takes_no_more_than_any_other():
    """The reader in C would fill 32 GB."""
    assert load(b"\x80\x02K\x05r\xff\xff\xff\xff0j\xff\xff\xff\xff.".replace(b"0j", b"j")) == 5


def test_labels_that_are_lists_in_lists_are_refused(fuzz, tmp_path: Path):
    from benchlib.data import cifar10

    content = b"\x80\x02" + LISTS + b"}(C\x04dataK\x01C\x06labelsh\xfau."
    with pytest.raises(BenchlibError, match=r"here: .*a label is a list"):
        cifar10._batch(io.BytesIO(content), "here")


def test_a_pickle_has_an_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pickles, "MOST_BYTES", 100)
    with pytest.raises(BenchlibError, match="it has more than 100 bytes, the most that any file of this needs"):
        load(pickle.dumps(b"a" * 100))


# Cora's parts


def csr(**parts: object) -> dict[str, object]:
    whole = {"_shape": (2, 3), "data": np.ones(2), "indices": np.array([0, 2]), "indptr": np.array([0, 1, 2])}
    return whole | parts


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"_shape": (2**20, 2**20)}, "more than 67,108,864 numbers"),
        ({"_shape": (2, -1)}, "no two numbers"),
        ({"_shape": [2, 3]}, "no two numbers"),
        ({"data": [1.0, 1.0]}, "the data of its matrix"),
        ({"data": np.ones((2, 1))}, "the data of its matrix"),
        ({"data": np.array([np.nan, 1.0])}, "not finite"),
        ({"indices": np.array([0, 3])}, "numbers elsewhere"),
        ({"indices": np.array([-1, 0])}, "numbers elsewhere"),
        ({"indptr": np.array([0, 2**40, 2])}, "numbers elsewhere"),
        ({"indptr": np.array([0, 2])}, "numbers elsewhere"),
        ({"indptr": np.array([0, 1, 3])}, "numbers elsewhere"),
    ],
)
def test_a_matrix_that_cannot_be_is_refused(parts: dict, told: str):
    with pytest.raises(ValueError, match=told):
        cora._Csr().take(csr(**parts))
    matrix = cora._Csr()
    matrix.take(csr())
    assert matrix.dense.tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("graph", [{0: (1,)}, {0: [[1]]}, {"0": [1]}, {0: [1.5]}, [1], {0: [1] * 5, 1: [1] * 6}])
def test_edges_that_cannot_be_are_refused(graph: object, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cora, "MOST_EDGES", 10)
    with pytest.raises((TypeError, ValueError)):
        cora._edges(graph)
    assert cora._edges({0: [1, 0], 1: []}).tolist() == [[0, 1]]


@pytest.mark.parametrize("numbers", ["7 8", "7 8 8", "7 8 10", "7 8 -1", "7 8 9 x", "7 8 ٣", "7 8 " + "9" * 5000])
def test_numbers_of_tested_nodes_that_cannot_be_name_the_file(tmp_path: Path, numbers: str):
    path = tmp_path / "ind.cora.test.index"
    path.write_text(numbers, encoding="utf-8")
    with pytest.raises(BenchlibError, match=r"ind\.cora\.test\.index: "):
        cora._order(path, 3, 10)


# Texts


def test_sentences_without_their_translations_are_refused(tmp_path: Path):
    english, french = tmp_path / "train.en.gz", tmp_path / "train.fr.gz"
    english.write_bytes(gzip.compress(b"one\ntwo\n"))
    french.write_bytes(gzip.compress(b"un\n"))
    with pytest.raises(BenchlibError, match=r"train\.fr\.gz: it has 1 lines, and train\.en\.gz has 2"):
        multi30k._pairs(english, french)


@pytest.mark.parametrize(
    ("content", "told"),
    [("words".encode("utf-16-le") * 9, "it has zero bytes"), ("é".encode("latin1"), "can't decode"), (None, "folder")],
)
def test_a_text_in_another_encoding_and_a_folder_are_named(tmp_path, monkeypatch, content: bytes | None, told: str):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    path = tmp_path / "text" / "mine.txt"
    path.parent.mkdir()
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(BenchlibError, match=rf"mine\.txt: .*{told}"):
        text.load()


@pytest.mark.parametrize("name", ["mine.txt", "mine.txt.gz"])
def test_a_pipe_is_no_text_and_is_not_waited_for(tmp_path, monkeypatch, name: str):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    (tmp_path / "text").mkdir()
    os.mkfifo(tmp_path / "text" / name)
    for ask in (text.identity, text.load):
        with pytest.raises(BenchlibError, match=rf"{name}: it is a folder, a pipe or a device, expected a file"):
            ask()


def test_the_mark_that_begins_a_text_is_no_word_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    (tmp_path / "text.txt").write_bytes(b"\xef\xbb\xbfOnly this.")
    assert text.load().documents == [[["only", "this", "."]]]


@pytest.mark.parametrize("name", ["text/a.txt", "text/a.txt.gz"])
def test_texts_have_an_end(tmp_path, monkeypatch, name: str):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    monkeypatch.setattr(archives, "MOST_BYTES", 150)
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "A.txt").write_bytes(b"a" * 100)  # both together are too much
    (tmp_path / name).write_bytes(gzip.compress(b"b" * 60) if name.endswith(".gz") else b"b" * 60)
    with pytest.raises(BenchlibError, match=r"a\.txt.*: .*more than 50 bytes, the most that is read"):
        text.load()
