"""The commands for a user's own models, and the workload that they make of its files."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlib import frameworks
from benchlib.cluster.lab import Lab
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.matching import own, results, sources
from benchlib.matching.sources import Source
from benchlib.workloads import load

HALF_WIDTH = 0.1  # of the ratio's interval that ``compare`` asks for


@dataclass(frozen=True)
class OwnWorkload:
    """A workload of a user's own files; its ``name`` is that of ``Condition(workload=...)``."""

    name: str
    sources: tuple[Source, ...]
    parted: str  # the place where no layout of weights gives the reference's numbers; empty: there is none

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
        one, said = load(self.name), {name for source in self.sources for name in source.functions}
        names = ("loss", "optimizer", "data")
        document = importlib.import_module(f"benchlib.workloads.{self.name}.document").DOCUMENT
        loss = "mean cross entropy" if "classes" in document else "mean squared error"
        usual = (loss, f"gradient descent with momentum {one.hyperparameters['momentum'].default:g}", "random")
        parts = [
            f"{name}: {'your own' if name in said else default}" for name, default in zip(names, usual, strict=True)
        ]
        return ", ".join([*parts, f"learning rate {one.learning_rate:g}", f"batch size {one.batch_size}"])

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


def certify(files: Sequence[Path], modes: Sequence[str], name: str, outputs: Path | None, create: bool) -> int:
    """Say whether the files are one model. The exit code is 1 if not."""
    workload, lab = _prepare(files, name, outputs, create)
    certificates = list(lab.certify(workload.conditions(*modes)).values())
    _say(workload, certificates)
    _write(lab.folder / f"{workload.name}.html", results.page(workload.name, certificates, None))
    return 0 if all(one.same for one in certificates) else 1


def compare(
    files: Sequence[Path], modes: Sequence[str], name: str, outputs: Path | None, create: bool, minutes: float | None
) -> int:
    """Certify the files, and measure the ratio of their speeds. The exit code is 1 if they are not one model."""
    workload, lab = _prepare(files, name, outputs, create)
    conditions = workload.conditions(*modes)
    if len(conditions) < 2:
        raise BenchlibError(f"{files[0]}: one file in one mode has nothing to be compared with; give another one")
    compared = lab.compare(conditions, precision=HALF_WIDTH, budget_s=60 * (10 if minutes is None else minutes))
    certificates = list(compared.certificates.values())
    _say(workload, certificates)
    print(f"\n{compared}")
    compared.save(lab.folder)
    modes = tuple(dict.fromkeys(one.mode for one in conditions)) if modes else ()
    given = [os.path.relpath(one, lab.folder) for one in files]
    _write(lab.folder / f"{workload.name}.ipynb", results.notebook(given, modes, workload.name, HALF_WIDTH))
    _write(lab.folder / f"{workload.name}.html", results.page(workload.name, certificates, compared))
    print(f"Tables, figures and a page: {lab.folder}")
    return 0 if all(one.same for one in certificates) else 1


def _prepare(files: Sequence[Path], name: str, outputs: Path | None, create: bool) -> tuple[OwnWorkload, Lab]:
    for one in files if create else ():
        sources.read(one, create)
    folder = Path("outputs") if outputs is None else outputs
    workload = workload_from(*files, name=name, outputs=folder)
    print(f"{workload.name}: {workload.choices}")
    return workload, Lab(outputs=folder / workload.name)


def _say(workload: OwnWorkload, certificates: Iterable[Certificate]) -> None:
    for one in certificates:
        title = frameworks.title(one.condition.framework)
        print(f"{title} ({one.condition.mode}): {one.verdict}{f': {one.why or one.reason}' if not one.same else ''}")
    if workload.parted:
        print(f"weights: no layout gives the reference's numbers from here on: {workload.parted}")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
