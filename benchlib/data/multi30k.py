"""Multi30k, task 1, English to French (Elliott et al. 2016 and 2017): the raw files in the folder that
``BENCHLIB_DATA`` names, or downloaded.
"""

from __future__ import annotations

from benchlib.data import DataSet, archives
from benchlib.data.downloads import FileSet
from benchlib.data.kinds import TRANSLATIONS
from benchlib.data.translations import Pairs

DATA_SET = DataSet(
    "Multi30k",
    "Multi30k: 29,000 descriptions of pictures in English and French for training and 1,000 for testing "
    "(test_2016_flickr), task 1 (Elliott et al. 2016, 2017); lower case, words outside the vocabulary are unknown.",
    29_000,
    TRANSLATIONS,
)

FILES = FileSet(
    title="Multi30k",
    home="https://github.com/multi30k/dataset/raw/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/",
    folder="multi30k",
    sha256={
        "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
        "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
        "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
        "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    },
    instead="number_names",
    content={
        "train.en.gz": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
        "train.fr.gz": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
        "test_2016_flickr.en.gz": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
        "test_2016_flickr.fr.gz": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    },
)


require, identity = FILES.place, FILES.identity


def load() -> Pairs:
    """29,000 pairs for training and the 1,000 of test_2016_flickr for testing, as published."""
    paths = FILES.paths()

    def lines(name: str) -> list[str]:
        return [one.strip() for one in archives.unpack(paths[name]).decode().splitlines()]

    splits = ("train", "test_2016_flickr")
    both = [list(zip(lines(f"{one}.en.gz"), lines(f"{one}.fr.gz"), strict=True)) for one in splits]
    return Pairs(*both, source=str(paths["train.en.gz"].parent))
