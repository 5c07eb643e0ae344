"""A workload of a user's own models: its document, and its files in ``outputs/NAME/workload``, which is a plug-in."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import os
import pprint
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchlib import frameworks, plugins, scratch, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.matching import match, samples, sources
from benchlib.matching.match import Described, Part
from benchlib.matching.sources import Source
from benchlib.provenance import fingerprint, installed, knobs
from benchlib.runner.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.runner.processes import PATIENCE_S, WorkerFailed, WorkerProcess
from benchlib.worker import files

TEMPLATES = Path(__file__).with_name("templates")


def make(found: list[Source], name: str, folder: Path, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Make the workload ``name`` of some files in ``folder``, and use it. ``parted`` of its document is the first
    place where no layout of weights gives the reference's numbers (empty: there is none).
    """
    place = folder.resolve() / "workload"
    document = _document(found, name)
    document["made_from"], before = _digest(found, document), {}
    with suppress(OSError, ValueError):
        before = json.loads((place / "document.json").read_text(encoding="utf-8"))
    if before.get("made_from") == document["made_from"]:
        _use(place, name)
        return before
    was_there, made = place.exists(), [one for one in (folder, folder.parent) if not one.exists()]
    try:
        _write(place, document, found, samples.draw(document), {})
        _match(found, document, place, patience_s)
        return document
    except BaseException:
        if not was_there:
            _forget(place)
            with suppress(OSError):
                for one in made:
                    one.rmdir()
        raise


def common_name(found: list[Source]) -> str:
    """The beginning that the names of all files have in common, as ``mine`` of mine_torch.py and mine_jax.py."""
    stems = [one.path.stem for one in found]
    shared = (some[0] for some in itertools.takewhile(lambda some: len(set(some)) == 1, zip(*stems, strict=False)))
    common = re.sub(r"\W", "_", "".join(shared)).strip("_").lower()
    common = re.sub(r"_(torch|pytorch|jax|keras|tf|tensorflow|mindspore|mxnet)$", "", common)
    return common if common and not common[0].isdigit() else f"my_{common or 'model'}"


def free_name(name: str) -> str:
    """The name, or ``my_NAME`` where benchlib has a workload, a framework or a data set that is called so."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BenchlibError(f"name {name!r}: write it with small letters, digits and _")
    folders = [Path(one) for one in workloads.__path__[:1]]
    return f"my_{name}" if any((one / name).exists() for one in folders) or name in frameworks.names() else name


def write_new(name: str) -> int:
    """Write a workload to fill in to ``workloads/NAME``, which the working directory is a plug-in with."""
    place = Path("workloads", name)
    if free_name(name) != name or place.exists():
        raise BenchlibError(f"name {name!r}: there is a workload, a framework or a data set of this name, or {place}")
    place.mkdir(parents=True)
    for template in sorted(TEMPLATES.glob("new_*.txt")):
        path = place / f"{template.stem.removeprefix('new_')}.py"
        path.write_text(template.read_text(encoding="utf-8").replace("NAME", name), encoding="utf-8")
        print(path)
    print(f'In Python: Lab(plugins=["."]).certify([Condition(workload="{name}", framework="jax", environment="jax")])')
    return 0


def _document(found: list[Source], name: str) -> dict[str, Any]:
    """All that the files say, with defaults for the rest; a BenchlibError names what is missing or wrong."""
    first = found[0].path

    def said(what: str, default: Any = None) -> Any:
        return sources.declaration(found, what, default)

    given, words = said("INPUT"), said("VOCABULARY", {})
    if given is None:
        raise BenchlibError(f"{first}: no INPUT; say the shape of one sample, as INPUT = (3, 32, 32), channels first")
    inputs = given if isinstance(given, dict) else {"inputs": given}
    vocabularies = words if isinstance(words, dict) else dict.fromkeys(inputs, words)
    classes, target = said("CLASSES"), said("TARGET")
    if (classes is None) == (target is None):
        raise BenchlibError(f"{first}: say either CLASSES = 10, or TARGET = (1,): the shape of one sample's target")
    labels = said("LABELS", ()) if target is None else target
    for what, value in {**inputs, "LABELS or TARGET": labels}.items():
        if not isinstance(value, tuple | list) or not all(isinstance(one, int) and one > 0 for one in value):
            raise BenchlibError(f"{first}: {what}: {value!r} is no shape; write whole numbers, as (3, 32, 32)")
    if not inputs or "labels" in inputs or not set(vocabularies) <= set(inputs):
        raise BenchlibError(f"{first}: INPUT and VOCABULARY: the names must be the same, and none of them 'labels'")
    numbers = {name.lower(): said(name, sources.NUMBERS[name]) for name in ("BATCH_SIZE", "LEARNING_RATE", "MOMENTUM")}
    for what in ("loss", "optimizer"):
        without = [str(one.path) for one in found if what not in one.functions]
        if 0 < len(without) < len(found):
            raise BenchlibError(f"{', '.join(without)}: no {what}, but another file has one; write it in each, or none")
    return {
        "name": name,
        "title": name.replace("_", " "),
        "files": {one.framework: one.path.name for one in found},
        "data": f"{name}_samples",
        "inputs": {what: list(shape) for what, shape in inputs.items()},
        "vocabularies": vocabularies,
        "labels": list(labels),
        **({} if classes is None else {"classes": classes}),
        **numbers,
        **{"weights": [], "dropouts": [], "frozen": [], "settled": {}, "parted": ""},
    }


def _digest(found: list[Source], document: Mapping[str, Any]) -> str:
    """A hash of all that a match depends on: the files, versions, and the code that matches."""
    own = [*sorted(Path(__file__).parent.rglob("*.*")), *(one.path for one in found)]
    own += [path for one in found for _, path in sorted(fingerprint.model_files(one.framework, "_mine").items())]
    parts = [hashlib.sha256(path.read_bytes()).hexdigest() for path in own if path.suffix in (".py", ".txt")]
    versions = [installed.versions(one.framework, one.environment) for one in found]
    return hashlib.sha256(json.dumps([parts, versions, document], sort_keys=True).encode()).hexdigest()[:16]


def _match(found: list[Source], document: dict[str, Any], place: Path, patience_s: float) -> None:
    """Match the weights of all files with the reference's, and write the workload anew."""
    ranked = sorted(found, key=lambda one: frameworks.rank(one.framework))
    with ExitStack() as stack, scratch.scratch("match") as work:
        models = [stack.enter_context(_Model(one, document, place, work, patience_s)) for one in ranked]
        for model in models:
            model.start()
        described = [model.describe() for model in models]
        reference, *others = models
        document["weights"] = [[name, list(shape), trained] for name, (shape, trained) in described[0].weights.items()]
        document["dropouts"] = reference.dropouts
        arrays = next((model.samples for model in models if model.samples), None)
        same = [{"own": name, "of": [name], "own_shape": shape} for name, shape, _ in document["weights"]]
        parts: dict[str, list[Part]] = {reference.source.framework: same}
        if arrays or others:
            _write(place, document, found, samples.from_user(*arrays, document) if arrays else None, parts)
        if others:
            wanted = reference.layers(parts[reference.source.framework])
        images = [shape[0] for shape in document["inputs"].values() if len(shape) == 3]
        parted = []
        for model, own in zip(others, described[1:], strict=True):
            where = str(model.source.path)
            pairs, frozen = match.pair(described[0], own, sources.declaration(found, "WEIGHTS", {}), where)
            settled, apart = match.settle(described[0], pairs, wanted, model.layers, images)
            parts[model.source.framework] = settled
            document["frozen"] += frozen
            parted += [f"{where}: {apart.partition('/')[0]}"] * bool(apart)
            if model.dropouts != document["dropouts"]:
                other = f"{reference.source.path} has {document['dropouts']}"
                raise BenchlibError(f"{where}: dropouts of {model.dropouts}, but {other}")
    for name in document["frozen"]:
        document["settled"][name] = "0 and not trained, since another framework has it joined with the first bias"
        document["weights"] = [[one, shape, trained and one != name] for one, shape, trained in document["weights"]]
    document["parted"] = "; ".join(parted)
    _write(place, document, found, None, parts)


class _Model:
    """A file's model in a worker, while its weights are matched."""

    def __init__(self, source: Source, document: Mapping[str, Any], place: Path, work: Path, patience_s: float) -> None:
        self.source, self.document, self._work, self._patience_s = source, document, work, patience_s
        self._file, self._place = work / source.framework, place
        self.dropouts: list[float] = []
        self.samples: tuple[str, dict[str, np.ndarray]] | None = None

    def __enter__(self) -> _Model:
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "worker"):
            self.worker.end()

    def start(self) -> None:
        modes = frameworks.modes(self.source.framework)
        mode = "eager" if "eager" in modes else modes[0]
        name = {"framework": self.source.framework, "environment": self.source.environment}
        condition = Condition(workload=self.document["name"], mode=mode, **name)
        with _told(self.source):
            self.worker = WorkerProcess(condition, INITIAL_SEED, self._patience_s, knobs.of_gate(condition))

    def describe(self) -> Described:
        with _told(self.source):
            self.worker.finish_open()
            asks = {"dropout": 1.0, "describe": f"{self._file}.json"}
            asks["samples"] = str(self._place / "data" / "samples.npz")
            if "data" in self.source.functions:
                asks["data"] = [f"{self._file}-data.npz", samples.wanted(self.document)]
            self._build(asks, {})
        found = json.loads(Path(f"{self._file}.json").read_text(encoding="utf-8"))
        self.dropouts = found["dropouts"]
        self._require_outputs([tuple(one) for one in found["outputs"]])
        if "data" in asks:
            with np.load(f"{self._file}-data.npz") as arrays:
                self.samples = str(self.source.path), dict(arrays)
        return Described({name: (tuple(shape), trained) for name, shape, trained in found["weights"]}, found["layers"])

    def layers(self, parts: list[Part]) -> list[tuple[str, np.ndarray]]:
        """The layers with the weights of ``parts``: see ``Session.layers``."""
        file = Path(f"{self._file}-layers.npz")
        with _told(self.source):
            self._build({"match": parts, "weights": self.document["weights"]}, self._weights())
            self.worker.ask("layers", trial=0, file=str(file))
            arrays = self.worker.arrays(file)
        return [(name.rpartition("/")[0], one) for name, one in arrays.items() if not name.startswith("through")]

    def _weights(self) -> dict[str, np.ndarray]:
        """Numbers of all the reference's weights, none of which is the same everywhere."""
        rng, weights = np.random.default_rng(1), {}
        for name, shape, _ in self.document["weights"]:
            fan = float(np.prod(shape[1:])) ** 0.5 if len(shape) > 1 else 4.0
            weights[name] = rng.standard_normal(shape, dtype=np.float32) / fan
            if name.rpartition(".")[2] in ("running_var", "weight") and len(shape) == 1:
                weights[name] = 1 + np.abs(weights[name])
        return weights

    def _build(self, asks: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> None:
        condition = self.worker.condition.but(batch_size=4, hyperparameters={"dropout": 0.0})
        job = prepare_job(condition, INITIAL_SEED, self._work)
        folder = self._work / f"weights-{len(weights)}"
        if not folder.exists():
            files.write(folder, dict(weights), {"note": ""})
        document = Job(condition, INITIAL_SEED, job.data, folder, job.orders).document()
        document["values"] = {**document["values"], **asks}
        self.worker.ask("build", **document)

    def _require_outputs(self, shapes: list[tuple[int, ...]]) -> None:
        classes, labels = self.document.get("classes"), tuple(self.document["labels"])
        fits = [labels] if classes is None else [(*labels, classes), (classes, *labels)]
        if len(shapes) != 1 or shapes[0][1:] not in fits:
            given = " and ".join(str(shape[1:]) for shape in shapes)
            asked = f"TARGET = {labels}" if classes is None else f"CLASSES = {classes} and LABELS = {labels}"
            where = f"{self.source.path}: line {self.source.line}: {self.source.model}"
            raise BenchlibError(f"{where} gives {given} for a sample, but {asked}; mend the one or the other")


@contextmanager
def _told(source: Source) -> Iterator[None]:
    """A worker's failure as an error with the line of the user's file."""
    try:
        yield
    except WorkerFailed as error:
        failure = error.failure
        lines = re.findall(rf'File ".*/{source.module}\.py", line (\d+)', failure.printed or "")
        line = f"line {lines[-1]}: " if lines else f"line {source.line}: {source.model}: " if failure.exception else ""
        said = f"{failure.exception}: {failure.message}" if failure.exception else str(failure)
        raise BenchlibError(f"{source.path}: {line}{said}") from None


def _write(
    place: Path,
    document: Mapping[str, Any],
    found: list[Source],
    arrays: Mapping[str, np.ndarray] | None,
    parts: Mapping[str, list[Part]],
) -> None:
    """Write the plug-in, and use it; without ``arrays`` its samples stay."""
    named = {"name": document["name"], "title": document["title"]}
    folder, data = place / "workloads" / document["name"], place / "data"
    for one in (folder, data):
        one.mkdir(parents=True, exist_ok=True)
    if arrays is not None:
        np.savez(data / "samples.npz", **arrays)
    texts = {
        folder / "__init__.py": "",
        folder / "document.py": _filled(
            "document", document=pprint.pformat(document, width=110, sort_dicts=False), **named
        ),
        folder / "workload.py": _filled("workload", **named),
        data / f"{document['data']}.py": _filled("samples", note=f"{document['title']}: made for it", **named),
        place / "document.json": json.dumps(document, indent=1),
    }
    for one in found:
        texts[folder / f"{one.module}.py"] = one.path.read_text(encoding="utf-8")
        usual = "default.loss(DOCUMENT)" if one.framework == "mindspore" else "partial(default.loss, DOCUMENT)"
        texts[folder / f"{one.framework}.py"] = _filled(
            "model",
            of=frameworks.title(one.framework),
            file=one.path.name,
            framework=one.framework,
            module=one.module,
            model=one.model,
            parts=pprint.pformat(parts.get(one.framework, []), width=110, sort_dicts=False),
            loss="own.loss" if "loss" in one.functions else usual,
            optimizer=f"{'own' if 'optimizer' in one.functions else 'default'}.optimizer",
            **named,
        )
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    _use(place, document["name"])


def _filled(template: str, **values: Any) -> str:
    return (TEMPLATES / f"{template}.txt").read_text(encoding="utf-8").format(**values)


def _use(place: Path, name: str) -> None:
    """Have this process and its workers take the plug-in, as it is now."""
    its = re.compile(rf"benchlib\.(workloads\.{name}\b|data\.{name}_samples$)")
    for module in filter(its.match, [*sys.modules]):
        del sys.modules[module]
    importlib.invalidate_caches()
    plugins.use([place])


def _forget(place: Path) -> None:
    """Take away a plug-in whose making has failed."""
    shutil.rmtree(place, ignore_errors=True)
    every = os.environ.get(plugins.VARIABLE, "").split(os.pathsep)
    os.environ[plugins.VARIABLE] = os.pathsep.join(one for one in every if one not in ("", str(place.resolve())))
