"""Environments: where a framework lives, an interpreter with its packages. The default is this process's own; others
are registered in ``.environments/``, there already or made of ``environments/NAME.txt``: pinned requirements, and in
comments ``# python: 3.11`` and ``# system: ...``, the Python and the needs of the system.
"""

from __future__ import annotations

import ast
import fcntl
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchlib import env_vars
from benchlib.errors import REMEDIES, BenchlibError, no_such, quote
from benchlib.interpreters import probe, resolve

DEFAULT = "default"  # of the interpreter that starts the workers
IN_A_NAME = "an environment's name has up to 40 letters, digits and . _ - in it"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
OLDEST = (3, 8)  # Python that uv makes an environment for; venv and pip make others
_AS_UV = {  # settings of pip that uv does not read, and uv's variables for them
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "constraint": "UV_CONSTRAINT",
    "cert": "SSL_CERT_FILE",
}


@dataclass(frozen=True)
class Environment:
    """An interpreter under a name."""

    name: str
    python: str  # its path
    made: bool = False  # by benchlib, in a folder of its own: to be removed with it


class CreationFailed(BenchlibError):
    """An environment's packages could not be installed; nothing is left of it."""


@dataclass(frozen=True)
class Requirements:
    """The requirements of an environment."""

    file: Path
    python: str  # as 3.11
    system: list[str]  # the needs of the system, a sentence each
    versions: dict[str, str | None]  # of distributions (None: not pinned), but of those that depend on the system


def checkout() -> Path | None:
    """The project's folder that benchlib is imported from; None where it is installed without its notebooks."""
    folder = Path(__file__).resolve().parents[1]
    return folder if (folder / "notebooks" / "report.ipynb").is_file() else None


def root() -> Path:
    """The folder that ``.environments/`` and ``environments/`` are in: the checkout; else the working directory."""
    return checkout() or Path.cwd()


def or_shipped(own: Path) -> Path:
    """A folder of the project; where it has none, the one of that name that came with benchlib's wheel, if any."""
    shipped = (folder / "share" / "benchlib" / own.name for folder in Path(__file__).resolve().parents[2:])
    return own if own.is_dir() else next(filter(Path.is_dir, shipped), own)


def folder() -> Path:
    """The folder where environments are made and registered; it need not be there."""
    return root() / ".environments"


def requirements_file(name: str) -> Path:
    """The requirements file of the environment ``name``, if it is there."""
    return or_shipped(root() / "environments") / f"{name}.txt"


def templates() -> list[str]:
    """Names of the environments that could be made."""
    return sorted(path.stem for path in or_shipped(root() / "environments").glob("[!.]*.txt"))


def require_name(name: object) -> str:
    """The name, if an environment can be called so; a ValueError (for a validator) if not."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(IN_A_NAME)
    return name


def require(name: object) -> str:
    """The name, if it is that of an environment that is there; else a ValueError (for a validator), with a remedy."""
    if why := why_absent(known := require_name(name)):
        raise ValueError(why)
    return known


def names() -> Iterator[str]:
    """The names of all environments: the default one, then the others in order."""
    return iter([DEFAULT, *(name for name in registry() if why_absent(name) is None)])


def registry() -> list[str]:
    """Names of all that is registered, whatever is wrong with it."""
    return sorted(path.stem for path in folder().glob("[!.]*.json"))


def why_absent(name: str) -> str | None:
    """None if there is an environment of this name; else a sentence with the command that makes it."""
    try:
        find(name)
        return None
    except BenchlibError as error:
        return str(error)


def find(name: str) -> Environment:
    """The environment of this name; a BenchlibError with the command that makes it where there is none."""
    if name == DEFAULT:
        return Environment(DEFAULT, sys.executable)
    if environment := _read_registered(name):
        return environment
    if requirements_file(name).is_file():
        raise BenchlibError(f"environment {name!r} is not there: benchlib environment create {name} makes it")
    known = no_such("environment", name, {*names(), *templates()})
    raise BenchlibError(f"{known}; benchlib environment add {name} --python PATH registers an interpreter under it")


def requirements(name: str) -> Requirements | None:
    """Those of ``environments/NAME.txt``; None where there is no such file."""
    file = requirements_file(name)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BenchlibError(f"{file}: cannot be read: {error}") from None
    said = re.findall(r"^#\s*(python|system):\s*(.+)", text, re.MULTILINE)
    python = dict(said).get("python", "{}.{}".format(*sys.version_info))
    if not re.fullmatch(r"\d+\.\d+", python):
        raise BenchlibError(f"{file}: # python: {python}: give one version of Python, such as 3.11")
    pins = [pin for line in text.splitlines() if (pin := re.sub(r"(^|\s)#.*", "", line).strip())]
    named = [re.match(r"([A-Za-z0-9][\w.-]*)(?:\[.*\])?\s*(?:==\s*([\w.+!]+))?", pin) for pin in pins if ";" not in pin]
    system = [sentence for word, sentence in said if word == "system"]
    return Requirements(file, python, system, {one[1]: one[2] for one in named if one})


def create(name: str, say: Callable[[str], None] = print) -> Environment:
    """Make an environment, unless it is there with all that is asked for. The remains of a killed attempt are
    replaced. A :class:`CreationFailed` where a package could not be installed.
    """
    asked = requirements(name)
    with registry_lock():
        there = _read_registered(name)
        if there and there.made and asked and not list(mismatches(asked, there)):
            say(f"environment {name!r} is there already, as {asked.file} asks for it")
            return there
        _require_free(name)
        if asked is None:
            find(name)  # names the nearest one
        given, place = _uv_env(), folder() / name
        environment = Environment(name, str(place / "bin" / "python"), True)
        commands = _commands(asked, environment.python, place, given["PATH"])
        for sentence in asked.system:
            say(f"the system has to have: {sentence}")
        shutil.rmtree(place, ignore_errors=True)
        try:
            for command in commands:
                if ended := subprocess.run(command, stdin=subprocess.DEVNULL, env=given, check=False).returncode:
                    raise BenchlibError(f"{' '.join(command)} ended with exit code {ended}: see its output above")
            probe.cache_clear()  # a former environment had this interpreter's path
            if said := "; ".join(mismatches(asked, environment)):
                raise BenchlibError(f"{said}, though each command above ended with exit code 0")
            register(environment)
        except BaseException as error:  # an interrupt, too
            shutil.rmtree(place, ignore_errors=True)
            if isinstance(error, BenchlibError | OSError):
                raise CreationFailed(f"environment {name!r}: {error}; nothing is left of it") from None
            raise
    return environment


def add(name: str, python: str | Path) -> Environment:
    """Register an interpreter, and leave it as it is. A BenchlibError where the name is taken, or it is none."""
    path = shutil.which(os.path.abspath(python) if os.path.dirname(python) else python)
    if path is None:
        raise BenchlibError(f"{python}: is no program: give the path of an interpreter, such as FOLDER/bin/python")
    with registry_lock():
        _require_free(name)
        # Not the target of a link: a venv's interpreter finds its packages by the link's place.
        environment = Environment(name, resolve(os.path.abspath(path)))
        probe(environment.python, ())
        register(environment)
    return environment


def remove(name: str) -> Environment:
    """Forget an environment, delete its folder if benchlib has made it, and return its record."""
    with registry_lock():
        if (environment := _read_registered(name)) is None:
            raise BenchlibError(no_such("environment", name, registry()))
        if environment.made and (folder() / name).exists():
            shutil.rmtree(folder() / name)
        _record(name).unlink()
    return environment


def _commands(asked: Requirements, new: str, place: Path, path: str) -> list[list[str]]:
    """The commands that make the environment at ``place``; ``new`` will be its interpreter, ``path`` finds programs."""
    old, uv = tuple(map(int, asked.python.split("."))) < OLDEST, shutil.which("uv", path=path)
    python = shutil.which(f"python{asked.python}", path=path)
    if old and python:  # -I: packages on the user's PYTHONPATH would count as installed.
        make, install = [python, "-I", "-m", "venv"], [new, "-I", "-m", "pip", "install"]
    elif uv and not old:
        make = [uv, "venv", "--no-project", "--python", asked.python]
        install = [uv, "pip", "install", "--python", new]
    else:
        lacks = f"python{asked.python}, on PATH, of pyenv or uv" if old else "uv (pip install 'benchlib[suite]', or uv)"
        raise BenchlibError(f"{asked.file}: an environment of it is made with {lacks}, which is not there")
    return [[*make, str(place)], [*install, "--requirement", str(asked.file)]]


def _uv_env() -> dict[str, str]:
    """An installer's variables: pip's settings in uv's words, a PATH with this Python and pyenv's and uv's."""
    own = env_vars.for_programs(os.environ)
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=own, capture_output=True, text=True, check=False).stdout.splitlines()
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # as pip: the best version of all places, not the first place's
    for line in sorted(listed, key=lambda line: line.startswith(":env:")):  # variables stand above files
        name, _, value = line.partition("=")
        if variable := _AS_UV.get(name.rpartition(".")[2]):
            found[variable] = ("," if variable == "UV_FIND_LINKS" else " ").join(ast.literal_eval(value).split())
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob("versions/*/bin")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python").glob("cpython*/bin")
    path = [os.path.dirname(sys.executable), *map(str, pyenv), *map(str, uv), *os.get_exec_path()]
    return found | own | {"PATH": os.pathsep.join(path)}


def mismatches(asked: Requirements, environment: Environment) -> Iterator[str]:
    """The packages that an environment lacks or has in another version, a sentence each."""
    python = probe(environment.python, ()).python
    if python.split(".")[:2] != asked.python.split("."):
        yield f"Python {python}: {asked.file} asks for {asked.python}"
    folders = map(str, Path(environment.python).parents[1].glob("lib*/python*/site-packages"))
    there = {one.name: one.version for one in importlib.metadata.distributions(path=list(folders))}
    by_name = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in there.items()}
    for distribution, pinned in asked.versions.items():
        version = by_name.get(re.sub(r"[-_.]+", "-", distribution).lower(), "")
        if not version or (pinned and version.partition("+")[0] != pinned.partition("+")[0]):
            yield f"{distribution} {version or 'is not installed'}: {pinned or 'it'} is asked for"


def _require_free(name: str) -> None:
    """Raise a BenchlibError where no environment can be registered under this name."""
    if name == DEFAULT or not _NAME.fullmatch(name):
        raise BenchlibError(f"environment {quote(name)}: {IN_A_NAME}; {DEFAULT!r} is the one that benchlib runs in")
    if there := _read_registered(name):
        remedy = f"benchlib environment remove {name} comes first"
        raise BenchlibError(f"environment {name!r} is there already ({there.python}): {remedy}")


def register(environment: Environment) -> None:
    """Write an environment's record, at once or not at all."""
    partial = _record(environment.name).with_suffix(".partial")
    partial.write_text(json.dumps(asdict(environment), indent=1) + "\n", encoding="utf-8")
    os.replace(partial, _record(environment.name))


@contextmanager
def registry_lock() -> Iterator[None]:
    """Hold the lock of :func:`folder`; a BenchlibError where it cannot be had, or changes cannot be written."""
    try:
        folder().mkdir(exist_ok=True)
        with open(folder() / ".lock", "a", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                other = "another benchlib environment command is at work there: wait"
                why = other if isinstance(error, BlockingIOError) else f"cannot be locked ({error.strerror})"
                raise BenchlibError(f"{folder()}: {why}") from None
            yield
    except OSError as error:
        remedy = REMEDIES.get(error.errno, "mend that")
        raise BenchlibError(f"{error.filename or folder()}: {error.strerror or error}: {remedy}") from None


def _record(name: str) -> Path:
    return folder() / f"{name}.json"


def _read_registered(name: str) -> Environment | None:
    try:
        return Environment(**json.loads(_record(name).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        raise BenchlibError(f"{_record(name)}: is no record of an environment: delete it, and begin again") from None
