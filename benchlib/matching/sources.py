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

IMPORTS = {
    "torch": "pytorch",
    "jax": "jax",
    "flax": "jax",
    "keras": "tensorflow",
    "tensorflow": "tensorflow",
    "mindspore": "mindspore",
    "mxnet": "mxnet",
}
"""By module: the framework whose models are made of it."""

DECLARED = ("INPUT", "VOCABULARY", "CLASSES", "LABELS", "TARGET", "BATCH_SIZE", "LEARNING_RATE", "MOMENTUM", "WEIGHTS")
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
    text, _, environment = os.fspath(given).partition("@")
    path, tree = Path(text), _parse(text)
    _require_only_definitions(text, tree)
    framework = _framework(text, tree)
    name, line = _model(text, tree)
    functions = tuple(one.name for one in tree.body if isinstance(one, ast.FunctionDef) and one.name in FUNCTIONS)
    declared = dict(_assigned(text, tree, DECLARED))
    return Source(
        path, framework, environment or _environment(text, framework, create), name, line, declared, functions
    )


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


def _parse(path: str) -> ast.Module:
    if not path.endswith(".py") or not Path(path).is_file():
        raise BenchlibError(f"{path}: there is no such Python file; give the files of your model, as mine_torch.py")
    try:
        return ast.parse(Path(path).read_bytes())
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise BenchlibError(f"{path}: line {line}: this is no Python ({getattr(error, 'msg', error)})") from None


def _framework(path: str, tree: ast.Module) -> str:
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if getattr(node, "level", 0):
            raise BenchlibError(f"{path}: line {node.lineno}: a relative import; put the model into this one file")
        for name in [getattr(node, "module", "") or one.name for one in node.names]:
            if name.partition(".")[0] in IMPORTS:
                found.setdefault(IMPORTS[name.partition(".")[0]], node.lineno)
    if len(found) > 1:
        both = " and ".join(f"{frameworks.title(name)} (line {line})" for name, line in found.items())
        raise BenchlibError(f"{path}: imports {both}; put the model of each into a file of its own")
    if not found:
        raise BenchlibError(f"{path}: imports no framework that is known here: {', '.join(IMPORTS)}")
    return next(iter(found))


def _model(path: str, tree: ast.Module) -> tuple[str, int]:
    """The class or function that makes the model, and its line."""
    defined = {one.name: one for one in tree.body if isinstance(one, ast.ClassDef | ast.FunctionDef)}
    for _, value in _assigned(path, tree, ("MODEL",)):
        if value not in defined:
            raise BenchlibError(f"{path}: MODEL = {value!r}: {no_such('class or function', value, defined)}")
        return value, defined[value].lineno
    maker = next((name for name in MAKERS if isinstance(defined.get(name), ast.FunctionDef)), None)
    if maker:
        return maker, defined[maker].lineno
    classes = {name: one for name, one in defined.items() if isinstance(one, ast.ClassDef)}
    models: dict[str, ast.ClassDef] = {}
    for name, one in classes.items():
        bases = {ast.unparse(base).rpartition(".")[2] for base in one.bases}
        if bases & (BASES | models.keys()):
            models[name] = one
    used = {
        node.id
        for name, one in defined.items()
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and node.id != name
    }
    roots = {name: one for name, one in models.items() if name not in used}
    if len(roots) == 1:
        name, one = next(iter(roots.items()))
        _require_no_arguments(path, one)
        return name, one.lineno
    if not roots:
        raise BenchlibError(f"{path}: defines no model; write a class of your framework's, or a function model()")
    both = ", ".join(f"{name} (line {one.lineno})" for name, one in roots.items())
    raise BenchlibError(
        f'{path}: defines {len(roots)} models: {both}; say which one is meant: MODEL = "{next(iter(roots))}"'
    )


def _require_no_arguments(path: str, model: ast.ClassDef) -> None:
    for one in model.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            every = one.args.args[1:]
            needed = [arg.arg for arg in every[: len(every) - len(one.args.defaults)] if arg.arg != "rngs"]
            if needed:
                raise BenchlibError(
                    f"{path}: line {one.lineno}: {model.name} is made with {', '.join(needed)}; write a function "
                    f"model() that makes the one that is meant"
                )


def _assigned(path: str, tree: ast.Module, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    assigned = [(target, node) for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    for name, node in ((target.id, node) for target, node in assigned if isinstance(target, ast.Name)):
        try:
            value = ast.literal_eval(node.value) if name in names else None
        except ValueError:
            rule = "is read, and not run: write numbers, texts and tuples of them"
            raise BenchlibError(f"{path}: line {node.lineno}: {name} {rule}") from None
        if name in names:
            yield name, value


def _require_only_definitions(path: str, tree: ast.Module) -> None:
    """Refuse a file that trains, or reads arguments, when it is imported."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) or "__main__" in ast.unparse(statement):
            continue
        for node in ast.walk(statement):
            called = getattr(node, "func", None)
            name = getattr(called, "attr", getattr(called, "id", ""))
            if isinstance(node, ast.Call) and name in TRAINING | READING:
                does = "trains" if name in TRAINING else "reads arguments"
                raise BenchlibError(
                    f"{path}: line {node.lineno}: {does} when it is imported ({name}); put that below "
                    'if __name__ == "__main__":'
                )
