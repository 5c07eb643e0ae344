"""The commands for a user's own models, and the workload that they make of its files."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchlib import frameworks
from benchlib.cluster.lab import Lab
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.lab import Measures
from benchlib.matching import own, results, sources
from benchlib.matching.sources import Source
from benchlib.stats.comparison import Comparison

HALF_WIDTH = 0.1  # of the ratio's interval that ``compare`` asks for


@dataclass(frozen=True)
class OwnWorkload:
    """A workload of a user's own files; its ``name`` is that of ``Condition(workload=...)``."""

    name: str
    sources: tuple[Source, ...]
    document: Mapping[str, Any]  # see ``own.make``

    def conditions(self, *modes: str, lane: str = "default") -> list[Condition]:
        """A condition for each file and mode (none given: the usual mode of each framework), the first the baseline."""
        return [
            Condition(workload=self.name, framework=one.framework, environment=one.environment, mode=mode, lane=lane)
            for one in self.sources
            for there in [frameworks.modes(one.framework)]
            for mode in ([mode for mode in modes if mode in there] or there[:1])
        ]

    @property
    def choices(self) -> str:
        """What is trained and how, in words: the files' own choices, and defaults for the rest."""
        one, said = self.document, {name for source in self.sources for name in source.functions}
        usual = {"loss": "mean cross entropy" if "classes" in one else "mean squared error"}
        usual |= {"optimizer": f"gradient descent with momentum {one['momentum']:g}", "data": "random"}
        parts = [f"{name}: {'your own' if name in said else default}" for name, default in usual.items()]
        return ", ".join([*parts, f"learning rate {one['learning_rate']:g}", f"batch size {one['batch_size']}"])

    def __str__(self) -> str:
        return self.name


def workload_from(*files: str | os.PathLike[str], name: str = "", outputs: Path | str = "outputs") -> OwnWorkload:
    """Make a workload of files of one model, each in another framework: ``mine_torch.py``, ``mine_jax.py@jax``.

    Their weights are matched; the workload's files lie in ``outputs/NAME/workload``. A BenchlibError names file and
    line of what is wrong. A class that is defined in a notebook's cell is no file: write it with ``%%writefile``.
    """
    for one in files:
        if not isinstance(one, str | os.PathLike):
            what = getattr(one, "__name__", type(one).__name__)
            raise BenchlibError(f"{what}: give files; a cell that begins with %%writefile mine_torch.py makes one")
    found = sources.read_all(files)
    name = own.free_name(name or own.common_name(found))
    return OwnWorkload(name, tuple(found), own.make(found, name, Path(outputs) / name))


def certify(given: Namespace) -> int:
    """Say whether the files are one model. The exit code is 1 if not."""
    workload, lab = _prepare(given, None)
    return _end(workload, lab, lab.certify(workload.conditions(*given.modes)).values(), None)


def compare(given: Namespace) -> int:
    """Certify the files, and measure the ratio of their speeds. The exit code is 1 if they are not one model."""
    workload, lab = _prepare(given, Measures.NOTHING if given.minutes == 0 else None)
    conditions, budget_s = workload.conditions(*given.modes), 60 * (given.minutes or 10)
    if len(conditions) < 2:
        raise BenchlibError(f"{given.files[0]}: one file in one mode has nothing to be compared with; give another one")
    compared = lab.compare(conditions, precision=HALF_WIDTH, budget_s=budget_s)
    compared = replace(compared, budget_s=budget_s)  # a lab that measures nothing knows of none
    code = _end(workload, lab, compared.certificates.values(), compared)
    if compared.measurements:  # if not, none is the same as the first, and what an earlier comparison has written stays
        compared.save(lab.folder)
        modes = tuple(dict.fromkeys(one.mode for one in conditions)) if given.modes else ()
        files = [os.path.relpath(one, lab.folder) for one in given.files]
        text = results.notebook(files, modes, workload.name, HALF_WIDTH)
        (lab.folder / f"{workload.name}.ipynb").write_text(text, encoding="utf-8")
    return code


def _prepare(given: Namespace, measures: Measures | None) -> tuple[OwnWorkload, Lab]:
    for one in given.files if given.create else ():
        sources.read(one, given.create)
    folder = given.outputs or Path("outputs")
    workload = workload_from(*given.files, name=given.name, outputs=folder)
    print(f"{workload.name}: {workload.choices}")
    return workload, Lab(outputs=folder / workload.name, measures=measures)


def _end(workload: OwnWorkload, lab: Lab, proofs: Collection[Certificate], compared: Comparison | None) -> int:
    """Say what was found, and write it as a page; the exit code."""
    said = []
    for one in proofs:
        which = f"{frameworks.title(one.condition.framework)} ({one.condition.mode})"
        said.append(": ".join(filter(None, (which, one.verdict, one.why))))
    if (parted := workload.document["parted"]) and not any(one.parts for one in proofs):
        said.append(f"weights: no layout gives the reference's numbers from here on: {parted}")
    measured = compared if compared and compared.measurements else None
    print("\n".join([*said, *([f"\n{measured}"] if measured else [])]))
    alone = lab.folder / "certificates.html"
    alone.unlink(missing_ok=True)
    path = lab.folder / f"{workload.name}.html" if measured else alone
    path.write_text(results.page(workload.name, [*said, workload.choices], proofs, measured), encoding="utf-8")
    print(f"{'Tables, figures and a page' if measured else 'A page'}: {path}")
    return 0 if all(one.same for one in proofs) else 1
