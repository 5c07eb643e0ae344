"""A user's model files, read without importing them: their framework, their model, and their declarations."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchlib import environments, frameworks
from benchlib.errors import BenchlibError, no_such
from benchlib.runner import availability

IMPORTS = {name: name for name in ("jax", "tensorflow", "mindspore", "mxnet")}
IMPORTS |= {"torch": "pytorch", "flax": "jax", "keras": "tensorflow"}
"""By module: the framework whose models are made of it."""

DECLARED = ("INPUT", "VOCABULARY", "CLASSES", "LABELS", "TARGET", "BATCH_SIZE", "LEARNING_RATE", "MOMENTUM", "WEIGHTS")
NUMBERS = {"BATCH_SIZE": 64, "CLASSES": 10, "VOCABULARY": 1000, "LEARNING_RATE": 0.01, "MOMENTUM": 0.9}  # such as
FUNCTIONS = ("loss", "optimizer", "data")
MAKERS = ("model", "build")
BASES = {"Module", "Cell", "HybridBlock", "Block", "Model", "Layer", "Sequential", "HybridSequential", "SequentialCell"}
TRAINING = {"backward", "fit", "train_on_batch", "apply_gradients", "value_and_grad"}
READING = {"parse_args", "input"}


@dataclass(frozen=True)
class Source:
    """A file with a model."""

    path: Path
    framework: str
    environment: str
    model: str  # the class, or the function that makes it
    line: int  # of the model
    declared: dict[str, Any] = field(default_factory=dict)
    functions: tuple[str, ...] = ()  # of FUNCTIONS

    @property
    def module(self) -> str:
        """The name that a copy of the file is imported by: one that no framework's file has."""
        name = re.sub(r"\W", "_", self.path.stem)
        return f"own_{name}" if name[0].isdigit() or name in {*frameworks.names(), "workload", "document"} else name


def read(given: str | os.PathLike[str], create: bool = False) -> Source:
    """Read ``FILE.py``, or ``FILE.py@ENVIRONMENT``; ``create`` makes an environment where none has the framework. A
    BenchlibError names file and line of a mistake.
    """
    path, _, environment = os.fspath(given).partition("@")
    file = _File(path)
    file.require_only_definitions()
    framework, model = file.framework(), file.model()
    functions = tuple(one.name for one in file.defined(ast.FunctionDef) if one.name in FUNCTIONS)
    declared, environment = dict(file.assigned(DECLARED)), environment or _environment(path, framework, create)
    return Source(Path(path), framework, environment, model.name, model.lineno, declared, functions)


def read_all(given: tuple[str | os.PathLike[str], ...]) -> list[Source]:
    """Read files of one model in several frameworks."""
    if not given:
        raise BenchlibError("give the files of your model: benchlib certify mine_torch.py mine_jax.py")
    found = [read(one) for one in given]
    for one in found:
        other = next(two for two in found if two.framework == one.framework)
        if other.path.resolve() != one.path.resolve():
            raise BenchlibError(
                f"{one.path}: {frameworks.title(one.framework)}, as {other.path}; give one file of each framework"
            )
    return found


def declaration(sources: list[Source], name: str, default: Any = None) -> Any:
    """What the files say of ``name``; a BenchlibError where two of them differ."""
    said = {str(one.path): one.declared[name] for one in sources if name in one.declared}
    for path, value in said.items():
        first = next(iter(said))
        if value != said[first]:
            raise BenchlibError(f"{path}: {name} = {value!r}, but {first} says {said[first]!r}; say it in one of them")
    return next(iter(said.values()), default)


def _environment(path: str, framework: str, create: bool) -> str:
    """The first environment that has the framework; a BenchlibError with the command that makes one."""
    there = (name for name in environments.names() if availability.why_absent(framework, "cpu", name) is None)
    if name := next(there, ""):
        return name
    made = framework if framework in environments.templates() else ""
    if made and create:
        environments.create(made)
        return made
    how = f"benchlib environment create {made} makes one, and so does --create" if made else "install it"
    raise BenchlibError(f"{path}: no environment here has {frameworks.title(framework)}; {how}")


class _File:
    """A file as it is written."""

    def __init__(self, path: str) -> None:
        self._path = path
        if not path.endswith(".py") or not Path(path).is_file():
            raise BenchlibError(f"{path}: there is no such Python file; give the files of your model, as mine_torch.py")
        try:
            self._tree = ast.parse(Path(path).read_bytes())
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            raise BenchlibError(f"{path}: line {line}: this is no Python ({getattr(error, 'msg', error)})") from None

    def _refuse(self, says: str, node: Any = None) -> BenchlibError:
        return BenchlibError(f"{self._path}: {f'line {node.lineno}: ' if node else ''}{says}")

    def defined(self, kind: Any) -> list[Any]:
        """Classes or functions of the file itself."""
        return [one for one in self._tree.body if isinstance(one, kind)]

    def assigned(self, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        """The values of some names."""
        for node in self.defined(ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in names:
                    try:
                        value = ast.literal_eval(node.value)
                    except ValueError:
                        rule = f"{target.id} is read, and not run: write numbers, texts and tuples of them"
                        raise self._refuse(rule, node) from None
                    usual, every = NUMBERS.get(target.id), value.values() if isinstance(value, dict) else [value]
                    least = 0 if target.id == "MOMENTUM" else 1e-30
                    if usual and not all(isinstance(one, type(usual) | int) and one >= least for one in every):
                        number = "whole number" if isinstance(usual, int) else "number"
                        raise self._refuse(f"{target.id} = {value!r}: give a {number} above 0, such as {usual:g}", node)
                    if target.id == "WEIGHTS" and not isinstance(value, dict):
                        raise self._refuse('WEIGHTS: write {"name in the reference": "name here"}', node)
                    yield target.id, value

    def framework(self) -> str:
        """The one that the file imports."""
        found: dict[str, int] = {}
        for node in ast.walk(self._tree):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            if getattr(node, "level", 0):
                raise self._refuse("a relative import; put the model into this one file", node)
            for name in [getattr(node, "module", "") or one.name for one in node.names]:
                if name.partition(".")[0] in IMPORTS:
                    found.setdefault(IMPORTS[name.partition(".")[0]], node.lineno)
        if len(found) > 1:
            both = " and ".join(f"{frameworks.title(name)} (line {line})" for name, line in found.items())
            raise self._refuse(f"imports {both}; put the model of each into a file of its own")
        if not found:
            raise self._refuse(f"imports no framework that is known here: {', '.join(IMPORTS)}")
        return next(iter(found))

    def model(self) -> Any:
        """The class or function that makes the model."""
        defined = {one.name: one for one in self.defined(ast.ClassDef | ast.FunctionDef)}
        for _, value in self.assigned(("MODEL",)):
            if value not in defined:
                raise self._refuse(f"MODEL = {value!r}: {no_such('class or function', value, defined)}")
            return defined[value]
        if maker := next((name for name in MAKERS if isinstance(defined.get(name), ast.FunctionDef)), ""):
            return defined[maker]
        models: dict[str, Any] = {}
        for one in self.defined(ast.ClassDef):
            if {ast.unparse(base).rpartition(".")[2] for base in one.bases} & (BASES | models.keys()):
                models[one.name] = one
        for name, one in defined.items():
            for node in ast.walk(one):
                if isinstance(node, ast.Name) and node.id != name:
                    models.pop(node.id, None)  # a part of another
        if not models:
            raise self._refuse("defines no model; write a class of your framework's, or a function model()")
        if len(models) > 1:
            both = ", ".join(f"{name} (line {one.lineno})" for name, one in models.items())
            say = f'say which one is meant: MODEL = "{next(iter(models))}"'
            raise self._refuse(f"defines {len(models)} models: {both}; {say}")
        found = next(iter(models.values()))
        self._require_no_arguments(found)
        return found

    def _require_no_arguments(self, model: ast.ClassDef) -> None:
        for one in model.body:
            if isinstance(one, ast.FunctionDef) and one.name == "__init__":
                given = one.args.args[1 : len(one.args.args) - len(one.args.defaults)]
                if needed := ", ".join(arg.arg for arg in given if arg.arg != "rngs"):
                    rule = "write a function model() that makes the one that is meant"
                    raise self._refuse(f"{model.name} is made with {needed}; {rule}", one)

    def require_only_definitions(self) -> None:
        """Refuse a file that trains, or reads arguments, when it is imported."""
        for statement in self._tree.body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef) or "__main__" in ast.unparse(statement):
                continue
            for node in ast.walk(statement):
                called = getattr(node, "func", None)
                name = getattr(called, "attr", getattr(called, "id", ""))
                if isinstance(node, ast.Call) and name in TRAINING | READING:
                    does = "trains" if name in TRAINING else "reads arguments"
                    rule = 'put that below if __name__ == "__main__":'
                    raise self._refuse(f"{does} when it is imported ({name}); {rule}", node)
