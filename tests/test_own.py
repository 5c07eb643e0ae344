"""A user's own models: files, matched weights, the workload that is made of them, results as files."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchlib import environments, plugins
from benchlib.errors import BenchlibError
from benchlib.frameworks import _layouts
from benchlib.frameworks._matched import Translation
from benchlib.matching import match, own, samples, sources
from benchlib.matching.match import Described
from benchlib.workloads import Weight

TORCH = """
import torch
from torch import nn

INPUT = (3, 8, 8)
CLASSES = 5
BATCH_SIZE = 16
class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block(3, 8)
        self.drop = nn.Dropout(0.25)
        self.last = nn.Linear(8 * 4 * 4, 5)

    def forward(self, x):
        return self.last(self.drop(torch.max_pool2d(self.first(x), 2).flatten(1)))
"""

MINDSPORE = """
from mindspore import nn
class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.normalised = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, stride=2)
        self.dropout = nn.Dropout(p=0.25)
        self.flatten = nn.Flatten()
        self.head = nn.Dense(8 * 4 * 4, 5)
    def construct(self, x):
        x = self.pool(self.relu(self.normalised(self.convolution(x))))
        return self.head(self.dropout(self.flatten(x)))
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write files into an empty folder, which is the working directory; plug-ins are as before afterwards."""
    monkeypatch.setenv(plugins.VARIABLE, "")
    monkeypatch.chdir(tmp_path)

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return tuple(f"{name}.py" for name in texts)

    return write


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("class Net(nn.Module):", "class Net(nn.Module)", "line 17: this is no Python"),
        ("import torch\n", "import torch, jax\n", "imports PyTorch (line 2) and JAX (line 2)"),
        ("import torch\nfrom torch import nn", "import numpy as nn", "imports no framework"),
        ("self.first = Block(3, 8)", "self.first = None", "defines 2 models: Block (line 8), Net (line 17)"),
        ("def __init__(self):", "def __init__(self, width):", "line 18: Net is made with width"),
        ("CLASSES = 5", "CLASSES = len('five')", "line 6: CLASSES is read, and not run"),
        ("CLASSES = 5", "", "say either CLASSES = 10, or TARGET"),
        ("INPUT = (3, 8, 8)", "", "no INPUT"),
        ("INPUT = (3, 8, 8)", "INPUT = 3", "inputs: 3 is no shape"),
        ("CLASSES = 5", "CLASSES = 2.5", "line 6: CLASSES = 2.5: give a whole number above 0, such as 10"),
        ("BATCH_SIZE = 16", "LEARNING_RATE = 0", "LEARNING_RATE = 0: give a number above 0"),
        ("BATCH_SIZE = 16", "WEIGHTS = 3", "line 7: WEIGHTS: write {"),
        ("CLASSES = 5", "CLASSES = 5\nloss = nn.Linear(1, 1).weight.sum().backward()", "line 7: trains when it is imp"),
        ("CLASSES = 5", "CLASSES = 5\nimport argparse\nargparse.ArgumentParser().parse_args()", "reads arguments"),
        ("from torch import nn", "from torch import nn\nfrom .blocks import Block", "line 4: a relative import"),
    ],
)
def test_a_file_that_is_no_model_is_refused_by_file_and_line(files, old, new, says):
    assert old in TORCH
    given = files(mine_torch=TORCH.replace(old, new))
    with pytest.raises(BenchlibError, match=rf"^mine_torch\.py: .*{re.escape(says)}"):
        own._document(sources.read_all(given), "mine")


def test_files_of_one_model_are_read_without_importing_them(files):
    given = files(mine_torch=TORCH, mine_mindspore=MINDSPORE)
    found = sources.read_all(given)
    models = {one.framework: (one.model, one.line) for one in found}
    assert models == {"pytorch": ("Net", 17), "mindspore": ("Classifier", 3)}
    document = own._document(found, own.common_name(found))
    assert (document["name"], document["classes"], document["batch_size"]) == ("mine", 5, 16)
    with pytest.raises(BenchlibError, match=r"^twice\.py: PyTorch, as mine_torch\.py; give one file"):
        sources.read_all((*given, *files(twice=TORCH)))
    (other,) = files(mine_jax="from flax import nnx\n\nCLASSES = 6\n\n\nclass Net(nnx.Module): ...\n")
    with pytest.raises(BenchlibError, match=r"^mine_jax\.py: CLASSES = 6, but mine_torch\.py says 5"):
        own._document([*found, replace(sources.read(f"{other}@default"))], "mine")


def test_a_framework_that_no_environment_has_is_named_with_the_command(files, monkeypatch):
    monkeypatch.setattr(environments, "names", lambda: iter(()))
    with pytest.raises(BenchlibError, match="benchlib environment create jax makes one, and so does --create"):
        sources.read(files(mine_jax="from flax import nnx\n\n\nclass Net(nnx.Module): ...\n")[0])


def described(**weights):
    shapes = {name.replace("__", "."): (shape, True) for name, shape in weights.items()}
    return Described(shapes, list(dict.fromkeys(name.rpartition(".")[0] for name in shapes)))


def test_weights_are_paired_by_name_and_else_by_order_and_size():
    its = described(a__weight=(8, 4), a__bias=(8,), b__weight=(8, 4), b__bias=(8,))
    other = described(b__bias=(8,), b__kernel=(4, 8), first__bias=(8,), first__kernel=(4, 8))
    parts, frozen = match.pair(its, other, {}, "mine.py")
    by_own = {part["own"]: part["of"] for part in parts}
    assert by_own == {
        "b.bias": ["b.bias"],
        "b.kernel": ["b.weight"],
        "first.bias": ["a.bias"],
        "first.kernel": ["a.weight"],
    }
    assert frozen == []
    swapped, _ = match.pair(its, other, {"a.weight": "b.kernel"}, "mine.py")
    assert {part["own"]: part["of"][0] for part in swapped}["b.kernel"] == "a.weight", "as the user says"
    with pytest.raises(BenchlibError, match=r"3 weights, the reference has 4.*a\.bias \(8,\)"):
        match.pair(its, described(a__weight=(8, 4), b__weight=(8, 4), b__bias=(8,)), {}, "mine.py")
    with pytest.raises(BenchlibError, match=r"mine\.py: WEIGHTS: unknown weight 'c\.kernel'"):
        match.pair(its, other, {"a.weight": "c.kernel"}, "mine.py")


def test_joined_biases_and_joined_attention_are_paired():
    its = described(rnn__weight_ih_l0=(8, 2), rnn__bias_ih_l0=(8,), rnn__bias_hh_l0=(8,), attn__qkv__weight=(12, 4))
    other = described(
        rnn__cell__kernel=(2, 8), rnn__cell__bias=(8,), attn__query__kernel=(4, 4), attn__key__kernel=(4, 4)
    )
    other = Described({**other.weights, "attn.value.kernel": ((4, 4), True)}, [*other.layers, "attn.value"])
    parts, frozen = match.pair(its, other, {}, "mine.py")
    found = {part["own"]: (part["of"], part.get("how"), part.get("rows")) for part in parts}
    assert found["rnn.cell.bias"] == (["rnn.bias_ih_l0", "rnn.bias_hh_l0"], "sum", None)
    assert frozen == ["rnn.bias_hh_l0"]
    assert found["attn.key.kernel"] == (["attn.qkv.weight"], None, [4, 8])


PARTS = [
    {"own": "dense", "own_shape": [6, 18], "of": ["a"], "shape": [6, 2, 3, 3], "axes": [0, 2, 3, 1]},
    {"own": "turned", "own_shape": [3, 3, 5, 4], "of": ["b"], "axes": [2, 3, 1, 0], "flip": [0, 1]},
    {"own": "gates", "own_shape": [2, 8], "of": ["c"], "order": [0, 2, 1, 3], "axes": [1, 0]},
    {"own": "query", "own_shape": [4, 4], "of": ["d"], "rows": [0, 4], "axes": [1, 0]},
    {"own": "key", "own_shape": [4, 4], "of": ["d"], "rows": [4, 8], "axes": [1, 0]},
    {"own": "both", "own_shape": [2, 6], "of": ["e", "f"], "how": "concat"},
]


def test_arrays_come_back_as_they_were_from_every_layout():
    shapes = {"a": (6, 18), "b": (4, 5, 3, 3), "c": (8, 2), "d": (8, 4), "e": (6,), "f": (6,)}
    weights = {name: np.random.default_rng(0).standard_normal(shape) for name, shape in shapes.items()}
    translation = Translation(PARTS, {name: Weight(shape, "zeros") for name, shape in shapes.items()})
    translated = translation.to_own(weights)
    assert {name: array.shape for name, array in translated.items()} == {
        one["own"]: tuple(one["own_shape"]) for one in PARTS
    }
    assert translated["turned"][0, 0, 1, 2] == weights["b"][2, 1, 2, 2]
    assert (translated["gates"][:, 2:4] == weights["c"][4:6].T).all()
    back = translation.to_workload(translated, {})
    for name, array in weights.items():
        np.testing.assert_array_equal(back[name], array, name)


def test_of_a_sum_the_first_is_trained_and_the_others_stay():
    weights = {"a": Weight((3,), "zeros"), "b": Weight((3,), "zeros", trained=False)}
    translation = Translation([{"own": "joined", "own_shape": [3], "of": ["a", "b"], "how": "sum"}], weights)
    kept = {"a": np.array([1.0, 2, 3]), "b": np.array([4.0, 5, 6])}
    translation.load(lambda own: None, kept)
    moved = translation.to_own(kept)["joined"] + 1
    state = translation.weights(lambda: {"joined": moved})
    assert (state["a"].tolist(), state["b"].tolist()) == ([2, 3, 4], [4, 5, 6])
    assert list(translation.gradients(lambda batch: {"joined": moved}, None)) == ["a"]


@pytest.mark.parametrize("wrong", ["", "another activation"])
def test_layouts_are_those_with_which_the_numbers_agree_or_the_first_place_is_named(wrong):
    its = described(conv__weight=(4, 12), fc__weight=(6, 4))
    rng, images = np.random.default_rng(0), np.random.default_rng(1).standard_normal((5, 3, 2, 2))
    x, last = images.reshape(5, 12), images.transpose(0, 2, 3, 1).reshape(5, 12)  # channels first and last
    weights = {name: rng.standard_normal(shape) for name, (shape, _) in its.weights.items()}

    def layers(first, second):
        hidden = np.maximum(x @ first.T, 0)
        return [("input of conv", x), ("input of fc", hidden), ("output of fc", hidden @ second.T)]

    def compute(parts):
        own_arrays = Translation(parts, {name: Weight(shape, "zeros") for name, (shape, _) in its.weights.items()})
        first, second = own_arrays.to_own(weights).values()
        hidden = last @ first if wrong == "another activation" else np.maximum(last @ first, 0)
        return [("input of conv", last), ("input of fc", hidden), ("output of fc", hidden @ second)]

    parts, _ = match.pair(its, described(one__kernel=(12, 4), two__kernel=(4, 6)), {}, "mine.py")
    settled, parted = match.settle(its, parts, layers(*weights.values()), compute, [3])
    assert [part.get("axes") for part in settled] == [[1, 0] if wrong else [2, 3, 1, 0], [1, 0]]
    assert parted == ("input of fc/0" if wrong == "another activation" else "")


def test_a_flattened_image_and_gates_are_among_the_layouts():
    part = {"own": "fc.kernel", "own_shape": [10, 32], "of": ["fc.weight"]}
    image = {"shape": [10, 2, 4, 4], "axes": [0, 2, 3, 1]}
    assert image in list(_layouts.layouts(part, [(10, 32)], [2]))
    recurrent = {"own": "lstm.kernel", "own_shape": [2, 8], "of": ["lstm.weight_ih_l0"]}
    assert {"order": [0, 2, 1, 3], "axes": [1, 0]} in list(_layouts.layouts(recurrent, [(8, 2)], []))


def test_a_users_samples_are_checked_and_random_ones_fit_the_document():
    document = {"inputs": {"words": [6]}, "vocabularies": {"words": 9}, "labels": [6], "classes": 3, "batch_size": 4}
    drawn = samples.draw(document)
    assert drawn["train_words"].shape == (32, 6)
    assert (drawn["train_words"].max(), drawn["train_labels"].max()) == (8, 2)
    with pytest.raises(BenchlibError, match=r"mine\.py: data gives no 'labels', but words"):
        samples.from_user("mine.py", {"words": drawn["train_words"]}, document)
    with pytest.raises(BenchlibError, match=r"mine\.py: data gives 'words' of shape \(32, 5\)"):
        samples.from_user("mine.py", {"words": drawn["train_words"][:, 1:], "labels": drawn["train_labels"]}, document)


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "benchlib", *arguments], capture_output=True, text=True, check=False)


def test_the_files_of_a_new_workload_are_written_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("new", "workload", "mine").stdout.count("workloads/mine/") == 4
    for name in ("mine", "cnn", "Mine"):
        assert run("new", "workload", name).returncode == 2, name
    assert [one.name for one in Path("workloads").iterdir()] == ["mine"]


CERTIFIES = """
from benchlib import Condition, Lab, environments
lab = Lab(outputs="outputs", plugins=["."])
torch = Condition(workload="mine", framework="pytorch")
there = [torch] if environments.why_absent("jax") else [torch, torch.but(framework="jax", environment="jax")]
print([one.verdict for one in lab.certify(there).values()])
print(lab.train([torch], seeds=[0], epochs=1).runs()["metric"].iloc[0] > 0.5)
"""


@pytest.mark.slow
def test_a_new_workload_is_one_model_as_it_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("new", "workload", "mine").returncode == 0
    done = subprocess.run([sys.executable, "-c", CERTIFIES], capture_output=True, text=True, check=True)
    *_, verdicts, learned = done.stdout.splitlines()
    assert (set(re.findall(r"'(.+?)'", verdicts)), learned) == ({"same"}, "True"), done.stdout + done.stderr


@pytest.mark.slow
def test_two_files_are_certified_and_an_error_is_named_with_its_layer(files):
    given = files(mine_torch=TORCH, mine_mindspore=MINDSPORE)
    done = run("certify", *given, "--modes", "graph")
    assert (done.returncode, done.stdout.count("(graph): same")) == (0, 2), done.stdout + done.stderr
    files(mine_mindspore=MINDSPORE.replace("nn.BatchNorm2d(8)", "nn.BatchNorm2d(8, eps=0.1)"))
    done = run("certify", *given, "--modes", "eager")
    assert (done.returncode, "first.norm" in done.stdout) == (1, True), done.stdout


@pytest.mark.slow
@pytest.mark.skipif(environments.why_absent("jax") is not None, reason="no environment jax")
def test_a_layer_whose_loop_hides_its_cell_is_named(files):
    folder = Path(__file__).parents[1] / "benchmarks" / "pairs" / "06_lstm_tagger"
    torch, jax = ((folder / f"mine_{name}.py").read_text(encoding="utf-8") for name in ("torch", "jax"))
    given = files(mine_torch=torch, mine_jax=jax)
    assert run("certify", *given).stdout.count(": same") == 2
    files(mine_jax=jax.replace("reverse=False", "reverse=True"))
    done = run("certify", *given)
    assert (done.returncode, "first apart at the output of lstm2" in done.stdout) == (1, True), done.stdout
    linen = "    @nn.compact\n    def __call__(self, x): return nn.RNN(nn.GRUCell(12))(nn.Embed(1000, 48)(x))\n"
    files(mine_jax=f"from flax import linen as nn\nclass Tagger(nn.Module):\n{linen}")
    assert "write this part with flax.nnx" in run("certify", *given).stderr


@pytest.mark.slow
@pytest.mark.alone
def test_two_files_are_compared_and_the_results_can_be_traced(files, tmp_path):
    given = files(mine_torch=TORCH, mine_mindspore=MINDSPORE)
    done = run("compare", *given, "--modes", "eager", "--minutes", "0.3")
    assert (done.returncode, done.stdout.count("(eager): same")) == (0, 2), done.stdout + done.stderr
    outputs = tmp_path / "outputs" / "mine"
    assert "% measurements:" in (outputs / "tables" / "comparison.tex").read_text(encoding="utf-8")
    traced = run("trace", "outputs/mine/tables/comparison.csv", "--plugins", "outputs/mine/workload")
    assert traced.returncode == 0, traced.stdout + traced.stderr
    assert run("compare", *given, "--modes", "eager", "--minutes", "0").returncode == 0, "all is there"
    page = (outputs / "mine.html").read_text(encoding="utf-8")
    assert 'src="data:image/svg' in page
    assert not re.search(r"(src|href)=.http", page), "it asks nobody for anything"
    assert "workload_from" in "".join(json.loads((outputs / "mine.ipynb").read_text())["cells"][0]["source"])
    files(mine_mindspore=MINDSPORE.replace("nn.BatchNorm2d(8)", "nn.BatchNorm2d(8, eps=0.1)"))
    assert run("compare", *given, "--modes", "eager").returncode == 1
    assert "different" in (outputs / "certificates.html").read_text(encoding="utf-8")
    assert (outputs / "mine.html").read_text(encoding="utf-8") == page, "what was measured stays"


@pytest.mark.slow
def test_what_is_wrong_with_a_model_is_said_with_its_line_and_nothing_is_left(files, tmp_path):
    given = files(mine_torch=TORCH.replace("CLASSES = 5", "CLASSES = 7"), mine_mindspore=MINDSPORE)
    done = run("certify", *given)
    assert (done.returncode, "line 17: Net gives (5,) for a sample, but CLASSES = 7" in done.stderr) == (2, True)
    assert not (tmp_path / "outputs").exists()
    given = files(mine_torch=TORCH.replace("self.drop(torch", "self.dorp(torch"), mine_mindspore=MINDSPORE)
    done = run("certify", *given)
    assert (done.returncode, "mine_torch.py: line 25: AttributeError" in done.stderr) == (2, True)
