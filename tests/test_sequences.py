"""Sequences of tokens: words, vocabulary, padding, and the data sets."""

import hashlib
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import imdb_from_shared
import numpy as np
import pytest

from benchlib.condition import Condition
from benchlib.data import digits_sequence, imdb
from benchlib.data.prepare import prepare
from benchlib.data.sequences import FIRST, START, UNKNOWN, Texts, from_texts, pad, vocabulary
from benchlib.errors import BenchlibError
from benchlib.worker import files

needs_imdb = pytest.mark.skipif(
    not imdb_from_shared.SHARED.exists(), reason=f"NO REAL IMDB: {imdb_from_shared.SHARED} is absent, so it is not read"
)


def texts(*texts: str) -> Texts:
    return list(texts), np.zeros(len(texts), np.int32)


def test_the_vocabulary_is_of_the_most_frequent_words_and_the_training_texts_only():
    assert vocabulary([["b", "a", "c"], ["c", "a"], ["c"]], 2) == ["c", "a"]
    found = from_texts(texts("good bad good", "bad good"), texts("worse bad"), FIRST + 1, "made up")
    assert found.vocabulary == ["good"]
    assert found.train[0].tolist() == [START, FIRST, UNKNOWN, FIRST]
    assert found.test[0].tolist() == [START, UNKNOWN, UNKNOWN]


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_text_without_a_word_is_refused(split):
    train, test = (texts("good", "..." if one == split else "good") for one in ("train", "test"))
    with pytest.raises(BenchlibError, match=r"made up: the text '[.!?]+' has no word"):
        from_texts(train, test, 10, "made up")


def test_lengths_count_what_is_not_padding():
    tokens, lengths = pad([np.array([3, 4]), np.arange(3, 12)], 5, before=False)
    assert lengths.tolist() == [2, 5]
    assert tokens.tolist() == [[3, 4, 0, 0, 0], [3, 4, 5, 6, 7]]


def test_digits_are_sequences_of_different_lengths():
    found = digits_sequence.load(20)
    lengths = [len(tokens) for tokens in found.train]
    assert min(lengths) >= 33
    assert max(lengths) <= 64
    assert len(set(lengths)) > 5
    assert {int(token) for tokens in found.train for token in tokens} <= set(range(FIRST, FIRST + 17))
    assert len(found.vocabulary) + FIRST == 20


def test_prepared_sequences_say_their_words(tmp_path):
    prepared = files.arrays(prepare(Condition(workload="gru", train_samples=100), 0, tmp_path))
    assert prepared["train_tokens"].shape == (100, 64)
    assert prepared["test_tokens"].shape == (360, 64)
    assert prepared["train_tokens"][:, -1].min() >= FIRST, "the padding is before the tokens"
    assert bytes(prepared["vocabulary"]).decode().split("\n")[0] == "grey 0"
    assert np.ptp(np.bincount(prepared["train_labels"])) <= 1, "a beginning of a balanced order"


@pytest.fixture
def reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four reviews in the original's layout."""
    monkeypatch.setattr(imdb, "PER_LABEL", 1)
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    imdb._hash_of_texts.cache_clear()
    for split in ("train", "test"):
        for label, text, rating in (("neg", "bad film", 1), ("pos", "good film", 7)):
            place = tmp_path / "aclImdb" / split / label
            place.mkdir(parents=True)
            (place / f"0_{rating}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "aclImdb" / "train" / "urls_pos.txt").write_text("no review", encoding="utf-8")
    return tmp_path / "aclImdb"


@pytest.mark.parametrize("folder", imdb.FOLDERS)
def test_imdb_is_read_from_its_folder(reviews, folder):
    (reviews.parent / folder).parent.mkdir(exist_ok=True)
    reviews.rename(reviews.parent / folder)
    found = imdb.load(10)
    assert found.vocabulary == ["film", "bad", "good"]
    assert found.train_labels.tolist() == [0, 1]
    assert found.test[1].tolist() == [START, FIRST + 2, FIRST]
    assert "cannot be checked against the published archive" in found.note


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda folder: (folder / "train/pos/0_7.txt").unlink(), "train has 1 negative and 0 positive reviews"),
        (lambda folder: (folder / "test/neg/0_1.txt").write_text(" "), "the text ' ' has no word"),
        (lambda folder: (folder / "test/neg/0_1.txt").write_bytes(b"\xff\xfe"), "is no text in UTF-8"),
    ],
)
def test_reviews_that_cannot_be_are_refused(reviews, change, told):
    before = imdb.identity()
    change(reviews)
    imdb._hash_of_texts.cache_clear()
    with pytest.raises(BenchlibError, match=told):
        imdb.load(10)
    assert imdb.identity() != before


def test_a_folder_without_imdb_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    with pytest.raises(BenchlibError, match=r"none of aclImdb_v1.tar.gz, .* aclImdb, .*use data: digits_sequence"):
        imdb.require()


@pytest.fixture
def archive(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The four reviews as an archive, which is taken for the original."""
    path = reviews.parent / imdb.ARCHIVE
    with tarfile.open(path, "w:gz") as opened:
        opened.add(reviews, arcname="aclImdb")
    monkeypatch.setattr(imdb, "MD5", hashlib.md5(path.read_bytes()).hexdigest())
    return path


def test_imdb_is_read_from_its_archive(archive: Path):
    found = imdb.load(10)
    assert found.vocabulary == ["film", "bad", "good"]
    assert (found.train_labels.tolist(), found.note) == ([0, 1], "")


@pytest.mark.parametrize("change", [lambda whole: whole[:-100], lambda whole: b"not it"], ids=["cut", "another"])
def test_a_cut_archive_and_another_one_are_refused(archive: Path, change: Callable[[bytes], bytes]):
    archive.write_bytes(change(archive.read_bytes()))
    with pytest.raises(BenchlibError, match=rf"cut or altered: .*; get the original again from .* \(md5 {imdb.MD5}\)"):
        imdb.load(10)


@needs_imdb
def test_real_reviews_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(imdb, "PER_LABEL", 50)
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    imdb_from_shared.write(tmp_path, 50)
    found = imdb.load(1000)
    assert found.vocabulary[:4] == ["the", "a", "and", "of"]
    assert 150 < np.mean([len(tokens) for tokens in found.train]) < 350
    assert found.train_labels.tolist() == [0, 1] * 50


# The model


IS_A_PACKED_LSTM = """
import torch
from benchlib import workloads
from benchlib.workloads.lstm.pytorch import build

torch.manual_seed(0)
values = workloads.load("lstm").values({"embedding": 5, "hidden": 4, "dropout": 0.0})
model = build(values)
lstm = torch.nn.LSTM(5, 4, num_layers=2, bidirectional=True, batch_first=True)
for layer, ours in enumerate((model.layer1, model.layer2)):
    for suffix, way in (("", ours.ahead), ("_reverse", ours.back)):
        for name, parameter in way.named_parameters():
            getattr(lstm, name.replace("l0", f"l{layer}{suffix}")).data = parameter.data
tokens, lengths = torch.randint(0, 20, (6, 9)), torch.tensor([9, 1, 4, 8, 2, 9])
packed = torch.nn.utils.rnn.pack_padded_sequence(model.embedding(tokens), lengths, True, enforce_sorted=False)
_, (last, _) = lstm(packed)
expected = model.dense(torch.cat((last[2], last[3]), 1))
torch.testing.assert_close(model(tokens, lengths), expected)
tokens[1, 1:] = 7  # after its end
torch.testing.assert_close(model(tokens, lengths), expected)
print("the same")
"""


def test_lstm_is_a_bidirectional_lstm_of_packed_sequences():
    done = subprocess.run([sys.executable, "-c", IS_A_PACKED_LSTM], capture_output=True, text=True)
    assert done.stdout == "the same\n", done.stderr
