"""What is there is found without importing a framework; what is not there is told with what to do."""

import json
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from benchlib import frameworks, workloads
from benchlib.condition import DEVICES, Condition
from benchlib.errors import BenchlibError
from benchlib.measure import machine


def test_devices_and_versions_are_found_without_importing_a_framework():
    script = """
import json, sys
from benchlib.lab import Lab
from benchlib.measure import machine
found = {"devices": machine.devices(), "torch": machine.versions("pytorch"), "mindspore": machine.versions("mindspore")}
found["imported"] = [name for name in ("torch", "mindspore", "tensorflow", "jax") if name in sys.modules]
print(json.dumps(found))
"""
    found = json.loads(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    )
    assert found["devices"][0] == "cpu"
    assert found["torch"]["torch"].startswith("2.13.0")
    assert found["mindspore"]["mindspore"] == "2.10.0"
    assert found["imported"] == []


def test_all_that_is_there_is_found_within_two_seconds():
    script = """
import sys
from benchlib.__main__ import main
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
    found = dict(line.split(": ", 1) for line in lines[:-1])
    assert found["pytorch 2.13.0, cpu"] == found["mindspore 2.10.0, cpu"] == "usable"
    assert "torch_npu" in found["pytorch 2.13.0, npu"] or "Ascend" in found["pytorch 2.13.0, npu"]
    offered = {name: frameworks.devices(name.split()[0]) for name in ("pytorch 2.13.0", "mindspore 2.10.0")}
    assert set(found) == {f"{name}, {device}" for name, devices in offered.items() for device in devices}
    assert set(offered["pytorch 2.13.0"]) == set(DEVICES)


def test_the_machine_is_described():
    told = machine.describe()
    assert told["cores"] >= 1
    assert told["memory_gib"] > 0.5
    assert told["cpu"]
    assert "gpus" not in machine.identity("cpu"), "a CPU measurement does not depend on the GPU"
    assert "gpus" in machine.identity("cuda")


def test_a_framework_that_is_not_there_is_told_with_what_to_install(monkeypatch):
    monkeypatch.setattr(machine, "interpreter", lambda framework: None)
    with pytest.raises(
        BenchlibError,
        match=r"framework 'mindspore' is not installed: pip install mindspore .* --name benchlib-mindspore",
    ):
        machine.require([Condition(workload="cnn", framework="mindspore")])


@pytest.fixture
def kernelspec(tmp_path, monkeypatch):
    """Registers an interpreter as the kernelspec ``benchlib-pytorch``."""

    def register(python):
        folder = tmp_path / "kernels" / "benchlib-pytorch"
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(
            json.dumps({"argv": [str(python)], "display_name": "x", "language": "python"})
        )
        monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
        machine.interpreter.cache_clear()

    yield register
    machine.interpreter.cache_clear()


def test_a_framework_runs_in_the_environment_that_was_registered_for_it(kernelspec, tmp_path):
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    kernelspec(python)
    assert machine.interpreter("pytorch") == str(python)
    assert machine.interpreter("mindspore") == sys.executable
    assert machine.available("pytorch", "cpu") is None


def test_a_registered_environment_that_is_gone_is_told(kernelspec, tmp_path):
    kernelspec(tmp_path / "gone")
    with pytest.raises(BenchlibError, match=r"kernelspec 'benchlib-pytorch' starts .*gone, which is not there"):
        machine.require([Condition(workload="cnn")])


def test_a_device_that_is_not_there_is_told_with_what_to_do(monkeypatch):
    monkeypatch.setattr(machine, "gpus", tuple)
    with pytest.raises(BenchlibError, match=r"device 'cuda': the NVIDIA driver shows no GPU"):
        machine.require([Condition(workload="cnn", device="cuda")])
    monkeypatch.setattr(machine, "gpus", lambda: ({"name": "a GPU"},))
    monkeypatch.setattr(machine, "_torch_built_for", lambda device: False)
    with pytest.raises(BenchlibError, match=r"device 'cuda': the installed torch is a CPU build; install one for CUDA"):
        machine.require([Condition(workload="cnn", device="cuda")])
    with pytest.raises(BenchlibError, match=r"device 'xpu': the installed torch is no build for Intel GPUs"):
        machine.require([Condition(workload="cnn", device="xpu")])
    monkeypatch.setattr(machine, "_has", lambda package: package == "torch_npu")
    monkeypatch.setattr(machine, "_has_cann", lambda: False)
    with pytest.raises(
        BenchlibError, match=r"device 'npu': torch_npu needs CANN, .*libhccl.so.* source CANN's set_env.sh"
    ):
        machine.require([Condition(workload="cnn", device="npu")])
    with pytest.raises(BenchlibError, match=r"device 'npu': no Ascend device .* environments/ascend.txt"):
        machine.require([Condition(workload="cnn", framework="mindspore", device="npu")])
    monkeypatch.setattr(machine, "_mindspore_gpu_lacks", lambda: "libcudnn.so.8")
    with pytest.raises(BenchlibError, match=r"mindspore's plugin for GPUs lacks libcudnn.so.8: put CUDA 11 and cuDNN"):
        machine.require([Condition(workload="cnn", framework="mindspore", device="cuda")])


def test_what_mindspore_s_plugin_for_gpus_lacks_is_asked_of_the_linker(monkeypatch):
    told = {"11.1": "\tlibcudart.so.11.0 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x0)\n"}

    def ldd(command, **_):
        return types.SimpleNamespace(stdout=told.get(command[1][-4:], "\tlibc.so.6 => /lib/libc.so.6 (0x0)\n"))

    monkeypatch.setattr(machine.subprocess, "run", ldd)
    machine._mindspore_gpu_lacks.cache_clear()
    assert machine._mindspore_gpu_lacks() == "", "one plugin that finds all is enough"
    told["11.6"] = "\tlibcudart.so.11.0 => not found\n\tlibcudnn.so.8 => not found\n"
    machine._mindspore_gpu_lacks.cache_clear()
    assert machine._mindspore_gpu_lacks() == "libcudart.so.11.0", "of the plugin that lacks least"
    machine._mindspore_gpu_lacks.cache_clear()


def test_mindspore_without_cann_is_not_usable_where_there_is_an_npu(monkeypatch):
    monkeypatch.setattr(machine, "_has_cann", lambda: False)
    monkeypatch.setattr(machine.Path, "glob", lambda self, pattern: iter([Path("/dev/davinci0")]))
    assert "mindspore needs CANN" in machine.available("mindspore", "npu")


def test_the_version_of_cann_is_a_part_of_what_an_npu_s_number_depends_on(monkeypatch, tmp_path):
    (tmp_path / "version.cfg").write_text("# version: 1.0\nruntime_running_version=[8.0.0.alpha:8.0.RC1]\n")
    monkeypatch.setenv("ASCEND_TOOLKIT_HOME", str(tmp_path))
    machine.describe.cache_clear()
    assert machine.identity("npu")["cann"] == "8.0.0.alpha"
    assert "cann" not in machine.identity("cpu")
    machine.describe.cache_clear()


def test_a_number_depends_on_the_code_that_made_it(tmp_path, monkeypatch):
    condition = Condition(workload="cnn")
    before = machine.code(condition, "rounds")
    assert before == machine.code(condition.but(batch_size=8), "rounds")
    assert before != machine.code(condition.but(framework="mindspore"), "rounds")
    assert before != machine.code(condition, "epochs")
    changed = tmp_path / "pytorch.py"
    changed.write_bytes(frameworks.file("pytorch").read_bytes() + b"\n# slower\n")
    monkeypatch.setattr(frameworks, "file", lambda name: changed)
    assert machine.code(condition, "rounds") != before


def test_a_model_that_is_another_workload_s_depends_on_its_file():
    inference, training = Condition(workload="resnet50_inference"), Condition(workload="resnet50")
    resnet50 = workloads.folder("resnet50") / "pytorch.py"
    assert resnet50 in machine.code_files(inference, "rounds")
    assert resnet50.with_name("workload.py") in machine.code_files(inference, "rounds")
    assert machine.code_files(training, "rounds").count(resnet50) == 1
    translations = machine.PACKAGE / "data" / "translations.py"
    assert translations in machine.code_files(Condition(workload="seq2seq"), "epochs"), "BLEU is of its sentences"
    assert translations not in machine.code_files(Condition(workload="seq2seq"), "rounds")
