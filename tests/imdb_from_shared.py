"""Turns the film reviews that lie beside the repository into the original's layout, for the product's own loader.

As a program: ``python tests/imdb_from_shared.py TARGET`` writes all 50,000 reviews to TARGET/aclImdb, a file each; then
``BENCHLIB_DATA=TARGET``.
"""

import argparse
import csv
import io
import lzma
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "imdb" / "imdb.csv.xz"


def write(target: Path, per_label: int | None = None) -> Path:
    """Write the first ``per_label`` reviews (all if None) of each label in each split; returns the folder."""
    folder = Path(target) / "aclImdb"
    counts: dict[Path, int] = {}
    with lzma.open(SHARED) as packed:
        for row in csv.DictReader(io.TextIOWrapper(packed, encoding="utf-8", newline="")):
            place = folder / row["split"] / ("pos" if row["label"] == "1" else "neg")
            if not counts.get(place):
                place.mkdir(parents=True, exist_ok=True)
            counts[place] = counts.get(place, 0) + 1
            if per_label is None or counts[place] <= per_label:
                (place / f"{row['id']}_{row['rating']}.txt").write_text(row["text"], encoding="utf-8", newline="")
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("target", type=Path)
    print(write(parser.parse_args().target))
