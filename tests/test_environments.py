"""Environments: made, registered, refused, removed and checked; and two of them compared."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchlib import creation, environments, inspection, interpreters, records, tables
from benchlib.__main__ import main
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.provenance import installed, knobs
from benchlib.runner import availability, process_group, roofline, rounds
from benchlib.runner.jobs import prepare_job
from benchlib.store import Measurement
from benchlib.suite import experiments, outputs, plan, sources
from benchlib.suite.experiments import devices, frameworks, modes, scaling, versions
from benchlib.suite.experiments import parameters as p

ROOT = Path(__file__).resolve().parent.parent
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """A project's folder with requirements for ``small``, and nothing else."""
    folder = tmp_path / "project"
    (folder / "environments").mkdir(parents=True)
    (folder / "environments" / "small.txt").write_text(
        f"# python: {VERSION}\n# system: a screwdriver\n#\n# Small.\n--no-index\ntoybox==1.0  # a pin\n"
    )
    monkeypatch.setattr(environments, "root", lambda: folder)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    installed.versions.cache_clear()
    installed.packages.cache_clear()
    interpreters.probe.cache_clear()
    return folder


@pytest.fixture
def quickly(monkeypatch):
    """Environments are made without pip, and in them is nothing but that toybox is installed."""
    monkeypatch.setattr(
        creation,
        "_commands",
        lambda uv, python, new, file, place: [
            [python, "-I", "-m", "venv", "--without-pip", str(place)],
            ["sh", "-c", toybox_in(place)],
        ],
    )


def toybox_in(place):
    info = f"{place}/lib/python{VERSION}/site-packages/toybox-1.0.dist-info"
    return f"mkdir {info}; printf 'Metadata-Version: 2.1\\nName: toybox\\nVersion: 1.0\\n' > {info}/METADATA"


@pytest.fixture
def other(project):
    """An environment of that name, with numpy and nothing else."""
    place = project / ".environments" / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    for path in Path(np.__file__).parents[1].glob("numpy*"):
        shutil.copytree(path, packages / path.name, copy_function=linked)
    return environments.add("other", place / "bin" / "python")


def linked(source, target):
    """A file in two places, in one's room where that can be."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def left(project):
    """What is there of environments."""
    folder = project / ".environments"
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock") if folder.exists() else []


# -- making and registering


def test_one_is_made_of_its_requirements_registered_and_removed(project, tmp_path, monkeypatch, capfd):
    wheel = tmp_path / "toybox-1.0-py3-none-any.whl"
    info = "toybox-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("toybox/__init__.py", "")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: toybox\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "toybox/__init__.py,,\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{Path(sys.executable).parent}:/usr/bin:/bin")  # where there is no uv
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    for name in ("PIP_DRY_RUN", "PIP_USER"):
        monkeypatch.setenv(name, "1")
    assert main(["environment", "create", "small"]) == 0
    environment = environments.find("small")
    assert environment.made
    assert Path(environment.python) == project / ".environments" / "small" / "bin" / "python"
    assert interpreters.probe(environment.python, ("toybox",)).modules["toybox"].packages == {"toybox": "1.0"}
    assert "the system has to have: a screwdriver" in capfd.readouterr().out

    assert main(["environment", "create", "small"]) == 0
    assert "is there already, made of" in capfd.readouterr().out
    assert main(["environment", "check", "small"]) == 1, "it offers no framework"
    assert "toybox 1.0: imported" in capfd.readouterr().out
    (site,) = (project / ".environments" / "small").glob("lib/*/site-packages")
    (site / "toybox" / "__init__.py").write_text("import nobodys")
    broken = "toybox 1.0: toybox: ModuleNotFoundError: No module named 'nobodys'"
    assert inspection.Finding(broken, wrong=True) in list(inspection.inspect("small"))

    assert main(["environment", "remove", "small"]) == 0
    assert left(project) == []


@pytest.fixture
def installed_small(project, quickly):
    """The environment ``small`` with its toybox, of which a function makes the packages anew: files by name."""
    creation.create("small")
    (site,) = (project / ".environments" / "small").glob("lib/*/site-packages")

    def install(version="1.0", missing=(), **files):
        info, files = f"toybox-{version}.dist-info", {"__init__": "", **files}
        for path in site.glob("toybox*"):
            shutil.rmtree(path)
        (site / "toybox").mkdir()
        (site / info).mkdir()
        (site / info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toybox\nVersion: {version}\n")
        (site / info / "RECORD").write_text("".join(f"toybox/{name}.py,,\n" for name in (*files, *missing)))
        for name, text in files.items():
            (site / "toybox" / f"{name}.py").write_text(text)
        return [one for one in inspection.inspect("small") if "toybox" in one.says]

    return install


def wrong(says):
    return [inspection.Finding(says, wrong=True)]


def test_a_package_that_is_whole_is_imported_whatever_it_prints_or_leaves(installed_small):
    code = """
import atexit, sys, threading, time
print("{toybox says hello", flush=True)
atexit.register(print, "toybox says goodbye")
threading.Thread(target=time.sleep, args=(3600,)).start()
"""
    assert installed_small(__init__=code) == [inspection.Finding("toybox 1.0: imported")]


def test_a_package_that_ends_python_is_told(installed_small):
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    assert installed_small(__init__=code) == wrong("toybox: python ended (-11) and said: nothing")
    assert installed_small(__init__="raise SystemExit(3)") == wrong("toybox 1.0: toybox: SystemExit: 3")


def test_a_package_of_another_version_than_is_asked_for_is_told(installed_small):
    assert installed_small(version="0.9") == wrong("toybox 0.9: 1.0 is asked for")
    assert installed_small(version="1.0+cpu") == [inspection.Finding("toybox 1.0+cpu: imported")]


def test_a_package_that_is_half_installed_is_told(installed_small):
    one = installed_small(missing=["kernels", "blocks"])
    assert one == wrong("toybox 1.0: 2 of its files are gone, toybox/blocks.py for one")


def test_an_environment_of_another_python_is_told(project, installed_small):
    text = (project / "environments" / "small.txt").read_text()
    (project / "environments" / "small.txt").write_text(text.replace(f"python: {VERSION}", "python: 3.6"))
    says = [one.says for one in inspection.inspect("small") if one.wrong]
    assert any(
        one.startswith(f"Python {VERSION}.") and "asks for 3.6: benchlib environment remove small" in one
        for one in says
    )


def test_an_environment_whose_python_is_gone_or_broken_is_told(project, installed_small, capsys):
    python = Path(environments.find("small").python)
    python.unlink()
    assert main(["environment", "check", "small"]) == 2
    assert str(python) in capsys.readouterr().err
    program(python, "echo no Python here >&2; exit 1")
    interpreters.probe.cache_clear()
    assert main(["environment", "check", "small"]) == 2
    assert "it said: no Python here" in capsys.readouterr().err


def test_one_whose_requirements_have_changed_has_to_be_removed_first(quickly, project, capsys):
    creation.create("small")
    text = (project / "environments" / "small.txt").read_text()
    (project / "environments" / "small.txt").write_text(text + "# a comment\n")
    assert list(creation.overview())[1].endswith("as it is")
    creation.create("small")
    (project / "environments" / "small.txt").write_text(text + "more==1\n")
    with pytest.raises(BenchlibError, match=r"'small' is there already .* benchlib environment remove small"):
        creation.create("small")
    assert "which has changed: benchlib environment remove small" in list(creation.overview())[1]
    assert main(["environment", "check", "small"]) == 1
    assert "has changed since it was made" in capsys.readouterr().out


def test_a_package_that_cannot_be_installed_leaves_nothing(project, monkeypatch, capfd):
    for commands, said in (
        ([["false"]], "false ended with exit code 1"),
        ([[sys.executable, "-m", "venv", "--without-pip", "{place}"]], "toybox: not there"),
        ([["mkdir", "{place}"]], "bin/python: cannot be started"),
    ):
        monkeypatch.setattr(
            creation,
            "_commands",
            lambda uv, python, new, file, place, commands=commands: [
                [one.format(place=place) for one in command] for command in commands
            ],
        )
        assert main(["environment", "create", "small"]) == 1
        assert said in capfd.readouterr().err
    assert left(project) == []
    with pytest.raises(BenchlibError, match="'small' is not there: benchlib environment create small makes it"):
        environments.find("small")


def test_an_interrupt_leaves_nothing(project, monkeypatch):
    def interrupted(command, name):
        Path(project / ".environments" / "small").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(creation, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        creation.create("small")
    assert left(project) == []


def test_what_a_kill_leaves_is_no_environment_and_is_made_anew(project, quickly, tmp_path):
    script = f"""
from pathlib import Path
from benchlib import creation, environments
environments.root = lambda: Path({str(project)!r})
creation._commands = lambda uv, python, new, file, place: [["mkdir", place], ["sleep", "60"]]
creation.create("small")
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, start_new_session=True) as creating:
        while not (project / ".environments" / "small").exists():
            time.sleep(0.05)
        with pytest.raises(BenchlibError, match="another benchlib environment command is at work"):
            creation.create("small")
        os.killpg(creating.pid, signal.SIGKILL)
    assert left(project) == ["small", "small.json"]
    assert list(environments.names()) == ["default"]
    with pytest.raises(BenchlibError, match="not made to its end: benchlib environment create small makes it anew"):
        environments.find("small")
    assert Path(creation.create("small").python).exists()
    assert list(environments.names()) == ["default", "small"]


def test_a_folder_of_somebody_else_is_left_alone(project, quickly):
    (project / ".environments" / "small").mkdir(parents=True)
    with pytest.raises(BenchlibError, match="no environment is registered for it: move it away"):
        creation.create("small")
    assert left(project) == ["small"]


def test_uv_makes_it_where_it_is_there(project, tmp_path):
    place = project / ".environments" / "small"
    venv = f"[ $1 = pip ] && exit; {sys.executable} -m venv --without-pip {place}; {toybox_in(place)}"
    program(tmp_path / "bin" / "uv", f'echo "$@" >> {tmp_path}/uv; {venv}')
    environment = creation.create("small")
    first, second = (tmp_path / "uv").read_text().splitlines()
    assert first.startswith("venv --python ")
    assert first.endswith(f" {place}")
    assert second == f"pip install --python {environment.python} --requirement {project}/environments/small.txt"


def test_the_python_that_is_asked_for_is_looked_for(project, tmp_path, monkeypatch, quickly):
    (project / "environments" / "small.txt").write_text("# python: 3.99\n")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    with pytest.raises(BenchlibError, match=r"needs python3.99 with its venv .* none of these .*pyenv install 3.99"):
        creation.create("small")
    assert left(project) == []
    program(tmp_path / "bin" / "python3.99", "echo pyenv: python3.99: command not found >&2; exit 127")
    home = tmp_path / "pyenv" / "versions" / "3.99.1" / "bin"
    home.mkdir(parents=True)
    real = program(home / "python3.99", "echo 3.99")
    assert creation._python(creation.requirements("small"), with_venv=True) == str(real)


@pytest.mark.parametrize("python", ["3", "three", "3.11.7"])
def test_a_python_that_is_no_version_is_refused(project, python):
    (project / "environments" / "small.txt").write_text(f"# python: {python}\n")
    with pytest.raises(BenchlibError, match=f"small.txt: # python: {python}: give one version of Python"):
        creation.create("small")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("smal", "did you mean 'small'"),
        ("../small", "an environment's name has up to 40 letters, digits"),
        ("", "an environment's name"),
        ("x" * 41, "an environment's name"),
        ("default", "benchlib itself runs in"),
    ],
)
def test_a_name_that_none_can_have_is_refused(name, told, project, capsys):
    assert main(["environment", "create", name]) == 2
    assert told in capsys.readouterr().err
    assert left(project) == []


def test_an_interpreter_is_added_and_forgotten_untouched(project, tmp_path, capsys):
    python = program(tmp_path / "python", f'exec {sys.executable} "$@"')
    assert main(["environment", "add", "mine", "--python", str(python)]) == 0
    assert environments.find("mine").python == str(python), "and not what a link leads to"
    assert main(["environment", "add", "mine", "--python", str(python)]) == 2
    assert main(["environment", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"mine: {python}, added" in lines
    assert any(line.startswith("small: not there; benchlib environment create small") for line in lines)
    assert main(["environment", "remove", "mine"]) == 0
    assert python.exists()
    assert left(project) == []
    assert main(["environment", "remove", "mine"]) == 2
    assert main(["environment", "remove", "default"]) == 2


def test_the_interpreter_that_answers_here_is_registered_and_not_what_a_shim_starts_elsewhere(
    project, other, tmp_path, monkeypatch, capsys
):
    """As pyenv's shims do: by a file in the working directory, or a variable."""
    shim = program(
        tmp_path / "bin" / "python9",
        f'chosen=$(cat .chosen 2>/dev/null); exec "${{CHOSEN:-${{chosen:-{sys.executable}}}}}" "$@"',
    )
    assert environments.add("same", shim).python == str(shim), "a wrapper, which may set variables"
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".chosen").write_text(other.python)
    assert main(["environment", "add", "by-file", "--python", "python9"]) == 0
    assert f"environment by-file: Python {VERSION}." in capsys.readouterr().out
    (tmp_path / ".chosen").unlink()
    monkeypatch.setenv("CHOSEN", other.python)
    for name, python in (("by-file", other.python), ("by-variable", environments.add("by-variable", shim).python)):
        assert environments.find(name).python == other.python == python
    (tmp_path / "bin" / f"python{VERSION}").symlink_to(shim)
    assert creation._python(creation.requirements("small"), with_venv=False) == other.python


def test_where_there_are_no_file_locks_it_is_said(project, quickly, monkeypatch, capsys):
    def without(*arguments):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(environments.fcntl, "flock", without)
    for command in (["create", "small"], ["add", "mine", "--python", sys.executable]):
        assert main(["environment", *command]) == 2
        assert f"{project}/.environments: cannot be locked (Function not implemented)" in capsys.readouterr().err
    assert left(project) == []


def test_what_is_no_interpreter_is_not_added(tmp_path, project):
    program(tmp_path / "python", "echo hello")
    refusal = "could not tell which packages it has.* or a Python 3.7 with the package importlib-metadata"
    with pytest.raises(BenchlibError, match=refusal):
        environments.add("mine", tmp_path / "python")
    for nothing in (tmp_path, tmp_path / "gone"):
        with pytest.raises(BenchlibError, match="give the path of an interpreter"):
            environments.add("mine", nothing)
    assert left(project) == []


def test_a_script_that_starts_python_as_another_process_is_refused(project, tmp_path, capsys):
    python = program(tmp_path / "python", f'{sys.executable} "$@"\nexit $?')
    assert main(["environment", "add", "mine", "--python", str(python)]) == 2
    assert "write exec before the command" in capsys.readouterr().err
    assert left(project) == []
    environments.folder().mkdir(exist_ok=True)
    environments.register(environments.Environment("mine", str(python)))  # before benchlib looked for it
    assert main(["environment", "check", "mine"]) == 2
    assert main(["devices"]) == 0
    said = capsys.readouterr()
    assert "write exec" in said.err
    assert f"environment mine: {python}: starts Python as a process below its own" in said.out


def test_a_record_that_is_none_is_told_and_can_be_removed(project, capsys):
    (project / ".environments").mkdir()
    (project / ".environments" / "mine.json").write_text("{")
    with pytest.raises(BenchlibError, match=r"mine.json: is no record of an environment: benchlib environment remove"):
        environments.find("mine")
    assert list(environments.names()) == ["default"]
    assert main(["environment", "list"]) == 0
    assert "mine.json: is no record" in capsys.readouterr().out
    assert main(["environment", "remove", "mine"]) == 0
    assert left(project) == []


def test_hidden_files_are_no_requirements(project):
    (project / "environments" / "._small.txt").write_bytes(b"\x00\x05\x16\x07")
    assert not [line for line in creation.overview() if "._small" in line]
    with pytest.raises(BenchlibError) as error:
        creation.create("smal")
    assert "._small" not in str(error.value)


def test_the_requirements_that_are_shipped_can_be_read(monkeypatch):
    monkeypatch.setattr(environments, "root", lambda: ROOT)
    names = [path.stem for path in (ROOT / "environments").glob("*.txt")]
    assert {"torch-2.9", "ascend"} <= set(names)
    for name in names:
        asked = creation.requirements(name)
        assert asked.python
        assert all(environments.require_name(one) for one in (name, *asked.distributions))
        pins = [line for line in asked.file.read_text().splitlines() if line and not line.startswith("#")]
        assert all("==" in pin for pin in pins), f"{name}: {pins}"


# -- what there is in one


def test_the_default_one_is_checked_by_importing_its_frameworks(capsys, monkeypatch, toy_framework):
    monkeypatch.setattr(availability.frameworks, "names", lambda: ["toy", "nobodys"])
    monkeypatch.setattr(
        availability.frameworks,
        "package",
        lambda name: {"toy": "numpy", "nobodys": "nobodys", "pytorch": "torch"}[name],
    )
    monkeypatch.setattr(availability.frameworks, "file", lambda name, file=availability.frameworks.file: file("toy"))
    assert main(["environment", "check", "default"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"environment default: Python {VERSION}")
    assert f"toy: imported; python {VERSION}." in "\n".join(said)
    assert "toy 1.0" in "\n".join(said)
    assert "toy, cpu: usable" in said
    assert "nobodys: nobodys is not installed" in said


def test_a_framework_that_no_workload_has_a_file_for_is_said(monkeypatch):
    monkeypatch.setattr(availability.frameworks, "names", lambda: ["rods"])
    monkeypatch.setattr(availability.frameworks, "package", lambda name: "numpy")
    monkeypatch.setattr(
        availability.frameworks, "file", lambda name, file=availability.frameworks.file: file("pytorch")
    )
    _, *said = inspection.inspect("default")
    assert len(said) == 1
    assert said[0].wrong
    assert (
        "rods: no workload has a file for it, to try it with: write workloads/NAME/rods.py for one of" in said[0].says
    )


def test_one_that_was_added_is_checked_with_a_worker_of_each_framework(other, capsys, toy_framework):
    packages = next(Path(other.python).parents[1].glob("lib/*/site-packages"))
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").write_text("raise OSError('libgone.so')")
    assert main(["environment", "check", "other"]) == 1
    said = capsys.readouterr().out
    assert "toy: imported" in said
    assert "mindspore: mindspore is not installed" in said
    assert "pytorch: worker failed in 'open': OSError: libgone.so" in said
    assert "pytorch, cpu" not in said


def test_devices_are_told_of_each_environment(other, capsys, toy_framework, tmp_path):
    assert main(["devices"]) == 0
    said = capsys.readouterr().out
    assert f"toy other {np.__version__}, cpu: usable" in said
    assert "pytorch other" not in said, "nobody expects it there"
    shutil.rmtree(Path(other.python).parents[1])
    interpreters.probe.cache_clear()
    assert main(["devices"]) == 0
    assert f"environment other: {other.python}: cannot be started" in capsys.readouterr().out


# -- conditions


def toy(**choices):
    return Condition(**{"workload": "toy", "framework": "toy", **choices})


def test_a_condition_says_its_environment_unless_it_is_the_default_one():
    here = Condition(workload="cnn")
    there = here.but(environment="torch-2.9")
    assert here.environment == "default"
    assert there.key != here.key
    assert "default" not in str(here.but(lane="tuned"))
    assert str(there).startswith("cnn pytorch torch-2.9 eager fp32 cpu")
    assert there.subject == "pytorch torch-2.9 eager default"
    assert there.but(framework="mindspore").implementation == "mindspore torch-2.9"
    with pytest.raises(BenchlibError, match=r"environment: 'a b': an environment's name has"):
        here.but(environment="a b")


def test_what_was_stored_without_an_environment_is_of_the_default_one():
    condition = Condition(workload="cnn")
    document = json.loads(Certificate(condition=condition, reference=condition).model_dump_json())
    for one in ("condition", "reference"):
        assert document[one].pop("environment") == "default"
    assert Certificate.model_validate(document).condition == condition


def test_two_environments_share_no_process(toy_framework):
    here, there = toy(), toy(environment="other")
    assert [len(process_group) for process_group in gate._groups([here, there], [])] == [1, 1]


def test_the_machine_s_limits_are_measured_in_a_process_of_each_environment(toy_framework, monkeypatch, tmp_path):
    every = [Condition(workload="linear", environment=name) for name in ("default", "other")]
    groups = []
    monkeypatch.setattr(roofline, "conditions", lambda *asked: every)
    monkeypatch.setattr(
        roofline, "_steps_per_second", lambda process_group, *_: groups.append(process_group) or ({}, [])
    )
    roofline.measure("cpu", "fp32", ["default", "other"], tmp_path, 1.0)
    assert groups == [[one] for one in every]


def test_a_number_depends_on_the_versions_in_its_environment(tmp_path, monkeypatch):
    monkeypatch.setattr(installed, "versions", lambda framework, environment: {"torch": f"that of {environment}"})
    monkeypatch.setattr(installed, "packages", lambda framework, workload, environment: {"sympy": environment})
    parts = prepare_job(Condition(workload="linear", environment="other"), 0, tmp_path).depends_on("rounds")
    assert parts["versions"]["torch"] == "that of other"
    assert parts["packages"] == {"sympy": "other"}
    assert parts["condition"]["environment"] == "other"


def test_a_group_is_launched_with_the_environment_s_interpreter(other, tmp_path, monkeypatch):
    launched = []
    monkeypatch.setattr(process_group.subprocess, "Popen", lambda command, **_: launched.append(command))
    there = Condition(workload="cnn", environment="other", world_size=2, threads=1)
    process_group.launch(there, tmp_path, {}, None)
    assert launched[0][0] == other.python


def test_a_notebook_is_stale_when_an_environment_it_measures_in_has_changed(other, monkeypatch):
    def inputs(*conditions):
        return records.digest(outputs._packages(list(conditions), {}))

    here, there = Condition(workload="cnn"), Condition(workload="cnn", environment="other")
    before, alone = inputs(here, there), inputs(here)
    monkeypatch.setattr(interpreters, "probe", lambda *asked: pytest.fail("it was asked before"))
    versions_of = installed.versions
    monkeypatch.setattr(
        installed, "versions", lambda name, where="default": {**versions_of(name, where), "x": where == "other"}
    )
    assert inputs(here, there) != before != alone


def test_a_measurement_whose_environment_is_gone_is_traced_to_that(toy_framework):
    m = Measurement(
        **{"kind": "comparison", "group": "g", "file": "f", "repetition": 0, "role": "condition", "seed": 0},
        condition=toy(environment="small"),
        started_utc="2026-01-01T00:00:00+00:00",
    )
    assert "environment 'small' is not there" in sources._changed(m, Path())[-1]


def test_the_reference_is_of_the_default_environment(toy_framework, monkeypatch):
    there = Condition(workload="cnn", framework="mindspore", mode="graph", environment="other")
    assert str(gate.reference(there)).startswith("cnn pytorch eager fp32")
    assert len({gate.reference(one).key for one in (there, there.but(environment="default"))}) == 1


def test_where_the_default_one_lacks_a_framework_the_reference_says_where_it_is(monkeypatch):
    offers = {"default": [], "b": ["mindspore", "pytorch"], "a": ["mindspore"]}
    monkeypatch.setattr(environments, "names", lambda: iter(["default", "a", "b"]))

    def available(framework, device, environment):
        return None if framework in offers[environment] else "it is not there"

    monkeypatch.setattr(availability, "available", available)
    there = Condition(workload="cnn", environment="b")
    assert gate.reference(there).subject == "mindspore a eager default", "the same for all: of the first that has one"
    offers["default"] = ["mindspore"]
    assert gate.reference(there).subject == "mindspore eager default"
    offers["default"] = []
    offers["a"] = []
    assert gate.reference(there).subject == "pytorch b eager default"


def test_the_machine_s_limits_are_asked_of_the_environments_that_are_compared(other, toy_framework, monkeypatch):
    asked = []
    monkeypatch.setattr(availability, "available", lambda *given: asked.append(given) or "nothing")
    assert roofline.conditions("cpu", "fp32", ["default", "other"]) == []
    assert {environment for _, _, environment in asked} == {"default", "other"}


def test_a_lab_refuses_an_environment_that_is_not_there_with_the_command_that_makes_it(tmp_path, toy_framework):
    lab = Lab(outputs=tmp_path / "outputs")
    for name, command in (("small", "create small makes it"), ("torch9", "add torch9 --python PATH")):
        there = toy(environment=name)
        for ask in (
            lambda there=there: lab.compare([toy(), there]),
            lambda there=there: lab.train([there], seeds=[0], epochs=1),
            lambda there=there: lab.certify([there]),
        ):
            with pytest.raises(BenchlibError, match=f"benchlib environment {command}"):
                ask()
    assert not (tmp_path / "outputs" / "measurements").exists()


@pytest.mark.parametrize("experiment", [frameworks, modes, scaling, devices])
def test_parameters_refuse_an_environment_that_is_not_there(experiment):
    name = experiment.__name__.rpartition(".")[2]
    loaded = experiments.load(name, ROOT / "parameters" / "quick" / f"{name}.yaml").model_dump()
    subjects = [{**subject, "environment": "small"} for subject in loaded["subjects"]]
    with pytest.raises(BenchlibError, match=r"subjects.0.environment: .*benchlib environment create small makes it"):
        experiment.Parameters(**{**loaded, "subjects": subjects})


def test_the_suite_refuses_it_by_file_and_key(tmp_path):
    text = (ROOT / "parameters" / "quick" / "devices.yaml").read_text()
    (tmp_path / "devices.yaml").write_text(text.replace("framework: pytorch", "framework: pytorch, environment: small"))
    with pytest.raises(BenchlibError, match=r"devices.yaml: subjects.0.environment: .*create small makes it"):
        plan.planned("devices", tmp_path / "devices.yaml")


# -- labels and tables


def test_a_subject_shows_its_environment(other):
    plain = {"framework": "pytorch", "mode": "eager", "lane": "tuned"}
    assert str(p.Subject(**plain)) == "pytorch eager tuned"
    subject = p.Subject(**plain, environment="other")
    assert str(subject) == "pytorch other eager tuned"
    assert Condition(workload="cnn", **p.choices_of(subject)).environment == "other"


def test_the_column_is_shown_where_one_is_not_of_the_default_environment():
    frame = pd.DataFrame([{"framework": "pytorch", "environment": "default", "batch_size": 1, "ratio": 1.0}] * 2)
    assert "environment" not in tables.html(frame, "x").data
    frame.loc[1, "environment"] = "torch-2.9"
    assert "torch-2.9" in tables.html(frame, "x").data
    subjects = [Condition(workload="cnn", environment=name, lane="tuned").subject for name in frame["environment"]]
    assert subjects == ["pytorch eager tuned", "pytorch torch-2.9 eager tuned"]


def test_the_report_says_what_stood_in_for_the_reference():
    here = Condition(workload="cnn")
    usual = Certificate(condition=here, reference=here)
    other = Certificate(condition=here, reference=here.but(framework="mindspore", environment="a"))
    assert tables.references([usual]) == "PyTorch eager on the CPU"
    assert tables.references([usual, other]).endswith("(where that is not there: mindspore a)")


# -- the notebook versions


QUICK = ROOT / "parameters" / "quick" / "versions.yaml"


def test_the_notebook_versions_says_how_to_make_what_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "root", lambda: tmp_path)
    (tmp_path / "environments").mkdir()
    shutil.copy(ROOT / "environments" / "torch-2.9.txt", tmp_path / "environments")
    parameters = experiments.load("versions", QUICK)
    assert experiments.conditions("versions", parameters) == []
    result = experiments.measure("versions", Lab(outputs=tmp_path / "outputs"), **parameters.model_dump())
    note = "Not measured: environment 'torch-2.9' is not there: benchlib environment create torch-2.9 makes it"
    assert note in result.show_findings().data.replace("&#x27;", "'")
    assert "No figure of ratios" in result.show_figure("ratios").data
    assert result.summary()["failures"] == 0


def test_the_notebook_versions_compares_those_that_have_the_framework(tmp_path, other):
    environments.add("again", sys.executable)
    environments.register(environments.Environment("broken", str(tmp_path / "deleted" / "python")))
    given = experiments.load("versions", QUICK).model_dump() | {"batch_sizes": [8, 16]}
    every = ["broken", "again", "other", "gone", "default"]
    compared = versions.comparisons(versions.Parameters(**{**given, "environments": every}))
    assert [[one.environment for one in process_group] for process_group in compared] == [["again", "default"]] * 2
    assert [process_group[0].batch_size for process_group in compared] == [8, 16]
    with pytest.raises(BenchlibError, match=r"environments"):
        versions.Parameters(**{**given, "environments": ["default"]})
    alone = versions.Parameters(**{**given, "environments": ["default", "broken", "other"]})
    assert versions.conditions(alone) == []
    broken, without = versions.measure(alone, Lab(outputs=tmp_path / "outputs")).findings()
    assert "deleted/python is not there: benchlib environment remove broken" in broken
    assert "environment 'other' has no torch: install it" in without


@pytest.mark.slow
def test_one_framework_in_two_environments_is_an_ordinary_comparison(tmp_path, other, toy_framework, monkeypatch):
    monkeypatch.setattr(roofline, "conditions", lambda *asked: [])
    block = rounds._block

    def timed(entry, number, position, others):
        """Half as much again in the other environment, and some noise: the machine of the tests may be busy."""
        measured = block(entry, number, position, others)
        share = zlib.crc32(f"{entry.measurement.file} {entry.measurement.role}".encode()) % 100 + number % 2
        step_s = (0.006 if entry.job.condition.environment == "other" else 0.004) * (1 + share / 5000)
        return measured.model_copy(update={"wall_s": measured.steps * step_s, "disturbed": False})

    monkeypatch.setattr(rounds, "_block", timed)
    monkeypatch.setattr(rounds, "WARM_UP_LIMIT_S", 0.05)
    given = experiments.load("versions", QUICK).model_dump()
    given |= {"workload": "toy", "framework": "toy", "lane": "default", "batch_sizes": [32]}
    given |= {"environments": ["default", "other"], "hyperparameters": {"burn_ms": 4.0}}
    given |= {"precision": 0.2, "block_s": 0.05, "pilot": 3}
    lab = Lab(outputs=tmp_path / "outputs")
    result = versions.measure(versions.Parameters(**given), lab)
    (compared,) = result.comparisons
    there = compared.conditions[1]
    assert all(one.same for one in compared.certificates.values())
    assert {one.reference.environment for one in compared.certificates.values()} == {"default"}
    assert compared.ratio(there).estimate == pytest.approx(4 / 6, rel=0.02)
    assert [check.condition for check in lab.check_timers(compared.conditions)] == compared.conditions
    row = result.tables()["ratios"][1].iloc[0]
    assert (row["subject"], row["baseline"]) == ("toy other eager default", "toy eager default")
    assert (row["environment"], row["verdict"]) == ("other", "slower")
    assert "toy other eager default" in result.show_table("ratios").data
    assert set(knobs.Ledger(compared.measurements).frame["environment"]) == {"default", "other"}
    processes = {m.condition.environment: m for m in compared.measurements}
    assert processes["other"].packages == processes["default"].packages, "numpy's, the same"
    assert "Throughput of toy other eager default relative to toy eager default" in result.findings()[0]
    result.summary()
    text = (tmp_path / "outputs" / "tables" / "versions_ratios.csv").read_text()
    assert "toy other eager default" in text
