"""What of an outputs folder no result needs any more, and taking it away."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchlib import experiments, suite
from benchlib.errors import BenchlibError


def unused(folder: Path) -> list[Path]:
    """Measurements and certificates that no notebook's result names, parts of files that were never finished, and
    inputs, which are made again in seconds. A BenchlibError where a notebook has not come to its end: it will name
    more.
    """
    records = {name: suite.read_record(folder, name) for name in experiments.NOTEBOOKS}
    unfinished = [name for name, record in records.items() if record and record["status"] != "succeeded"]
    if unfinished:
        raise BenchlibError(
            f"{folder}: {', '.join(unfinished)} did not come to an end, so that it is not known what they need: run "
            "again first, or take all away with --all"
        )
    named = {Path(file) for record in records.values() if record for file in record["files"]}
    found = [
        path for path in sorted((folder / "measurements").glob("*.parquet")) if path.relative_to(folder) not in named
    ]
    found += sorted(folder.glob("*/.partial-*"))
    return found + ([folder / "inputs"] if (folder / "inputs").is_dir() else [])


def take_away(paths: list[Path]) -> None:
    """Delete files and folders."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def size_mib(paths: list[Path]) -> float:
    """Of files, and of all in folders, in MiB."""
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    return sum(file.stat().st_size for file in files) / 2**20
