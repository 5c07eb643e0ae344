"""Is every parameter file that is wrong refused, quickly and by name, and can every other one be measured?

    .venv/bin/python benchmarks/fuzz_parameters.py [--cases 2000]

Each case is a shipped parameter file with something changed: values replaced by hostile ones, keys removed, added or
renamed, lists emptied or repeated, or its text damaged. Each has to be refused with an error that names file and key,
within 2 seconds of processor time, or to be accepted; then it has to give a plan that can be carried out. Nothing is
measured. The cases are the same every time; the first that goes wrong is made as small as can be, and shown.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchlib.errors import BenchlibError
from benchlib.notebooks import schema
from benchlib.parameter_types import DEFAULTS, defaults, read
from benchlib.suite import profile
from benchlib.validation import Strict

FOLDER = Path(__file__).resolve().parents[1] / "parameters"
SHIPPED = sorted(
    path
    for name in ("quick", "full", "subset", "features")
    for path in (FOLDER / name).glob("*")
    if path.name != DEFAULTS
)
MOST_SECONDS = 2.0
LONGEST_LINE = 1000  # characters of a line of a refusal
OF_THE_FILE = re.compile(
    r"is not YAML|is not UTF-8|is larger than|expected parameters|line \d+: |cannot be read|and \d.* more values"
)

NUMBERS = [0, -1, 1, 2, 3, 7, 10**3, 10**4, 10**6, 2**31, 2**32, 2**63, 10**30, 10**39]
FRACTIONS = [0.0, -0.5, 1e-300, 1e-12, 0.001, 0.5, 0.999, 1.0, 1e6, 1e30, 1e38, 1e39, 1e300]
FRACTIONS += [float("inf"), float("-inf"), float("nan")]
WORDS = ["", " ", "cnn", "bert", "lstm", "conv2d", "resnet50_inference", "mindspore", "graph", "fp16", "cuda", "npu"]
WORDS += ["tuned", "text", "cifar10", "random", "all", "1e-3", "0o17", "010", "yes", "null", "x" * 30_000]
WORDS += ["\ud800", "a\nb", "\x1b[31m", "../../etc", "{}", "%s", "batch_size", "ß", "\U0001f600", "1" * 5000 + "x"]
RAW = ["010", "1:30", "yes", "1_000", "2024-01-01", "0x1F", "1" * 5000, "1" * 5000 + ".5", "*a", "&a [*a]", "!!int '1'"]
RAW += [
    "[" * 800,
    "{a: " * 800,
    "\x00",
    "\t",
    "'",
    '"',
    "|",
    ">",
    "%",
    "@",
    "- ",
    ": ",
    "? ",
    "<<: {}",
    "\n",
    "...",
    "---",
]
RAW += ["&x [1, 1, 1, 1, 1, 1, 1, 1]", "[1" + ", 1" * 20_000 + "]", "null", ".inf", "~"]
KEYS = [
    "seeds",
    "workload",
    "hyperparameters",
    "image_size",
    "hidden",
    "layers",
    "length",
    "kernel",
    "dropout",
    "epochs",
]
KEYS += [
    "passes",
    "without",
    "batch_size",
    "warm_up",
    "colour",
    "1",
    "",
    "k" * 30_000,
    "\x1b",
    "__class__",
    "of",
    "self",
]

scalars = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(FRACTIONS), st.sampled_from(WORDS), st.booleans(), st.none()
)
values = st.recursive(
    scalars | scalars.map(lambda value: [value] * 400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, place: tuple = ()) -> list[tuple]:
    """Where something can be changed: the keys and numbers down to each value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [below for key, inner in items for below in [(*place, key), *places(inner, (*place, key))]]


class Plain(yaml.SafeDumper):
    """Writes out what is there twice: an alias is refused."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """A notebook's name, and a parameter file for it with something changed."""
    path = draw(st.sampled_from(SHIPPED))
    text = path.read_text(encoding="utf-8")
    if draw(st.integers(0, 4)) == 0:
        return path.stem, draw(_damaged(text))
    parameters = _values(path)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        _mutate(draw, parameters)
    written = yaml.dump(parameters, Dumper=Plain, sort_keys=False, allow_unicode=draw(st.booleans()))
    return path.stem, written.encode("utf-8", "surrogatepass")


def _mutate(draw: st.DrawFn, parameters: dict[str, Any]) -> None:
    where = places(parameters)
    if not where:
        return
    *down, last = draw(st.sampled_from(where))
    inner = parameters
    for key in down:
        inner = inner[key]
    kinds = ["replace", "replace", "nearby", "nearby", "remove", "repeat", "empty", "grow"]
    kind = draw(st.sampled_from([*kinds, "rename", "add"] if isinstance(inner, dict) else kinds))
    if kind == "replace":
        inner[last] = draw(values)
    elif kind == "nearby":  # which is wrong less often
        inner[last] = _nearby(draw, inner[last])
    elif kind == "remove":
        del inner[last]
    elif kind == "repeat":  # or exchange, which is the same for a parser
        inner[last] = [copy.deepcopy(inner[last])] * draw(st.sampled_from([1, 2, 300]))
    elif kind == "empty":
        inner[last] = type(inner[last])()
    elif kind == "grow":
        inner[last] = list(range(1, draw(st.sampled_from([3, 300, 2000]))))
    elif kind == "rename":
        inner[draw(st.sampled_from(KEYS)) or f"{last}s"] = inner.pop(last)
    else:
        inner[draw(st.sampled_from(KEYS))] = draw(values)


def _nearby(draw: st.DrawFn, value: Any) -> Any:
    """A value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * draw(st.sampled_from([2, 3, 10, 100])) if draw(st.booleans()) else type(value)(value / 2)
    if isinstance(value, list):
        return value[::-1] if draw(st.booleans()) else value[1:]
    return draw(st.sampled_from(WORDS)) if isinstance(value, str) else value


@st.composite
def _damaged(draw: st.DrawFn, text: str) -> bytes:
    raw = text.encode()
    start = draw(st.integers(0, len(raw)))
    kind = draw(st.sampled_from(["cut", "insert", "replace", "value", "twice", "bytes"]))
    if kind == "cut":
        return raw[:start]
    if kind == "twice":
        return raw + raw[start:]
    if kind == "bytes":
        return raw[:start] + draw(st.binary(max_size=20)) + raw[start:]
    wrong = draw(st.sampled_from(RAW)).encode()
    if kind == "value":  # of a parameter of one line
        lines = raw.splitlines(keepends=True)
        number = draw(st.integers(0, len(lines) - 1))
        name, colon, _ = lines[number].partition(b":")
        return b"".join([*lines[:number], name, colon, b" ", wrong, b"\n", *lines[number + 1 :]])
    return raw[:start] + wrong + raw[start + (draw(st.integers(0, 40)) if kind == "replace" else 0) :]


def judge(notebook: str, raw: bytes, folder: Path) -> str:
    """``refused`` or ``accepted``; an AssertionError says what was wrong with either."""
    path = folder / f"{notebook}.yaml"
    path.write_bytes(raw)
    started = time.process_time()
    try:
        planned = profile.plan_notebook(notebook, path)
        refusal = None
    except BenchlibError as error:
        refusal = str(error)
    took = time.process_time() - started
    assert took < MOST_SECONDS, f"{took:.1f} s of processor time"
    if refusal is None:
        _check_plan(notebook, path, planned)
        return "accepted"
    _check_refusal(notebook, path, refusal)
    return "refused"


def _check_refusal(notebook: str, path: Path, message: str) -> None:
    message.encode("utf-8")  # or it could not be printed
    fields = _fields(_schema(notebook).model_json_schema())
    for line in message.splitlines():
        assert line.startswith(f"{path}: "), f"no file in: {line}"
        rest = line.removeprefix(f"{path}: ")
        named = (
            OF_THE_FILE.search(rest) or "unknown key" in rest or any(re.search(rf"\b{key}\b", rest) for key in fields)
        )
        assert named, f"no key in: {line}"
        assert len(line) < LONGEST_LINE, f"{len(line)} characters: {line[:400]}"
        assert line.isprintable(), f"cannot be shown: {line!r}"


def _check_plan(notebook: str, path: Path, planned: profile.Planned) -> None:
    """What a run would do with them before it starts a worker, on a machine that has all data sets."""
    again = _schema(notebook)(**json.loads(json.dumps(planned.parameters, allow_nan=False)))
    assert again.model_dump(mode="json") == planned.parameters, "a notebook would get other parameters"
    assert all(condition.key and str(condition) for condition in planned.conditions)
    for group in planned.study.groups:
        assert len(set(group)) == len(group), "a condition is there twice"


def _values(path: Path) -> dict[str, Any]:
    """The values of a parameter file, with the settings of its profile."""
    given, own = defaults(path.parent), read(path)
    of_profile = given.model_dump(mode="json", exclude={"minutes"}) if given else {}
    return own | ({"settings": of_profile} if "settings" in _schema(path.stem).model_fields else {})


def _schema(notebook: str) -> type[Strict]:
    return schema(Path("notebooks", f"{notebook}.ipynb"))


def _fields(schema: Any) -> set[str]:
    """All keys that a notebook's parameters have, those of what is in them, too."""
    if isinstance(schema, list):
        return {name for one in schema for name in _fields(one)}
    if not isinstance(schema, dict):
        return set()
    below = {name for one in schema.values() for name in _fields(one)}
    return below | set(schema.get("properties", ()))


def run(cases: int) -> Counter[str]:
    """How many cases were refused and accepted; the first that goes wrong raises, with the smallest form of it."""
    count: Counter[str] = Counter()

    @settings(
        max_examples=cases,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(mutated())
    def every_file_is_refused_by_name_or_can_be_measured(case: tuple[str, bytes]) -> None:
        count[judge(*case, folder)] += 1

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(FOLDER / "quick" / DEFAULTS, folder)
        for notebook in {path.stem for path in SHIPPED}:
            _schema(notebook)  # the import is off the clock
        every_file_is_refused_by_name_or_can_be_measured()
    return count


def main() -> None:
    """Print how many were refused and how many accepted."""
    parser = argparse.ArgumentParser(description="Damaged parameter files, each refused by name or fit to be measured.")
    parser.add_argument("--cases", type=int, default=2000)
    started = time.monotonic()
    count = run(parser.parse_args().cases)
    text = ", ".join(f"{number:,} {word}" for word, number in sorted(count.items()))
    print(f"{sum(count.values()):,} parameter files in {time.monotonic() - started:.0f} s: {text}")


if __name__ == "__main__":
    main()
