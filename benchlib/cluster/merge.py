"""Several folders of results as one: each file once, nothing pooled, all or nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchlib import manifest
from benchlib.cache import Measurement, Store, load
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError, write_error

MERGED = ".merged"  # instead of a notebook's name: the record of files that no notebook has to name
KINDS = ("certificates", "ceilings", "timers", "jobs", "notebooks", "figures", "tables")  # beside the measurements


class _Union:
    """What goes into the new folder, and what speaks against it."""

    def __init__(self) -> None:
        self.measured: dict[str, tuple[Path, list[Measurement]]] = {}  # by the key of the file
        self.others: dict[str, Path] = {}  # by place
        self.conflicts: list[str] = []
        self.twice = 0  # files that were in two folders

    def add_folder(self, folder: Path) -> None:
        store = Store(folder / "measurements")
        for path in sorted(store.folder.glob("[!.]*.parquet")):
            self.add(path, store.load(path.stem) or [])
        done = [name for name, one in manifest.read_all(folder).items() if one and one.get("status") == "succeeded"]
        others = (path for kind in KINDS for path in sorted((folder / kind).glob("[!.]*")) if path.is_file())
        for path in (one for one in others if one.parent.name != "notebooks" or one.stem in done):
            before = self.others.setdefault(str(path.relative_to(folder)), path)
            self.twice += before != path
            own = (before, path) if path.parent.name == "certificates" else ()
            if len({load(Certificate, one).verdict for one in own}) > 1:
                self.conflicts.append(f"  {before} and {path}: two verdicts of one key")

    def add(self, path: Path, measured: list[Measurement]) -> None:
        if not all(m.machine.get("host") for m in measured):  # they could be of two machines
            self.conflicts.append(f"  {path}: from before hosts were recorded")
        before, rows = self.measured.setdefault(path.stem, (path, measured))
        broken, broken_before = (any(m.crashed for m in some) for some in (measured, rows))
        if rows is measured or [m.model_dump_json() for m in rows] == [m.model_dump_json() for m in measured]:
            self.twice += before != path  # as text, where nan is nan
        elif broken_before and not broken:  # it was measured again
            self.measured[path.stem] = (path, measured)
        elif broken_before or not broken:
            whose = f"{(first := measured[0]).condition}, repetition {first.repetition}, on {first.machine.get('host')}"
            self.conflicts.append(f"  {before} and {path}: {whose}: measured twice, with other numbers")


def merge(sources: Sequence[Path], outputs: Path) -> str:
    """Unite folders into the new folder ``outputs``; a sentence on it. Conflicts are an error."""
    if outputs.exists() and (not outputs.is_dir() or any(outputs.iterdir())):
        raise BenchlibError(f"{outputs}: is there already: name a new folder with --outputs")
    union = _Union()
    for source in sources:
        if not (source / "measurements").is_dir():
            raise BenchlibError(f"{source}: no folder of results, which has measurements/: give outputs/PROFILE")
        union.add_folder(source)
    if union.conflicts:
        said = union.conflicts[:20] + ["  and more"] * bool(union.conflicts[20:])
        raise BenchlibError("\n".join([*said, "nothing was written: move one of each away, or name the hosts apart"]))
    _write(union, outputs.absolute())
    rows = [m.machine["host"] for _, measured in union.measured.values() for m in measured]
    twice = f"{union.twice} files were in two folders, and are there once"
    return f"{outputs}: {len(rows)} rows in {len(union.measured)} files, of {', '.join(sorted({*rows}))}; {twice}"


def _write(union: _Union, outputs: Path) -> None:
    """Write everything beside ``outputs``, and give it that name when all is there."""
    places = {f"measurements/{path.name}": path for path, _ in union.measured.values()} | union.others
    try:
        outputs.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".merging-", dir=outputs.parent) as beside:
            partial = Path(beside, "all")
            for place, path in places.items():
                (partial / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, partial / place)
            manifest.write(manifest.path_of(partial, MERGED), {"files": [*places]})
            os.rename(partial, outputs)
    except OSError as error:
        raise BenchlibError(write_error(error, outputs)) from None
