"""Texts for BERT: words, pairs of sentences, masked words; Python's help texts, and a text of the user's own."""

import gzip
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchlib.condition import Condition
from benchlib.data import corpus, pydoc, text
from benchlib.data.corpus import FIRST, MASK, PADDING, SEPARATOR, START, UNKNOWN, Corpus
from benchlib.data.prepare import prepare
from benchlib.errors import BenchlibError
from benchlib.worker import files

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
LENGTH, MASKED, WORDS = 32, 4, 40


@pytest.fixture(scope="module")
def prepared() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    documents = [[[f"w{rng.integers(50)}" for _ in range(12)] for _ in range(10)] for _ in range(40)]
    return corpus.arrays(Corpus(documents, "made up"), WORDS, LENGTH, MASKED, None)


def test_each_row_is_a_pair_of_sentences_between_its_marks(prepared):
    for tokens, segments in zip(prepared["train_tokens"], prepared["train_segments"], strict=True):
        count = int((tokens != PADDING).sum())
        assert tokens[0] == START
        ends = np.flatnonzero(tokens == SEPARATOR)
        assert len(ends) == 2
        assert ends[1] == count - 1
        assert segments[: ends[0] + 1].max() == 0
        assert segments[ends[0] + 1 : count].min() == 1
        assert segments[count:].max(initial=0) == 0


def test_what_was_masked_is_the_label_at_its_place(prepared):
    tokens, places, labels = (prepared[f"train_{name}"] for name in ("tokens", "places", "labels"))
    asked = labels >= 0
    assert asked[:, 0].all()
    assert (tokens == UNKNOWN).any()
    assert labels[asked].min() >= FIRST, "an unknown word is not asked for"
    there = np.take_along_axis(tokens, places, axis=1)[asked]
    shares = [np.mean(there == MASK), np.mean(there == labels[asked])]
    assert shares == pytest.approx([0.8, 0.1], abs=0.05)
    masks = [np.flatnonzero(row == MASK).tolist() for row in tokens]
    assert all(set(found) <= set(row[some]) for found, row, some in zip(masks, places, asked, strict=True))
    assert tokens.max() < WORDS


def test_half_of_the_second_sentences_follow(prepared):
    assert np.mean(prepared["train_follows"]) == pytest.approx(0.5, abs=0.12)


def test_a_text_outside_the_vocabulary_makes_no_pairs():
    known, unknown = [["a", "b"] * 10] * 5, [["x", "y"] * 10]
    documents = [known if number % 3 else unknown for number in range(40)]
    found = corpus.arrays(Corpus(documents, "made up"), FIRST + 2, LENGTH, MASKED, None)
    for split in ("train", "test"):
        assert (found[f"{split}_labels"][:, 0] >= FIRST).all(), "every row has a word to guess"


def test_more_pairs_than_there_are_cannot_be_asked_for():
    documents = [[["a", "b"] * 10] * 5] * 40
    with pytest.raises(BenchlibError, match=r"made up: .* make \d+ pairs .* 100000 are asked for: set train_samples"):
        corpus.arrays(Corpus(documents, "made up"), WORDS, LENGTH, MASKED, 100_000)


@pytest.mark.parametrize("count", [0, 9])
def test_too_few_texts_are_refused(count):
    texts = [[["a", "b"] * 10]] * count
    told = f"made up: {count} texts with a word in them are too few for training and testing: 10 are the least"
    for some in (texts, [*texts, *[[]] * 10]):
        with pytest.raises(BenchlibError, match=told):
            corpus.arrays(Corpus(some, "made up"), WORDS, LENGTH, MASKED, None)


def test_python_s_help_is_a_corpus(tmp_path: Path):
    assert len(pydoc.load().documents) > 50
    arrays = files.arrays(prepare(Condition(workload="bert", train_samples=64), 0, tmp_path))
    assert arrays["train_tokens"].shape == (64, 128)
    assert arrays["train_labels"].shape == (64, 20)


def test_a_text_of_the_user_s_own_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    with pytest.raises(BenchlibError, match=r"BENCHLIB_DATA=.*: data text is a text of yours"):
        text.require()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "b.txt").write_text("Third one.\n", encoding="utf-8")
    (tmp_path / "text" / "a.txt.gz").write_bytes(gzip.compress("First, here.\n\n春眠不覺曉\n".encode()))
    assert text.load().documents == [[["first", ",", "here", "."]], [[*"春眠不覺曉"]], [["third", "one", "."]]]
    before = text.identity()
    (tmp_path / "text" / "._a.txt").write_bytes(b"\x00\x05\x16\x07")  # macOS leaves it on other file systems
    (tmp_path / "text" / ".#b.txt").symlink_to("user@host.1234")  # Emacs's lock
    (tmp_path / "text" / "._a.txt.gz").write_bytes(b"\x00\x05\x16\x07")
    assert text.identity() == before
    assert len(text.load().documents) == 3
    (tmp_path / "text.txt").write_text("Only this.", encoding="utf-8")
    assert text.load().documents == [[["only", "this", "."]]]
    assert text.identity() != before


@pytest.mark.parametrize(
    ("name", "texts", "begins"),
    [
        ("tinyshakespeare/input.txt", 7_222, ["first", "citizen", ":"]),
        pytest.param("zh_poetry/song_ci.txt.gz", 21_025, list("气和玉烛\uff0c睿化著鸿明。"), marks=pytest.mark.slow),
    ],
)
def test_a_real_text_can_be_read_again_from_its_pairs(tmp_path, monkeypatch, name, texts, begins):
    if not (SHARED / name).exists():
        pytest.skip(f"NO REAL TEXT: {SHARED / name} is absent, so no pairs are made of it")
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    (tmp_path / "text").mkdir()
    shutil.copy(SHARED / name, tmp_path / "text")
    documents = text.load().documents
    assert len(documents) == texts
    assert documents[0][0] == begins

    arrays = files.arrays(prepare(Condition(workload="bert", data="text", train_samples=500), 0, tmp_path / "inputs"))
    vocabulary = files.lines(arrays["vocabulary"])
    assert len(set(vocabulary)) == len(vocabulary) == 4_000 - FIRST
    known = set(vocabulary)
    whole = "\n".join(
        f" {' '.join(word if word in known else '<unknown>' for sentence in one for word in sentence)} "
        for number, one in enumerate(documents)
        if number % corpus.TEST_EVERY  # the others are for the test
    )
    marks = ["<padding>", "<start>", "<unknown>", "<separator>", "<mask>"]
    assert np.mean(arrays["train_tokens"] == UNKNOWN) < 0.1
    parts = (arrays[f"train_{part}"].copy() for part in ("tokens", "places", "labels", "follows"))
    for tokens, places, labels, follows in zip(*parts, strict=True):
        tokens[places[labels >= 0]] = labels[labels >= 0]
        read = " ".join([*marks, *vocabulary][token] for token in tokens if token != PADDING)
        first, second = read.removeprefix("<start>").removesuffix("<separator>").split("<separator>")
        assert first in whole
        assert second in whole
        if follows:
            assert first + second[1:] in whole, "one goes on where the other ends"


def test_a_second_sentence_that_does_not_follow_is_from_another_text():
    texts = [np.arange(100 * one, 100 * one + 90) for one in range(1, 6)]
    for first, second, follows in corpus._pairs(texts, 30, np.random.default_rng(0)):
        assert (first[0] // 100 == second[0] // 100) == follows


def test_texts_are_drawn_by_their_length_and_empty_ones_never():
    lengths = {1: 0, 2: 3000, 3: 0, 4: 100, 5: 300, 6: 0}
    texts = [np.arange(10_000 * one, 10_000 * one + length) for one, length in lengths.items()]
    drawn = {one: Counter() for one in lengths}
    for seed in range(20):
        for first, second, follows in corpus._pairs(texts, 10, np.random.default_rng(seed)):
            if not follows:
                drawn[first[0] // 10_000][second[0] // 10_000] += 1
    assert drawn[2].keys() == {4, 5}
    assert drawn[2][5] / drawn[2].total() == pytest.approx(3 / 4, abs=0.05)
    assert drawn[5].keys() == {2, 4}
    assert drawn[4][2] / drawn[4].total() == pytest.approx(10 / 11, abs=0.1)
