"""What a worker is started with: of the parent's variables, home and packages what is declared; and that it is kept."""

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from benchlib import env_vars, environments, interpreters, plugins
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.provenance import fingerprint, installed, knobs
from benchlib.runner import processes, recording, worker_sessions
from benchlib.runner.jobs import INITIAL_SEED, prepare_job
from benchlib.runner.processes import WorkerFailed, WorkerProcess
from benchlib.runner.worker_sessions import Entry

ROOT = Path(__file__).resolve().parents[1]
DOUBLES = ROOT / "tests" / "doubles"
BROKEN = "raise ImportError('this numpy is of another Python')"
TOY = {"workload": "toy", "framework": "toy"}

pytestmark = pytest.mark.usefixtures("toy_framework")


@pytest.fixture
def site_packages(tmp_path, monkeypatch):
    """benchlib installed beside packages of which another interpreter can import none."""
    folder = tmp_path / "site-packages"
    shutil.copytree(fingerprint.PACKAGE, folder / "benchlib", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "numpy").mkdir()
    (folder / "numpy" / "__init__.py").write_text(BROKEN)
    monkeypatch.setattr(plugins, "OWN", folder / "benchlib")
    monkeypatch.setattr(environments, "__file__", str(folder / "benchlib" / "environments.py"))
    return folder


def opened(condition):
    """What a worker of the condition answers first, and its environment as the operating system has it."""
    with WorkerProcess(condition, INITIAL_SEED, patience_s=120) as worker:
        return worker.finish_open(), psutil.Process(worker.pids()[0]).environ(), worker


@pytest.mark.parametrize("group", [{}, {"world_size": 2, "threads": 1}], ids=["alone", "in a group"])
def test_a_worker_of_an_installed_benchlib_gets_none_of_the_packages_beside_it(site_packages, group):
    answer, environment, _ = opened(Condition(**TOY, **group))
    assert answer["versions"] == {"toy": "1.0", "numpy": np.__version__}
    assert str(site_packages) not in environment["PYTHONPATH"].split(":")


@pytest.mark.parametrize("group", [{}, {"world_size": 2, "threads": 1}], ids=["alone", "in a group"])
def test_a_worker_runs_the_sources_whatever_was_compiled_of_them(site_packages, group, stale, tmp_path, monkeypatch):
    own = shutil.copytree(DOUBLES, tmp_path / "own", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv(env_vars.WORKER_PATH, str(own))
    (own / "helper.py").write_text("VERSION = '2.0'\n")
    toy = own / "frameworks" / "toy.py"
    toy.write_text(f"import helper\n{toy.read_text()}".replace('"toy": "1.0"', '"toy": helper.VERSION'))
    for file in (toy, own / "helper.py", site_packages / "benchlib" / "worker" / "service.py"):
        stale(file)
    assert opened(Condition(**TOY, **group))[0]["versions"] == {"toy": "2.0", "numpy": np.__version__}


def test_an_exit_handler_that_hangs_holds_nothing_up(tmp_path, monkeypatch):
    """Some frameworks' own do."""
    own = shutil.copytree(DOUBLES, tmp_path / "own", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv(env_vars.WORKER_PATH, str(own))
    toy = own / "frameworks" / "toy.py"
    toy.write_text(f"import atexit, time\natexit.register(time.sleep, 600)\n{toy.read_text()}")
    with WorkerProcess(Condition(**TOY), INITIAL_SEED) as worker:
        worker.finish_open()
        worker.begin("end")
        assert worker.process.wait(20) == 0


def test_benchlibs_files_are_those_of_the_parent(site_packages, tmp_path):
    """Below a folder of the path: MindSpore finds the name of a module that it rewrites by that."""
    (site_packages / "benchlib" / "frameworks" / "newest.py").write_text("WHERE = __file__")
    environment = processes.environment(Condition(**TOY), tmp_path)
    say = "import benchlib, benchlib.frameworks.newest as n; print(benchlib.__file__, n.WHERE)"
    said = subprocess.run([sys.executable, "-c", say], cwd=tmp_path, env=environment, capture_output=True, text=True)
    files = [Path(file) for file in said.stdout.split()]
    assert all(file.is_relative_to(environment["PYTHONPATH"].partition(os.pathsep)[0]) for file in files), said.stderr
    names = ("__init__.py", "frameworks/newest.py")
    assert [file.resolve() for file in files] == [site_packages / "benchlib" / name for name in names], said.stderr


def test_a_module_on_the_users_pythonpath_stands_in_for_nothing(tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text(BROKEN)
    (tmp_path / "json.py").write_text(BROKEN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer, _, worker = opened(Condition(**TOY))
    assert answer["versions"] == {"toy": "1.0", "numpy": np.__version__}
    assert "PYTHONPATH" in worker.surroundings.left_out


def test_the_versions_are_those_that_a_worker_imports(tmp_path, monkeypatch):
    (tmp_path / "torch-99.dist-info").mkdir()
    (tmp_path / "torch-99.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 99\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    interpreters.probe.cache_clear()
    here = installed.versions("pytorch")
    interpreters.probe.cache_clear()
    assert here["torch"] not in ("99", None)
    assert here["sitecustomize"].startswith("file "), "that of the tests' folder"
    monkeypatch.setenv(env_vars.WORKER_PATH, str(tmp_path))
    assert "sitecustomize" not in installed.versions("pytorch"), "another folder, asked again"


def test_packages_that_the_user_installed_for_himself_are_found_though_home_is_another(tmp_path, monkeypatch):
    version = "python{}.{}".format(*sys.version_info)
    folder = tmp_path / "home" / ".local" / "lib" / version / "site-packages"
    folder.mkdir(parents=True)
    (folder / "framework_of_the_user.py").write_text("import os; print(os.path.expanduser('~'))")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("PYTHONUSERBASE", "PYTHONNOUSERSITE"):
        monkeypatch.delenv(name, raising=False)
    scratch = tmp_path / "scratch"
    environment = processes.environment(Condition(**TOY), scratch)
    command = [sys._base_executable, "-c", "import framework_of_the_user"]  # a virtual environment's has not the user's
    said = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert said.stdout.strip() == str(scratch), said.stderr


def test_a_worker_is_started_with_what_its_measurement_records(tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("XLA_FLAGS", "--xla_of_the_shell")
    monkeypatch.setenv("A_TOKEN", "secret")
    condition = Condition(**TOY, lane="tuned", threads=1)
    job = prepare_job(condition, INITIAL_SEED, tmp_path / "inputs")
    place = {"kind": "comparison", "group": "g", "file": "f", "repetition": 0, "role": "baseline", "seed": 0}
    measurement = recording.begin("rounds", job, **place)
    assert measurement.knobs == {}, "nothing has been set yet"
    entry = Entry(measurement, job)
    try:
        worker_sessions.start([entry], patience_s=120)
        environment = psutil.Process(entry.worker.pids()[0]).environ()
        scratch = str(entry.worker.scratch)
    finally:
        worker_sessions.end([entry])
    assert measurement.ok, measurement.failure
    assert {"MALLOC_TRIM_THRESHOLD_", "OMP_NUM_THREADS", "HOME", env_vars.WORKER_PATH} <= measurement.knobs.keys()
    for name, value in measurement.knobs.items():
        assert environment[name] == value.replace(knobs.SCRATCH, scratch)
    own = env_vars.identity(condition)["counting"][env_vars.WORKER_FILES]
    inherited = {"LD_LIBRARY_PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "", env_vars.WORKER_FILES: own}
    assert measurement.inherited == inherited
    assert "XLA_FLAGS" in measurement.left_out
    assert not {"XLA_FLAGS", "A_TOKEN"} & environment.keys()
    assert "secret" not in measurement.model_dump_json()


def test_the_gates_own_settings_are_in_its_workers_in_the_certificate_and_in_the_ledger(tmp_path, monkeypatch):
    started = []

    def opened(worker, first=WorkerProcess.finish_open):
        answer = first(worker)  # before that it may still be this process's copy, with its variables
        started.append(psutil.Process(worker.pids()[0]).environ()["OMP_WAIT_POLICY"])
        return answer

    monkeypatch.setattr(WorkerProcess, "finish_open", opened)
    condition = Condition(**TOY)
    certificate = Lab(outputs=tmp_path, patience_s=120).certify([condition])[condition.key]
    assert certificate.same, certificate.reason
    assert started == ["passive"]
    assert certificate.knobs == {**knobs.find(condition), "OMP_WAIT_POLICY": "passive"}
    assert certificate.neutralised == {}, "it changes no number"
    row = knobs.Ledger([certificate]).frame.set_index("name").loc["OMP_WAIT_POLICY"]
    assert row["value"] == "passive"
    assert row["reason"].startswith("in the gate only")


def test_what_numbers_depend_on_is_in_their_key_and_nothing_else(tmp_path, monkeypatch):
    for name in (*env_vars.LIBRARIES, *env_vars.DEVICES):
        monkeypatch.delenv(name, raising=False)
    job = prepare_job(Condition(**TOY), INITIAL_SEED, tmp_path)
    before = job.depends_on("rounds")
    for name in ("CUDA_VISIBLE_DEVICES", "XLA_FLAGS", "HOME", "LANG"):
        monkeypatch.setenv(name, str(tmp_path))
    assert job.depends_on("rounds") == before
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert job.depends_on("rounds") != before
    monkeypatch.delenv("LD_LIBRARY_PATH")
    monkeypatch.setenv(env_vars.WORKER_PATH, str(tmp_path))
    assert job.depends_on("rounds")["knobs"] != before["knobs"]


def test_what_workers_import_from_the_users_folders_is_in_the_key(tmp_path, monkeypatch):
    own = tmp_path / "own"
    (own / "part").mkdir(parents=True)
    monkeypatch.setenv(env_vars.WORKER_PATH, str(own))
    seen = [env_vars.identity(Condition(**TOY))]
    texts = [("one.py", "A = 1"), ("part/other.py", "A = 1"), ("notes", ""), ("README", "A"), ("two.pyc", "")]
    for file, text in [*texts, ("one.py", "A = 2"), ("part/other.py", "A = 22")]:
        (own / file).write_text(text)
        os.utime(own / file, (0, 0))  # as where somebody has put its time back
        seen.append(env_vars.identity(Condition(**TOY)))
    changed = [one != other for one, other in pairwise(seen)]
    assert changed == [True, True, False, False, True, True, True]


@pytest.mark.parametrize("file", ["benchlib.zip/benchlib/errors.py", "errors.so"])
def test_an_archive_or_a_compiled_file_in_the_place_of_a_hashed_source_is_refused(file, tmp_path):
    (tmp_path / "benchlib.zip").touch()
    (tmp_path / "errors.so").touch()
    there = {"files": {"benchlib.errors": str(tmp_path / file)}}
    worker = SimpleNamespace(ask=lambda do, beside: there, give_up=WorkerFailed, condition=Condition(**TOY))
    with pytest.raises(WorkerFailed, match="which is another file than"):
        recording.require_hashed(worker, {"benchlib.errors": fingerprint.PACKAGE / "errors.py"})


def test_networks_are_in_the_key_of_a_group_and_selectors_in_that_of_an_xpu(monkeypatch):
    for name in (*env_vars.NETWORK, *env_vars.XPUS):
        monkeypatch.delenv(name, raising=False)
    alone, group = Condition(**TOY), Condition(**TOY, world_size=2, threads=1)
    xpu = Condition(workload="cnn", device="xpu")
    before = [env_vars.identity(one) for one in (alone, group, xpu)]
    for name, changed in (("GLOO_SOCKET_IFNAME", [False, True, False]), ("ZE_AFFINITY_MASK", [False, False, True])):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            now = [env_vars.identity(one) for one in (alone, group, xpu)]
        assert [one != other for one, other in zip(now, before, strict=True)] == changed
        assert env_vars.for_key(group, {name: "1"}).get(name) == ("1" if changed[1] else None)


@pytest.mark.parametrize("group", [{}, {"world_size": 2, "threads": 1}], ids=["alone", "in a group"])
def test_a_worker_that_imports_another_version_than_its_key_says_is_refused(group, monkeypatch):
    here = installed.versions("toy")
    monkeypatch.setattr(installed, "versions", lambda framework, environment="default": {**here, "numpy": "1.0"})
    says = f"imported numpy {np.__version__}, but numpy 1.0 was there .* restart"
    with pytest.raises(BenchlibError, match=says):
        opened(Condition(**TOY, **group))


def test_results_of_an_installed_benchlib_go_to_the_working_directory(site_packages, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Lab(profile="mine").folder == tmp_path / "outputs" / "mine"


def test_results_of_a_checkout_go_to_its_outputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Lab(profile="mine").folder == ROOT / "outputs" / "mine"
