"""Parameter files as text: what YAML would read otherwise than it was written is refused, and nothing takes long."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import pytest

from benchlib.errors import BenchlibError
from benchlib.suite.experiments import parameter_file

ROOT = Path(__file__).resolve().parents[1]
BOMB = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)


def read(text: str, folder: Path) -> dict:
    path = folder / "batch_size.yaml"
    path.write_text(text, encoding="utf-8")
    return parameter_file.read(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("epochs: 010", "epochs: line 1: 010 is 8 in YAML 1.1: write 8, or the decimal number that is meant"),
        ("x: 1\nepochs: 1:30", "epochs: line 2: 1:30 is 90 in YAML 1.1: write 90"),
        ("batch_sizes: [4, 0x10]", "batch_sizes.1: line 1: 0x10 is 16 in YAML 1.1: write 16"),
        ("epochs: 1_000", "1_000 is 1000 in YAML 1.1: write 1000"),
        ("epochs: 0b11", "0b11 is 3 in YAML 1.1: write 3"),
        ("epochs: 0o17", "0o17 is 15 in YAML 1.2 and text in YAML 1.1: write 15"),
        ("precision: 0.0_3", "0.0_3 is 0.03 in YAML 1.1: write 0.03"),
        ("default_lane: yes", "default_lane: line 1: yes is True in YAML 1.1: write true, or put it in quotes"),
        ("data: off", "data: line 1: off is False in YAML 1.1: write false, or put it in quotes"),
        ("on: 1", "on: line 1: on is True in YAML 1.1"),
        ("data: 2024-01-01", "data: line 1: 2024-01-01 is a date in YAML 1.1: put it in quotes if it is text"),
        ("data: 2024-13-41", "2024-13-41 is a date in YAML 1.1"),
        ("epochs: !!int '010'", "epochs: line 1: 'tag:yaml.org,2002:int' is a tag"),
        ("epochs: 1\nseeds: [0]\nepochs: 2", "line 3: the key 'epochs' is there twice: take one of them out"),
        ("hyperparameters: {hidden: 1, hidden: 2}", "hyperparameters: line 1: the key 'hidden' is there twice"),
        ("epochs: " + "1" * 5000, "epochs: line 1: a number of 5,000 characters, beginning with 1111"),
        ("rate: " + "1" * 5000 + ".5", "rate: line 1: a number of 5,002 characters"),
        ("epochs: 1" + "_1" * 3000, "epochs: line 1: a number of 6,001 characters"),
        ("seeds: " + "[" * 800 + "]" * 800, "seeds.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0: line 1: more than 20 lists"),
        ("seeds: [" + "1, " * 20_000 + "]", "line 1: more than 5,000 values"),
        ("seeds: &x [*x]", "seeds.0: line 1: *x is a part of itself"),
        (BOMB, "a3.4: line 4: more than 5,000 values, with those that aliases repeat"),
        ("data: " + "x" * 70_000, "is larger than 64 KiB"),
        ("data: *nobody", "is not YAML: found undefined alias"),
        ("data: \x01", "is not YAML"),
    ],
    ids=lambda value: value[:20],
)
def test_what_would_be_read_otherwise_or_for_long_is_refused_at_once(text: str, told: str, tmp_path: Path) -> None:
    started = time.process_time()
    with pytest.raises(BenchlibError) as refused:
        read(text, tmp_path)
    assert time.process_time() - started < 5  # tenths of a second; the bomb took a minute when it was validated
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / 'batch_size.yaml'}: ")
    assert told in message
    assert len(message) < 600


def test_values_are_read_as_they_are_written(tmp_path: Path) -> None:
    text = """
        whole: [0, -3, +5, 4000]
        fractions: [0.5, .5, 1., 1.0e-3, -2.5, .inf]
        texts: [1e-3, "010", 'yes', cpu, forward+backward, 08]
        others: [true, False, null, ~]
        nothing:
        first: &first {framework: pytorch, mode: eager}
        second: {<<: *first, mode: graph}
        both: [*first, *first]
    """
    values = read(text, tmp_path)
    assert values["whole"] == [0, -3, 5, 4000]
    assert values["fractions"] == [0.5, 0.5, 1.0, 0.001, -2.5, float("inf")]
    assert values["texts"] == ["1e-3", "010", "yes", "cpu", "forward+backward", "08"]
    assert values["others"] == [True, False, None, None]
    assert values["nothing"] is None
    assert values["second"] == {"framework": "pytorch", "mode": "graph"}
    assert values["both"] == [values["first"]] * 2


def test_damaged_files_are_refused_by_name_or_can_be_measured() -> None:
    """A short form of benchmarks/fuzz_parameters.py."""
    spec = importlib.util.spec_from_file_location("fuzz_parameters", ROOT / "benchmarks" / "fuzz_parameters.py")
    sys.modules["fuzz_parameters"] = fuzz_parameters = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz_parameters)
    count = fuzz_parameters.run(150)
    assert count["refused"] > 100
    assert count["accepted"] > 5, "and not everything is refused"
