"""Removal of the files in a folder of results that no result needs any more."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from pathlib import Path

from benchlib import manifest, tensorboard
from benchlib.cluster.merge import MERGED
from benchlib.errors import BenchlibError
from benchlib.suite.run_lock import hold_lock


def clean(folder: Path, whole: bool, sure: bool) -> int:
    """List the unused files of a folder of results, or the ``whole`` of it; delete them if ``sure``. Return 0."""
    if not folder.is_dir():
        raise BenchlibError(f"{folder}: there is nothing to clean")
    find = all_files if whole else unused_files
    paths = find(folder)  # which refuses before anything, a lock too, is written there
    with hold_lock(folder) if sure else nullcontext():
        paths = find(folder) if sure else paths  # a run may have ended in between
        for path in paths:
            print(path)
        files = [file for path in paths for file in (path, *path.rglob("*")) if file.is_file()]
        size_mib = sum(file.stat().st_size for file in files) / 2**20
        print(f"{len(paths)} of {size_mib:.1f} MiB{'' if sure else '; to take them away, add --yes'}")
        for path in paths if sure else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return 0


def unused_files(folder: Path) -> list[Path]:
    """The files that no notebook's record names; a BenchlibError where one has no whole record."""
    records = manifest.read_all(folder)
    unknown = [name for name, record in records.items() if not record or record["status"] != "succeeded"]
    if unknown or not records:
        lacking = f"of {', '.join(unknown) or 'every notebook'} there is no whole record"
        raise BenchlibError(f"{folder}: {lacking}, so the needed files are not known: run again, or add --all")
    merged = manifest.read(folder, MERGED) or {"files": ()}
    named = {Path(file) for record in (*records.values(), merged) if record for file in record["files"]}
    measured = sorted((folder / "measurements").glob("*.parquet"))
    return [
        *(path for path in measured if path.relative_to(folder) not in named),
        *tensorboard.other_folders(folder / tensorboard.FOLDER, (path.stem for path in named)),
        *sorted(folder.glob("*/.partial-*")),
        *folder.glob("inputs"),
    ]


def all_files(folder: Path) -> list[Path]:
    """All that is in a folder of results; a BenchlibError if it does not look like one."""
    if not (folder / "notebooks").is_dir() or not (folder / "progress.log").is_file():
        raise BenchlibError(f"{folder}: this is no folder of results, so nothing is taken away: see --outputs")
    return sorted(folder.iterdir())
