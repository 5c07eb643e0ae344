"""What is there is found without importing a framework; what is not there is told with what to do."""

import dataclasses
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import pytest
from test_environments import program as _script

from benchlib import env_vars, environments, frameworks, interpreters, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.provenance import installed, machine, needs, npu_smi, nvml
from benchlib.runner import availability, interference
from benchlib.runner.jobs import key, prepare_job


@pytest.mark.alone
def test_all_that_is_there_is_found_within_two_seconds():
    script = """
import sys
from pathlib import Path
from benchlib import environments
from benchlib.cli import main
environments.root = lambda: Path("/nowhere")  # what whoever runs this has made is no part of it
code = main(["devices"])
print([name for name in ("torch", "mindspore", "torch_npu", "tensorflow", "jax") if name in sys.modules])
sys.exit(code)
"""
    took = []
    for _ in range(3):  # on a busy machine one of them may take longer for no reason of ours
        started = time.monotonic()
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        took.append(time.monotonic() - started)
    assert min(took) < 2.0, took
    lines = ran.stdout.splitlines()
    assert lines[-1] == "[]", "a framework was imported"
    lines_by_name = dict(line.split(": ", 1) for line in lines[:-1])
    assert lines_by_name["pytorch 2.13.0, cpu"] == lines_by_name["mindspore 2.10.0, cpu"] == "usable"
    assert "torch_npu" in lines_by_name["pytorch 2.13.0, npu"] or "Ascend" in lines_by_name["pytorch 2.13.0, npu"]
    known = {"pytorch": "pytorch 2.13.0", "mindspore": "mindspore 2.10.0"}  # the others have no version here
    offered = {known.get(name, name): frameworks.devices(name) for name in frameworks.names()}
    assert set(lines_by_name) == {f"{name}, {device}" for name, devices in offered.items() for device in devices}
    assert set(offered["pytorch 2.13.0"]) == set(frameworks.every_device())


def test_the_machine_is_described():
    described = machine.describe()
    assert described["cores"] >= 1
    assert described["memory_gib"] > 0.5
    assert described["cpu"]
    assert "gpus" not in machine.identity("cpu"), "a CPU measurement does not depend on the GPU"
    assert "gpus" in machine.identity("cuda")


@pytest.mark.parametrize(
    ("groups", "files", "quota", "throttled_s"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n", "cpu.stat": "usage_usec 7\nthrottled_usec 2500000\n"}, 1.5, 2.5),
        ("0::/\n", {"cpu.max": "max 100000\n", "cpu.stat": "throttled_usec 9\n"}, None, 0),
        ("0::/a/b\n", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "50000 100000"}, 0.5, 0),
        (
            "1:cpu:/a\n",
            {
                "cpu/a/cpu.cfs_quota_us": "25000",
                "cpu/a/cpu.cfs_period_us": "50000",
                "cpu/a/cpu.stat": "nr_throttled 3\nthrottled_time 2500000000\n",
            },
            0.5,
            2.5,
        ),
        ("5:cpuset:/\n0::/elsewhere\n", {"cpuset/cpu.max": "1 1"}, None, 0),
        (None, {}, None, 0),
    ],
)
def test_a_cpu_quota_is_a_part_of_the_machine(control_groups, groups, files, quota, throttled_s):
    told = []
    for there in ((None, {}), (groups, files)):
        control_groups(*there)
        machine.describe.cache_clear()
        told.append(machine.identity("cpu"))
    machine.describe.cache_clear()
    without, limited = told
    assert (without["cpu_quota"], limited["cpu_quota"]) == (None, quota)
    assert (key(machine=limited) == key(machine=without)) == (quota is None), "what was throttled is of another machine"
    assert interference.throttled_s() == pytest.approx(throttled_s)


@pytest.mark.parametrize(
    ("name", "flag", "choices", "said"),
    [
        ("t", os.ST_NOEXEC, {"mode": "graph"}, "mounted noexec"),
        ("t t", 0, {"mode": "graph"}, "has a blank"),
        ("t" * 70, 0, {"world_size": 2, "threads": 1}, "longer than 76 characters"),
        ("t t", os.ST_NOEXEC, {}, None),
        ("t t" * 30, os.ST_NOEXEC, {"framework": "mindspore", "mode": "graph"}, None),
    ],
)
def test_a_folder_for_temporary_files_that_will_not_do_is_refused(monkeypatch, name, flag, choices, said):
    with tempfile.TemporaryDirectory() as short:
        place = Path(short, name)
        place.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        monkeypatch.setattr(os, "statvfs", lambda path: types.SimpleNamespace(f_flag=flag if path == str(place) else 0))
        if said is None:
            availability.require([Condition(workload="cnn", **choices)])
        else:
            _refuses(f"{re.escape(str(place))}' .*{said}.*; set TMPDIR to another folder", **choices)


ASKED = (installed._imported_modules, interpreters.probe)


def _forget():
    """Have interpreters asked again."""
    for cached in ASKED:
        cached.cache_clear()


@pytest.fixture(autouse=True)
def nothing_known():
    _forget()
    yield
    _forget()


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """Registers an interpreter as the environment ``other``, whether it is one or not."""
    monkeypatch.setattr(environments, "root", lambda: tmp_path)

    def register(python):
        with environments.registry_lock():
            environments.register(environments.Environment("other", str(python)))

    return register


def test_an_environment_is_asked_for_what_it_has(registered, tmp_path, monkeypatch):
    registered(_script(tmp_path / "python", f'exec {sys.executable} "$@"'))
    assert availability.why_absent("pytorch", "cpu", "other") is None
    monkeypatch.setattr(npu_smi, "why_missing", lambda: None)
    assert "torch_npu is not installed" in availability.why_absent("pytorch", "npu", "other")
    assert installed.versions("pytorch", "other") == installed.versions("pytorch")


def test_an_environment_without_the_framework_is_told(registered, tmp_path):
    registered(_script(tmp_path / "python", f'exec {sys.executable} -S "$@"'))  # without its packages
    missing = availability.why_absent("pytorch", "cpu", "other")
    assert re.match(r"framework 'pytorch' is not installed in environment 'other': pip --python .* install t", missing)
    _refuses(re.escape(missing), environment="other")
    assert availability.why_absent("pytorch", "cpu") is None, "the default one has it"
    assert availability.survey(["other"]) == [], "and of what is not expected there nothing is told"


def test_an_environment_that_cannot_answer_is_told(registered, tmp_path):
    registered(_script(tmp_path / "python", "echo worn out >&2; exit 3"))
    missing = availability.why_absent("pytorch", "cpu", "other")
    assert re.match(r".*python: could not tell which packages it has; it said: worn out", missing)
    assert availability.survey(["other"]) == []


def _refuses(match, **chosen):
    with pytest.raises(BenchlibError, match=match):
        availability.require([Condition(workload="cnn", **chosen)])


def _devices(monkeypatch, *names):
    """The machine has these files under /dev, as far as the module that looks for them sees."""
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter([self / name for name in names]))


def test_what_the_machine_lacks_is_told_before_what_the_framework_lacks(monkeypatch):
    monkeypatch.setattr(nvml, "gpus", tuple)
    _refuses(r"device 'cuda': the NVIDIA driver shows no GPU", device="cuda")
    for framework in ("pytorch", "mindspore"):
        _refuses(r"device 'npu': no Ascend device .* environments/ascend.txt", framework=framework, device="npu")
    _devices(monkeypatch, "davinci0")
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    for framework in ("pytorch", "mindspore"):
        _refuses(r"device 'npu': libhccl.so of CANN is not .* source its set_env.sh", framework=framework, device="npu")


@pytest.fixture
def every_device(monkeypatch):
    """The machine has one of each."""
    monkeypatch.setattr(nvml, "gpus", lambda: ({"name": "a GPU"},))
    monkeypatch.setattr(npu_smi, "why_missing", lambda: None)


@pytest.fixture
def torch_of(every_device, tmp_path, monkeypatch):
    """Has torch say, in its version file, what it was built for."""
    module = dataclasses.replace(installed.module("default", "torch"), place=str(tmp_path / "torch" / "__init__.py"))
    monkeypatch.setattr(installed, "module", lambda environment, name: module)
    (tmp_path / "torch").mkdir()
    return (tmp_path / "torch" / "version.py").write_text


def test_what_torch_was_built_for_is_read_from_its_version_file(torch_of):
    refused = {
        "cuda": r"device 'cuda': the installed torch is a CPU build; install one for CUDA",
        "xpu": r"device 'xpu': the installed torch is no build for Intel GPUs",
    }
    for half_installed_or_built_for_none in (False, True):
        if half_installed_or_built_for_none:
            torch_of("cuda: Optional[str] = None\nhip = None\nxpu: Optional[str] = None\nnot_cuda = '12'\n")
        for device, sentence in refused.items():
            _refuses(sentence, device=device)
    torch_of("cuda: Optional[str] = '13.0'\nxpu = '20250101'\n")
    availability.require([Condition(workload="cnn", device=device) for device in refused])


def test_a_plug_in_that_is_not_installed_is_told(every_device):
    _refuses(r"device 'npu': torch_npu is not installed; environments/ascend.txt says how", device="npu")
    availability.require([Condition(workload="cnn", framework="mindspore", device="npu")])


def test_what_mindspore_s_plugin_for_gpus_lacks_is_asked_of_the_linker(every_device, tmp_path, monkeypatch):
    plugins = tmp_path / "lib" / "plugin"
    module = dataclasses.replace(installed.module("default", "mindspore"), place=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(installed, "module", lambda environment, name: module)
    lacking = {"11.1": "\tlibcudart.so.11.0 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x0)\n"}

    def ldd(command, **_):
        stdout = lacking.get(command[1][-4:], "\tlibc.so.6 => /lib/libc.so.6 (0x0)\n")
        return types.SimpleNamespace(stdout=stdout)

    monkeypatch.setattr(needs.subprocess, "run", ldd)

    def missing():
        needs._unlinked_libraries.cache_clear()
        return availability.why_absent("mindspore", "cuda")

    assert "lacks libmindspore_gpu.so* itself, which this build comes without: put CUDA 11" in missing()
    plugins.mkdir(parents=True)
    for version in ("10.1", "11.1", "11.6"):
        (plugins / f"libmindspore_gpu.so.{version}").touch()
    assert missing() is None, "one plugin that finds all is enough"
    lacking["11.6"] = lacking["10.1"] = "\tlibcudart.so.11.0 => not found\n\tlibcudnn.so.8 => not found\n"
    of_the_least = "device 'cuda': mindspore's plugin for GPUs lacks libcudart.so.11.0: put CUDA 11 and cuDNN 8 on LD_"
    assert missing().startswith(of_the_least), "of the plugin that lacks least"
    needs._unlinked_libraries.cache_clear()


def test_the_version_of_cann_is_a_part_of_what_an_npu_s_number_depends_on(monkeypatch, tmp_path):
    (tmp_path / "version.cfg").write_text("# version: 1.0\nruntime_running_version=[8.0.0.alpha:8.0.RC1]\n")
    monkeypatch.setenv("ASCEND_TOOLKIT_HOME", str(tmp_path))
    machine.describe.cache_clear()
    assert machine.identity("npu")["cann"] == "8.0.0.alpha"
    assert "cann" not in machine.identity("cpu")
    machine.describe.cache_clear()


def _distribution(site, name, version, files, requires=()):
    """A distribution as pip leaves it in a folder of packages."""
    for file in files:
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text("")
    metadata = site / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    needed = "".join(f"Requires-Dist: {one}\n" for one in requires)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in files))


@pytest.fixture
def flow(registered, tmp_path, monkeypatch):
    """A framework of that name, in an environment of its own; its folder of packages."""
    (tmp_path / "frameworks").mkdir()
    (tmp_path / "frameworks" / "flow.py").write_text(
        "import keras, tensorflow\nimport numpy as np\nfrom tensorflow.core import x\n"
        'PACKAGE = "tensorflow"\nDEVICES = ("cpu",)\n'
    )
    monkeypatch.setattr(frameworks, "__path__", [*frameworks.__path__, str(tmp_path / "frameworks")])

    site = tmp_path / "site"
    needs = ["numpy>=1.26", "tensorflow-intel==2.21.0; platform_system == 'Windows'", 'linter; extra == "testing"']
    needs += ["nvidia_cudnn.cu12<10,>=9; extra == 'and-cuda'", "keras[fast-math]>=3"]
    _distribution(site, "tensorflow-cpu", "2.21.0", ["tensorflow/__init__.py"], needs)
    needs = ["h5py", 'quick-sum; extra == "fast_math" and python_version > "3"']
    _distribution(site, "keras", "3.15.1", ["keras/__init__.py"], needs)
    others = {"numpy": "2.0.0", "nvidia-cudnn-cu12": "9.1", "linter": "1.0", "Quick.Sum": "0.5", "pastime": "1.0"}
    for name, version in others.items():
        _distribution(site, name, version, [f"{name}/__init__.py"])
    _distribution(site, "h5py", "3.11", ["h5py/__init__.py"], ['linter; extra == "dev"'])
    python = _script(tmp_path / "python", f'PYTHONPATH={site} exec {sys.executable} -S "$@"')
    registered(python)
    return site


def test_versions_are_those_of_the_distribution_whatever_it_is_called(flow):
    numbers = installed.versions("flow", "other")
    named = {"tensorflow-cpu": "2.21.0", "keras": "3.15.1", "numpy": "2.0.0"}
    assert {name: numbers[name] for name in numbers if name not in ("python", "glibc")} == named
    assert list(numbers)[:2] == ["python", "tensorflow-cpu"]
    assert {row["version"] for row in availability.survey(["other"]) if row["framework"] == "flow"} == {"2.21.0"}
    assert availability.why_absent("flow", "cpu", "other") is None


def test_a_file_that_stands_before_what_was_installed_has_no_version_but_a_hash(flow, tmp_path, monkeypatch):
    own = tmp_path / "own"
    own.mkdir()
    (own / "keras.py").write_text("A = 1")
    monkeypatch.setenv(env_vars.WORKER_PATH, str(own))
    python = _script(tmp_path / "python", f'PYTHONPATH={own}:{flow} exec {sys.executable} -S "$@"')
    assert environments.find("other").python == str(python)
    first = installed.versions("flow", "other")
    assert first["tensorflow-cpu"] == "2.21.0"
    assert re.fullmatch("file [0-9a-f]{16}", first["keras"])
    assert installed.packages("flow", None, "other")["keras"] == first["keras"]
    (own / "keras.py").write_text("A = 2")
    _forget()
    assert installed.versions("flow", "other")["keras"] not in (first["keras"], "3.15.1")


def test_a_module_that_was_installed_to_be_edited_has_its_version(flow, tmp_path):
    source = tmp_path / "my source"
    shutil.move(flow / "keras", source / "keras")
    (flow / "keras-3.15.1.dist-info" / "RECORD").write_text("__editable__.keras.pth,,\n")
    url = {"url": source.as_uri(), "dir_info": {"editable": True}}
    (flow / "keras-3.15.1.dist-info" / "direct_url.json").write_text(json.dumps(url))
    _script(tmp_path / "python", f'PYTHONPATH={flow}:"{source}" exec {sys.executable} -S "$@"')
    assert installed.versions("flow", "other")["keras"] == "3.15.1"


def test_the_compiler_of_kernels_counts_where_a_worker_uses_it(tmp_path, monkeypatch):
    compiled = Condition(workload="linear", mode="graph")
    _script(tmp_path / "g++", "echo 'g++ 99.1'; echo Copyright")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert installed.compiler(compiled) == {"c++": "g++ 99.1"}
    job = prepare_job(compiled, 0, tmp_path)
    before = key(**job.depends_on("rounds"))
    _script(tmp_path / "g++", "echo 'g++ 99.2 of another day'")
    assert key(**job.depends_on("rounds")) != before
    monkeypatch.setenv("CXX", str(_script(tmp_path / "clang++", "echo clang")))
    assert installed.compiler(compiled) == {"c++": "clang"}
    others = ({"mode": "eager"}, {"framework": "mindspore"}, {"device": "cuda"})
    assert [installed.compiler(compiled.but(**one)) for one in others] == [{}, {}, {}]


def test_versions_are_compared_as_versions(monkeypatch):
    known = {"torch": "2.13.0+cpu", "numpy": "file 0123", "flow": "2.6.0a0+ec.nv25.1"}
    monkeypatch.setattr(installed, "versions", lambda framework, environment: known)
    for same in ({"torch": "2.13.0"}, {"numpy": "1.0"}, {"onednn": "3"}, {"flow": "2.6.0-a0+ec.nv25.01"}):
        installed.require_versions("pytorch", "default", same)
    for other in ("2.13.1+cpu", "2.13.0+cu126", "2.13"):
        with pytest.raises(BenchlibError, match="restart the notebook's kernel"):
            installed.require_versions("pytorch", "default", {"torch": other})


def test_all_that_a_framework_needs_counts(flow):
    packages = installed.packages("flow", None, "other")
    assert packages == {
        "tensorflow-cpu": "2.21.0",
        "keras": "3.15.1",
        "numpy": "2.0.0",
        "h5py": "3.11",  # that keras needs
        "nvidia-cudnn-cu12": "9.1",  # an extra of the framework's own that is there
        "Quick.Sum": "0.5",  # an extra that is asked for
    }, "and not what nobody needs, nor what those need who work on h5py"
    used = {name: installed.packages(name) for name in ("pytorch", "mindspore")}
    assert {"torch", "sympy", "numpy", "typing_extensions"} <= set(used["pytorch"])
    assert {"mindspore", "protobuf", "scipy", "numpy"} <= set(used["mindspore"])
    assert not {"jupyterlab", "pytest"} & {*used["pytorch"], *used["mindspore"]}


def test_two_builds_of_one_version_are_told_apart(flow):
    record = flow / "keras-3.15.1.dist-info" / "RECORD"
    seen = []
    for built in ("sha256=one", "sha256=another"):
        for installer in ("pip", "uv"):
            record.write_text(
                f"keras/__init__.py,{built},9\nkeras/__pycache__/__init__.pyc,,\n../../../bin/keras,sha256={installer},2\n"
                f"keras-3.15.1.dist-info/INSTALLER,sha256={installer},4\n"
            )
            _forget()
            seen.append(installed.packages("flow", None, "other")["files of keras"])
    assert seen[0] == seen[1] != seen[2] == seen[3]
    assert installed.packages("flow", None, "other")["keras"] == "3.15.1"


def test_what_a_workload_s_file_imports_counts_too(tmp_path, monkeypatch):
    folder = tmp_path / "workloads" / "needy"
    folder.mkdir(parents=True)
    (folder / "workload.py").write_text("import numpy\n")
    (folder / "pytorch.py").write_text("import torch\n\ndef build():\n    import sklearn.tree\n")
    monkeypatch.setattr(workloads, "__path__", [*workloads.__path__, str(tmp_path / "workloads")])
    more = set(installed.packages("pytorch", "needy")) - set(installed.packages("pytorch"))
    assert {"scikit-learn", "joblib"} <= more


@pytest.mark.parametrize("file", ["__init__.py", "README"])
def test_a_folder_in_the_working_directory_is_no_framework(tmp_path, monkeypatch, file):
    (tmp_path / "frameworks").mkdir()
    (tmp_path / "frameworks" / "toys.py").write_text('import nobodys\nPACKAGE = "nobodys"\nDEVICES = ("cpu",)\n')
    monkeypatch.setattr(frameworks, "__path__", [*frameworks.__path__, str(tmp_path / "frameworks")])
    for name in ("nobodys", "torch_npu"):
        (tmp_path / "here" / name).mkdir(parents=True)
        (tmp_path / "here" / name / file).write_text("")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "here"))
    assert importlib.util.find_spec("nobodys"), "this process would find it"
    assert not installed.offers("default", "toys")
    assert "'toys' is not installed" in availability.why_absent("toys", "cpu")
    monkeypatch.setattr(npu_smi, "why_missing", lambda: None)
    assert "torch_npu is not installed" in availability.why_absent("pytorch", "npu")


# -- a framework whose file declares what it needs


def _needing(tmp_path, *needs):
    """The framework ``flow``, whose file now says that it has a path to GPUs, and what it needs for it."""
    (tmp_path / "frameworks" / "flow.py").write_text(
        f'import tensorflow\nPACKAGE = "tensorflow"\nDISTRIBUTIONS = ("tensorflow", "tensorflow-cpu")\n'
        f'DEVICES = ("cpu", "cuda")\nNEEDS = {needs!r}\n'
    )
    return availability.why_absent("flow", "cuda", "other")


BUILD = {"device": "cuda", "distributions": ("tensorflow", "tf-*"), "otherwise": "this is {lacking}'s CPU build"}
PLUG_IN = {"device": "cuda", "modules": ("flow_cuda13", "flow_cuda12"), "otherwise": "no {lacking}: pip install it"}


@pytest.mark.parametrize(("renamed", "lacks"), [("tensorflow", False), ("tf-nightly", False), ("tensorflow-cpu", True)])
def test_the_distribution_tells_what_it_was_built_for(flow, tmp_path, every_device, renamed, lacks):
    shutil.rmtree(flow / "tensorflow_cpu-2.21.0.dist-info")
    _distribution(flow, renamed, "2.21.0", ["tensorflow/__init__.py"])
    assert _needing(tmp_path, BUILD) == ("device 'cuda': this is tensorflow or tf-*'s CPU build" if lacks else None)
    assert availability.why_absent("flow", "cpu", "other") is None, "that is asked for no other device"


def test_one_of_several_plug_ins_is_enough(flow, tmp_path, every_device):
    assert _needing(tmp_path, PLUG_IN) == "device 'cuda': no flow_cuda13 or flow_cuda12: pip install it"
    _distribution(flow, "flow-cuda12", "1.0", ["flow_cuda12/__init__.py"])
    interpreters.probe.cache_clear()
    assert _needing(tmp_path, PLUG_IN) is None
    assert _needing(tmp_path, PLUG_IN, BUILD) == "device 'cuda': this is tensorflow or tf-*'s CPU build", "each counts"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"module": ("x",)}, r"Need: unknown key 'module': did you mean 'modules'\?"),
        ({"modules": "flow_cuda13"}, r"Need: modules: 'flow_cuda13': Input should be a valid tuple"),
        ({"device": "gpu"}, r"unknown device 'gpu': .*\(there are: cpu, cuda\)"),
        ({"text": ("version.py", "(")}, r"missing \), unterminated subpattern"),
    ],
)
def test_a_need_that_is_none_is_refused_with_its_file_on_any_machine(flow, tmp_path, monkeypatch, change, sentence):
    monkeypatch.setattr(nvml, "gpus", tuple)
    with pytest.raises(BenchlibError, match=rf"^{tmp_path}/frameworks/flow.py: NEEDS: {sentence}"):
        _needing(tmp_path, {**PLUG_IN, **change})
    with pytest.raises(BenchlibError, match="NEEDS"):  # and not "cannot be used": the reference would be another's
        availability.why_absent("flow", "cpu", "other")
