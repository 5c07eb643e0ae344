"""Parameter files as text: what YAML would read otherwise than it was written is refused, and nothing takes long."""

import importlib.util
import sys
import time
from pathlib import Path

import pytest

from benchlib import parameter_types
from benchlib.errors import BenchlibError

ROOT = Path(__file__).resolve().parents[1]


def read(text: str, folder: Path) -> dict:
    (folder / "batch_size.yaml").write_text(text, encoding="utf-8")
    return parameter_types.read(folder / "batch_size.yaml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("epochs: !!int '010'", "write it out: no alias, no tag"),
        ("seeds: &x [*x]", "no alias"),
        ("epochs: 1\nseeds: [0]\nepochs: 2", "the key 'epochs' is there twice"),
        ("hyperparameters: {hidden: 1, hidden: 2}", "the key 'hidden' is there twice"),
        ("epochs: " + "1" * 5000, "is not YAML"),
        ("seeds: " + "[" * 20_000 + "]" * 20_000, "is not YAML"),
        ("data: " + "x" * 100_000, "is larger than 100 kB"),
        ("data: \x01", "is not YAML"),
    ],
    ids=lambda value: value[:20],
)
def test_what_would_be_read_otherwise_or_for_long_is_refused_at_once(text: str, told: str, tmp_path: Path) -> None:
    started = time.process_time()
    with pytest.raises(BenchlibError, match=told) as refused:
        read(text, tmp_path)
    assert time.process_time() - started < 5  # tenths of a second; the bomb took a minute when it was validated
    assert str(refused.value).startswith(f"{tmp_path / 'batch_size.yaml'}: ")
    assert len(str(refused.value)) < 600


def test_values_are_read_as_they_are_written(tmp_path: Path) -> None:
    text = """
        numbers: [0, -3, +5, 4000, 0.5, .5, 1., 1.0e-3, 1e-3, -2E5]
        texts: ["010", 'yes', cpu, forward+backward, 08, 010, 1:30, 0x10, 1_000, yes, off, 2024-01-01]
        others: [true, false, null, ~]
        nothing:
    """
    words = ["010", "yes", "cpu", "forward+backward", "08", "010", "1:30", "0x10", "1_000", "yes", "off", "2024-01-01"]
    assert read(text, tmp_path) == {
        "numbers": [0, -3, 5, 4000, 0.5, 0.5, 1.0, 0.001, 0.001, -2e5],
        "texts": words,  # which a parameter that is a number or a boolean refuses
        "others": [True, False, None, None],
        "nothing": None,
    }


@pytest.mark.slow
def test_damaged_files_are_refused_by_name_or_can_be_measured() -> None:
    """A short form of benchmarks/fuzz_parameters.py."""
    spec = importlib.util.spec_from_file_location("fuzz_parameters", ROOT / "benchmarks" / "fuzz_parameters.py")
    sys.modules["fuzz_parameters"] = fuzz_parameters = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz_parameters)
    count = fuzz_parameters.run(250)
    assert count["refused"] > 100
    assert count["accepted"] > 5, "and not everything is refused"
