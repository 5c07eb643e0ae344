"""Environments: made, registered, refused, removed and checked; and two of them compared."""

import ctypes
import errno
import importlib
import os
import shutil
import signal
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from patience import until

from benchlib import doctor, environments, frameworks, interpreters
from benchlib.cache import Measurement
from benchlib.cli import main
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.paper import trace
from benchlib.provenance import installed, knobs
from benchlib.runner import availability, process_group, roofline, rounds
from benchlib.suite import profile, staleness

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
    installed._imported_modules.cache_clear()
    interpreters.probe.cache_clear()
    return folder


@pytest.fixture
def quickly(monkeypatch):
    """Environments are made without uv, and in them is nothing but that toybox is installed."""

    def commands(asked, new, place, path):
        info = f"{place}/lib/python{VERSION}/site-packages/toybox-1.0.dist-info"
        toybox = f"mkdir {info}; printf 'Metadata-Version: 2.1\\nName: toybox\\nVersion: 1.0\\n' > {info}/METADATA"
        return [[sys.executable, "-I", "-m", "venv", "--without-pip", str(place)], ["sh", "-c", toybox]]

    monkeypatch.setattr(environments, "_commands", commands)


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


@pytest.fixture
def wheels(tmp_path):
    """A folder with toybox 1.0 and nothing else."""
    info = "toybox-1.0.dist-info"
    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(tmp_path / "wheels" / "toybox-1.0-py3-none-any.whl", "w") as file:
        file.writestr("toybox/__init__.py", "")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: toybox\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "toybox/__init__.py,,\n")
    return tmp_path / "wheels"


def test_one_is_made_of_its_requirements_registered_and_removed(project, tmp_path, wheels, monkeypatch, capfd):
    """By uv, which takes from pip's settings where packages are, and not where they go."""
    (tmp_path / "pip.conf").write_text(f"[global]\nfind-links = {wheels}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))  # the usual one has wheels by their paths
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "UV_PROJECT_ENVIRONMENT", "UV_PYTHON"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert main(["environment", "create", "small"]) == 0
    environment = environments.find("small")
    assert environment.made
    assert Path(environment.python) == project / ".environments" / "small" / "bin" / "python"
    assert interpreters.probe(environment.python, ("toybox",)).modules["toybox"].packages == {"toybox": "1.0"}
    assert "the system has to have: a screwdriver" in capfd.readouterr().out

    assert main(["environment", "create", "small"]) == 0
    assert "is there already, as " in capfd.readouterr().out
    assert main(["environment", "check", "small"]) == 1, "it offers no framework"
    assert "toybox" not in capfd.readouterr().out
    (info,) = (project / ".environments" / "small").glob("lib/*/site-packages/toybox-1.0.dist-info")
    text = (info / "METADATA").read_text()
    (info / "METADATA").write_text(text.replace("Version: 1.0", "Version: 0.9"))
    assert "toybox 0.9: 1.0 is asked for" in "".join(one.says for one in doctor.inspect("small") if one.wrong)
    shutil.rmtree(info)
    assert "toybox is not installed: 1.0" in "".join(one.says for one in doctor.inspect("small") if one.wrong)

    assert main(["environment", "remove", "small"]) == 0
    assert left(project) == []


def test_pip_s_settings_are_given_to_uv_and_variables_stand_above_files(tmp_path, monkeypatch):
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = file:///a\nextra-index-url = file:///b\n    file:///c\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    found = environments._uv_env()
    assert (found["UV_DEFAULT_INDEX"], found["UV_INDEX"]) == ("file:///a", "file:///b file:///c")
    monkeypatch.setenv("PIP_INDEX_URL", "file:///d")
    assert environments._uv_env()["UV_DEFAULT_INDEX"] == "file:///d"


@pytest.mark.parametrize("place", ["pyenv/versions/3.7.17/bin", "uv/cpython-3.7.9-linux/bin"])
def test_a_python_that_uv_refuses_is_made_with_venv_and_pip(place, project, monkeypatch, tmp_path):
    (project / "environments" / "small.txt").write_text("# python: 3.7\ntoybox==1.0\n")
    (tmp_path / place).mkdir(parents=True)
    python = program(tmp_path / place / "python3.7", "")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    place = tmp_path / "place"
    venv, pip = environments._commands(environments.requirements("small"), "new", place, environments._uv_env()["PATH"])
    assert venv == [str(python), "-I", "-m", "venv", str(place)]
    assert pip[:5] == ["new", "-I", "-m", "pip", "install"]


def test_a_python_that_is_not_there_is_named(project, capsys):
    (project / "environments" / "small.txt").write_text("# python: 3.5\ntoybox==1.0\n")
    assert main(["environment", "create", "small"]) == 2
    assert "python3.5, on PATH, of pyenv or uv" in capsys.readouterr().err


def test_an_environment_whose_python_is_gone_or_broken_is_told(project, quickly, capsys):
    environments.create("small")
    python = Path(environments.find("small").python)
    python.unlink()
    assert main(["environment", "check", "small"]) == 2
    assert str(python) in capsys.readouterr().err
    program(python, "echo no Python here >&2; exit 1")
    interpreters.probe.cache_clear()
    assert main(["environment", "check", "small"]) == 2
    assert "it said: no Python here" in capsys.readouterr().err


def test_one_whose_requirements_have_changed_has_to_be_removed_first(quickly, project, capsys):
    environments.create("small")
    text = (project / "environments" / "small.txt").read_text()
    (project / "environments" / "small.txt").write_text(text + "# a comment\n")
    environments.create("small")
    (project / "environments" / "small.txt").write_text(text + "more==1\n")
    with pytest.raises(BenchlibError, match=r"'small' is there already .* benchlib environment remove small"):
        environments.create("small")
    assert main(["environment", "check", "small"]) == 1
    assert "more is not installed: 1 is asked for: benchlib environment remove small" in capsys.readouterr().out


def test_a_package_that_cannot_be_installed_leaves_nothing(project, monkeypatch, capfd):
    for command, said in (
        (["false"], "small ended with exit code 1"),
        ([sys.executable, "-m", "venv", "--without-pip"], "toybox is not installed: 1.0 is asked for"),
        (["mkdir"], "bin/python: cannot be started"),
    ):
        commands = lambda asked, new, place, path, first=command: [[*first, str(place)]]  # noqa: E731
        monkeypatch.setattr(environments, "_commands", commands)
        assert main(["environment", "create", "small"]) == 1
        assert said in capfd.readouterr().err
    assert left(project) == []
    with pytest.raises(BenchlibError, match="'small' is not there: benchlib environment create small makes it"):
        environments.find("small")


def test_an_interrupt_leaves_nothing(project, monkeypatch):
    def interrupted(*ignored):
        Path(project / ".environments" / "small").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(environments, "mismatches", interrupted)
    monkeypatch.setattr(environments, "_commands", lambda *ignored: [])
    with pytest.raises(KeyboardInterrupt):
        environments.create("small")
    assert left(project) == []


def test_what_a_kill_leaves_is_no_environment_and_is_made_anew(project, quickly, tmp_path):
    script = f"""
from pathlib import Path
from benchlib import environments
environments.root = lambda: Path({str(project)!r})
environments._commands = lambda asked, new, place, path: [["mkdir", place], ["sleep", "60"]]
environments.create("small")
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, start_new_session=True) as creating:
        until((project / ".environments" / "small").exists)
        with pytest.raises(BenchlibError, match="another benchlib environment command is at work"):
            environments.create("small")
        os.killpg(creating.pid, signal.SIGKILL)
    assert left(project) == ["small"]
    assert list(environments.names()) == ["default"]
    with pytest.raises(BenchlibError, match="is not there: benchlib environment create small makes it"):
        environments.find("small")
    assert Path(environments.create("small").python).exists()
    assert list(environments.names()) == ["default", "small"]


@pytest.mark.parametrize("python", ["three", "3.11.7"])
def test_a_python_that_is_no_version_is_refused(project, python):
    (project / "environments" / "small.txt").write_text(f"# python: {python}\n")
    with pytest.raises(BenchlibError, match=f"small.txt: # python: {python}: give one version of Python"):
        environments.create("small")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("smal", "did you mean 'small'"),
        ("../small", "an environment's name has up to 40 letters, digits"),
        ("", "give a NAME"),
        ("x" * 41, "an environment's name"),
        ("default", "benchlib runs in"),
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
    assert f"mine: {python}" in lines
    assert any(line.startswith("small: ") and "benchlib environment create small" in line for line in lines)
    assert main(["environment", "remove", "mine"]) == 0
    assert python.exists()
    assert left(project) == []
    assert main(["environment", "remove", "mine"]) == 2
    assert main(["environment", "remove", "default"]) == 2


def test_what_answers_here_is_registered_and_not_what_a_shim_starts_elsewhere(other, tmp_path, monkeypatch, capsys):
    """As pyenv's shims do: by a file in the working directory, or a variable."""
    chooses = f'chosen=$(cat .chosen 2>/dev/null); exec "${{CHOSEN:-${{chosen:-{sys.executable}}}}}" "$@"'
    shim = program(tmp_path / "bin" / "python9", chooses)
    assert environments.add("same", shim).python == str(shim), "a wrapper, which may set variables"
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".chosen").write_text(other.python)
    assert main(["environment", "add", "by-file", "--python", "python9"]) == 0
    assert f"environment by-file: {other.python};" in capsys.readouterr().out
    (tmp_path / ".chosen").unlink()
    monkeypatch.setenv("CHOSEN", other.python)
    for name, python in (("by-file", other.python), ("by-variable", environments.add("by-variable", shim).python)):
        assert environments.find(name).python == other.python == python


def test_where_there_are_no_file_locks_it_is_said(project, quickly, monkeypatch, capsys):
    def without(*arguments):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(environments.fcntl, "flock", without)
    for command in (["create", "small"], ["add", "mine", "--python", sys.executable]):
        assert main(["environment", *command]) == 2
        assert ".environments: cannot be locked (Function" in capsys.readouterr().err
    assert left(project) == []


def test_a_full_disk_is_not_called_one_without_locks(project, monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(BenchlibError, match=r"\.environments: No space left on device: free space there"):
        environments.add("mine", sys.executable)


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
    assert "environment mine: offers no framework" in said.out


def test_a_record_that_is_none_is_told(project, capsys):
    (project / ".environments").mkdir()
    (project / ".environments" / "mine.json").write_text("{")
    with pytest.raises(BenchlibError, match=r"mine.json: is no record of an environment: delete it"):
        environments.find("mine")
    assert list(environments.names()) == ["default"]
    assert main(["environment", "list"]) == 0
    assert "mine.json: is no record" in capsys.readouterr().out


def test_hidden_files_are_no_requirements(project):
    (project / "environments" / "._small.txt").write_bytes(b"\x00\x05\x16\x07")
    assert environments.templates() == ["small"]


def test_the_requirements_that_are_shipped_can_be_read(monkeypatch):
    monkeypatch.setattr(environments, "root", lambda: ROOT)
    names = [path.stem for path in (ROOT / "environments").glob("*.txt")]
    assert {"torch-2.9", "ascend"} <= set(names)
    for name in names:
        asked = environments.requirements(name)
        assert asked.python
        assert all(environments.require_name(one) for one in (name, *asked.versions))
        pins = [line for line in asked.file.read_text().splitlines() if line and not line.startswith("#")]
        assert all("==" in pin for pin in pins), f"{name}: {pins}"


# -- what there is in one


def test_the_default_one_is_checked_by_importing_its_frameworks(capsys, monkeypatch, toy_framework):
    monkeypatch.setattr(availability.frameworks, "names", lambda: ["toy", "nobodys"])
    packages = {"toy": "numpy", "nobodys": "nobodys", "pytorch": "torch"}
    monkeypatch.setattr(availability.frameworks, "package", packages.__getitem__)
    monkeypatch.setattr(availability.frameworks, "file", lambda name, file=availability.frameworks.file: file("toy"))
    assert main(["environment", "check", "default"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"environment default: Python {VERSION}")
    assert f"toy: imported; python {VERSION}." in "\n".join(said)
    assert "toy 1.0" in "\n".join(said)
    assert "toy, cpu: usable" in said
    assert "nobodys: nobodys is not installed" in said


def test_one_that_was_added_is_checked_with_a_worker_of_each_framework(other, capsys, toy_framework, monkeypatch):
    monkeypatch.setattr(doctor, "check", lambda *asked, **choices: [])  # has tests of its own
    packages = next(Path(other.python).parents[1].glob("lib/*/site-packages"))
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").write_text("raise OSError('libgone.so')")
    assert main(["environment", "check", "other"]) == 1
    said = capsys.readouterr().out
    assert "toy: imported" in said
    assert "mindspore: mindspore is not installed" in said
    assert "pytorch: worker failed in 'open': OSError: libgone.so" in said
    assert "pytorch, cpu" not in said


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


def test_the_machine_s_limits_are_measured_in_a_process_of_each_environment(toy_framework, monkeypatch, tmp_path):
    every, groups = [Condition(workload="linear", environment=name) for name in ("default", "other")], []
    monkeypatch.setattr(roofline, "conditions", lambda *asked: every)
    monkeypatch.setattr(roofline, "_steps_per_second", lambda group, *_: groups.append(group) or [])
    roofline.measure("cpu", "fp32", ["default", "other"], tmp_path, 1.0)
    assert groups == [[one] for one in every]


def test_a_group_is_launched_with_the_environment_s_interpreter(other, tmp_path, monkeypatch):
    launched = []
    monkeypatch.setattr(process_group.subprocess, "Popen", lambda command, **_: launched.append(command))
    there = Condition(workload="cnn", environment="other", world_size=2, threads=1)
    process_group.launch(there, tmp_path, {}, None)
    assert launched[0][0] == other.python


def test_a_version_without_a_launcher_of_groups_is_refused(monkeypatch):
    group = Condition(workload="cnn", world_size=2, threads=1)
    availability.require([group])
    monkeypatch.setattr(frameworks, "launcher", lambda name: ("-m", "torch.distributed.launched"))
    with pytest.raises(BenchlibError, match=r"not in this version: environment 'default' has no torch\.distributed\.l"):
        availability.require([group])


def test_a_notebook_is_stale_when_an_environment_it_measures_in_has_changed(other, tmp_path, monkeypatch):
    notebook = Path(__file__).parents[1] / "notebooks" / "batch_size.ipynb"

    def inputs(*conditions):
        item = profile.Planned("batch_size", notebook, SimpleNamespace(parameters={}, every=list(conditions)))
        return staleness.Outputs(tmp_path).inputs(item)["packages"]

    here, there = Condition(workload="cnn"), Condition(workload="cnn", environment="other")
    before, alone = inputs(here, there), inputs(here)
    versions_of = installed.versions
    monkeypatch.setattr(installed, "versions", lambda name, at="default": {**versions_of(name, at), "x": at == "other"})
    assert inputs(here, there) != before != alone


def test_a_measurement_whose_environment_is_gone_is_traced_to_that(toy_framework):
    of = {"kind": "comparison", "group": "g", "file": "f", "repetition": 0, "role": "condition", "seed": 0}
    m = Measurement(**of, condition=toy(environment="small"), started_utc="2026-01-01T00:00:00+00:00")
    assert "environment 'small' is not there" in trace._list_changes(m, Path())[-1]


def test_the_reference_is_of_the_default_environment(toy_framework, monkeypatch):
    there = Condition(workload="cnn", framework="mindspore", mode="graph", environment="other")
    assert str(gate.reference(there)).startswith("cnn pytorch eager fp32")
    assert len({gate.reference(one).key for one in (there, there.but(environment="default"))}) == 1


def test_where_the_default_one_lacks_a_framework_the_reference_says_where_it_is(monkeypatch):
    offers = {"default": [], "b": ["mindspore", "pytorch"], "a": ["mindspore"]}
    monkeypatch.setattr(environments, "names", lambda: iter(["default", "a", "b"]))

    def available(framework, device, environment):
        return None if framework in offers[environment] else "it is not there"

    monkeypatch.setattr(availability, "why_absent", available)
    there = Condition(workload="cnn", environment="b")
    assert gate.reference(there).subject == "mindspore a eager default", "the same for all: of the first that has one"
    offers["default"] = ["mindspore"]
    assert gate.reference(there).subject == "mindspore eager default"
    offers["default"] = []
    offers["a"] = []
    assert gate.reference(there).subject == "pytorch b eager default"


def test_a_lab_refuses_an_environment_that_is_not_there_with_the_command_that_makes_it(tmp_path, toy_framework):
    lab = Lab(outputs=tmp_path / "outputs")
    for name, command in (("small", "create small makes it"), ("torch9", "add torch9 --python PATH")):
        there, refused = toy(environment=name), pytest.raises(BenchlibError, match=f"benchlib environment {command}")
        with refused:
            lab.compare([toy(), there])
        with refused:
            lab.train([there], seeds=[0], epochs=1)
        with refused:
            lab.certify([there])
    assert not (tmp_path / "outputs" / "measurements").exists()


@pytest.mark.slow
def test_one_framework_in_two_environments_is_an_ordinary_comparison(tmp_path, other, toy_framework, monkeypatch):
    block = rounds._block

    def timed(entry, number, position, others):
        """Half as much again in the other environment, and some noise: the machine of the tests may be busy."""
        measured = block(entry, number, position, others)
        share = zlib.crc32(f"{entry.measurement.file} {entry.measurement.role}".encode()) % 100 + number % 2
        step_s = (0.006 if entry.job.condition.environment == "other" else 0.004) * (1 + share / 5000)
        return measured.model_copy(update={"wall_s": measured.steps * step_s, "disturbed": False})

    monkeypatch.setattr(rounds, "_block", timed)
    monkeypatch.setattr(rounds, "WARM_UP_LIMIT_S", 0.05)
    here, there = (toy(environment=name, hyperparameters={"burn_ms": 4.0}) for name in ("default", "other"))
    lab = Lab(outputs=tmp_path / "outputs")
    compared = lab.compare([here, there], precision=0.2, budget_s=60, block_s=0.05, pilot=3)
    assert all(one.same for one in compared.certificates.values())
    assert {one.reference.environment for one in compared.certificates.values()} == {"default"}
    assert compared.ratio(there).estimate == pytest.approx(4 / 6, rel=0.02)
    assert [check.condition for check in lab.check_timers(compared.conditions)] == compared.conditions
    row = compared.ratios().set_index("role").loc["condition"]
    assert (row["environment"], row["verdict"]) == ("other", "slower")
    assert set(knobs.Ledger(compared.measurements).frame["environment"]) == {"default", "other"}
    processes = {m.condition.environment: m for m in compared.measurements}
    assert processes["other"].packages == processes["default"].packages, "numpy's, the same"


def test_a_missing_open_mpi_is_named_with_debians_package(tmp_path, monkeypatch):
    (tmp_path / "libs").mkdir()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace(origin=str(tmp_path / "cntk.py")))
    lacking = Mock(side_effect=OSError("libmpi.so.40: cannot open shared object file"))
    monkeypatch.setattr(ctypes, "CDLL", lacking)
    with pytest.raises(BenchlibError, match="cntk needs Open MPI, Debian's package libopenmpi3: libmpi"):
        importlib.import_module("benchlib.frameworks.cntk")
