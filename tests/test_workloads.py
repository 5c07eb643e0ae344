"""The workloads: well declared, the same in each framework's file, and clear about what is wrong."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import benchlib
from benchlib import frameworks, workloads
from benchlib.data.weights import draw
from benchlib.errors import BenchlibError
from benchlib.workloads.googlenet.workload import BLOCKS, outputs
from benchlib.workloads.resnet50.workload import convolutions as resnet50_convolutions

PACKAGE = Path(benchlib.__file__).parent
LIBRARIES = {"torch", "torch_npu", "mindspore", "tensorflow", "keras", "jax", "flax", "mxnet", "paddle", "chainer"}
LIBRARIES |= {"caffe2", "cntk", "theano"}


def test_the_shipped_workloads_are_there_in_both_frameworks():
    shipped = {"batchnorm2d", "bert", "cnn", "conv2d", "gcn", "googlenet", "gru", "linear", "lstm", "resnet50"}
    shipped |= {"resnet50_inference", "seq2seq"}
    assert set(workloads.names()) >= shipped
    for name in workloads.names():
        assert workloads.load(name).name == name
    for name in shipped:
        assert set(workloads.load(name).frameworks()) >= {"mindspore", "pytorch"}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(module: ast.Module) -> list[tuple[str, list[str]]]:
    """The functions that a framework's file of a workload defines for others, in order, with their arguments."""
    defined = [node for node in module.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    return [(node.name, [each.arg for each in node.args.args]) for node in defined]


def layers(module: ast.Module) -> dict[str, list[str]]:
    """What the file's classes make in ``__init__``, in order."""
    found = {}
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            (made,) = (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__")
            targets = [target for one in ast.walk(made) if isinstance(one, ast.Assign) for target in one.targets]
            found[node.name] = [target.attr for target in targets if isinstance(target, ast.Attribute)]
    return found


def forward(module: ast.Module) -> list[str]:
    """What the steps of the model's forward pass are called, in order; empty if the file has no model."""
    models = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    methods = [node for model in models for node in model.body if isinstance(node, ast.FunctionDef)]
    steps = [step for method in methods if method.name in ("forward", "construct") for step in method.body]
    return [ast.unparse(step.targets[0]) if isinstance(step, ast.Assign) else type(step).__name__ for step in steps]


IN_BOTH = [name for name in workloads.names() if {"mindspore", "pytorch"} <= set(workloads.load(name).frameworks())]


@pytest.mark.parametrize("name", IN_BOTH)
def test_files_of_a_workload_can_be_read_side_by_side(name):
    torch, mindspore = (tree(PACKAGE / "workloads" / name / file) for file in ("pytorch.py", "mindspore.py"))
    assert functions(torch) == functions(mindspore)
    made, also_made = layers(torch), layers(mindspore)
    both = [one for one in made if one in also_made]
    assert both == [one for one in also_made if one in made], "in the same order"
    assert both == list(made)
    assert {one: [each for each in also_made[one] if each != "scale"] for one in both} == made
    assert forward(torch) == forward(mindspore)


@pytest.mark.parametrize("name", IN_BOTH)
def test_each_dropout_is_applied_in_one_place(name):
    """MindSpore seeds a dropout when it is made: in graph mode one that is applied twice drops the same twice."""
    for framework in ("pytorch", "mindspore"):
        for made in ast.walk(tree(PACKAGE / "workloads" / name / f"{framework}.py")):
            if isinstance(made, ast.ClassDef):
                read = [n.attr for n in ast.walk(made) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)]
                used = [name for name in read if name.startswith("dropout")]
                assert len(used) == len(set(used)), made.name


@pytest.mark.parametrize("name", [name for name in workloads.names() if len(workloads.load(name).frameworks()) > 1])
def test_each_workload_of_two_frameworks_says_what_was_settled(name):
    settled = workloads.load(name).settled
    assert settled
    for text in (*settled, *settled.values()):
        assert text
        assert text.strip(" .") == text, "the table adds nothing to it"


def test_what_was_settled_for_one_framework_begins_with_its_name():
    named = re.compile("|".join(map(frameworks.title, frameworks.names())))
    for name in workloads.names():
        for what in workloads.load(name).settled:
            assert not named.search(re.sub(rf"^({named.pattern})( [\d.]+)?: ", "", what)), f"{name}: {what}"


SETTLED = {  # what a file for MindSpore says, and what had to be settled where it does
    "nn.Conv2d(": {"padding of convolutions", "bias of convolutions"},
    "nn.BatchNorm2d(": {"names of batch normalisation", "training or evaluation"},
    "nn.Pad(": {"padding of pooling"},
    "nn.Dropout(": {"dropout probability", "dropout objects", "training or evaluation"},
    "nn.Embedding(": {"initial embedding"},
    "nn.LayerNorm(": {"epsilon of layer normalisation", "names of layer normalisation"},
    "nn.GELU(": {"GELU"},
    "approximate=False": {"GELU"},
    "nn.SGD([": {"weight decay"},
    "weight_decay=0.0": {"Adam"},
    '"weight_decay": 0.0': {"AdamW", "weight decay", "order of gradients"},
    "cross_entropy(": {"labels"},
    "LinearLR(": {"warm-up"},
    "reverse_sequence(": {"two directions", "last state"},
    "unsorted_segment_sum(": {"sum over neighbours"},
}


@pytest.mark.parametrize("name", IN_BOTH)
def test_what_was_settled_is_what_the_files_have(name):
    settled = set(workloads.load(name).settled)
    text = (PACKAGE / "workloads" / name / "mindspore.py").read_text(encoding="utf-8")
    if name == "resnet50_inference":  # whose model is that of resnet50, which nothing trains here
        text += (PACKAGE / "workloads" / "resnet50" / "mindspore.py").read_text(encoding="utf-8").split("def build")[0]
    found = set().union(*(whats for said, whats in SETTLED.items() if said in text))
    if name == "gcn":
        found |= {"weight decay"}  # part of its loss, which no word of SETTLED finds
    assert found == settled & set().union(*SETTLED.values())
    operator = workloads.load(name).kind == "operator"
    assert ("gradients" in settled) == operator
    assert "initial weights" in settled


def imported(path: Path) -> set[str]:
    """The top-level packages that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


# The framework whose files share a helper.
HELPERS = {"_flax": "jax", "_gluon": "mxnet", "_keras": "tensorflow", "_keras2": "tensorflow"}
BESIDE = {"jax": {"flax", "optax"}, "tensorflow": {"keras"}, "pytorch": {"torch_npu"}}  # what else their files import


def own_framework(path: Path) -> set[str]:
    """The framework that a file may import: frameworks/X.py and workloads/*/X.py may import X."""
    parts, stem = path.relative_to(PACKAGE).parts, path.stem
    name = HELPERS.get(stem) or (stem.split("_")[1] if stem.startswith("_") else stem)  # _pytorch_old is PyTorch's
    if parts[0] in ("frameworks", "workloads") and name in frameworks.names():
        return {frameworks.package(name), *BESIDE.get(name, ())}
    return set()


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_a_frameworks_own_files_import_it(path):
    assert imported(path) & LIBRARIES <= own_framework(path)


@pytest.mark.parametrize(
    "path",
    [path for folder in ("frameworks", "workloads", "worker") for path in sorted((PACKAGE / folder).rglob("*.py"))],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_workers_need_numpy_and_their_framework_only(path):
    assert imported(path) <= {"numpy", "benchlib", *sys.stdlib_module_names, *own_framework(path)}


@pytest.mark.parametrize("name", workloads.names())
def test_workloads_are_well_declared(name):
    workload = workloads.load(name)
    values = workload.values({})
    assert workload.title
    assert workload.source
    assert workload.values(workload.gate.hyperparameters).keys() == values.keys()
    assert all(why for _, why in workload.gate.settings.values())
    assert (workload.kind == "training") == (workload.learning_rate is not None) == (workload.metric is not None)
    assert workload.thresholds.keys() <= set(workload.data)
    for weight in workload.weights(values).values():
        assert all(size > 0 for size in weight.shape)
        assert (weight.fan is not None) == (weight.init == "glorot_uniform")
        assert (weight.bounds is not None) == (weight.init == "between")


def test_cnn_is_the_one_of_the_rosetta_stone():
    workload = workloads.load("cnn")
    weights = workload.weights(workload.values({}))
    shapes = [(50, 3, 3, 3), (50, 50, 3, 3), (100, 50, 3, 3), (100, 100, 3, 3), (512, 6400), (10, 512)]
    assert [weight.shape for name, weight in weights.items() if name.endswith("weight")] == shapes
    assert sum(np.prod(weight.shape) for weight in weights.values()) == 3_441_592
    assert weights["conv3.weight"].fan == (50 * 9, 100 * 9)
    assert weights["dense1.weight"].fan == (6400, 512)
    assert workload.weights(workload.values({"image_size": 8}))["dense1.weight"].shape == (512, 400)
    assert (workload.batch_size, workload.learning_rate, workload.values({})["momentum"]) == (64, 0.01, 0.9)


def trained(name: str, given: dict) -> int:
    """The number of trained weights."""
    workload = workloads.load(name)
    weights = workload.weights(workload.values(given)).values()
    return int(sum(np.prod(weight.shape) for weight in weights if weight.trained))


def test_resnet50_has_the_size_of_the_paper_s():
    assert trained("resnet50", {}) == 25_557_032 - 2_049_000 + 20_490, "torchvision's, with 10 classes and not 1,000"
    workload = workloads.load("resnet50")
    values = workload.values({"image_size": 224})
    with_padding = sum(c.inputs * c.outputs * (c.kernel * c.side_after) ** 2 for c in resnet50_convolutions(values))
    assert with_padding == 4_089_184_256 - 2_048_000, "as fvcore counts torchvision's, without its dense layer"
    assert 0.96 < workload.work(values).multiply_adds / with_padding < 0.97, "products with the padding are no work"
    assert trained("resnet50_inference", {"output": "features"}) == 23_528_522 - 20_490


@pytest.mark.parametrize("name", [name for name in workloads.names() if workloads.load(name).evaluates])
def test_batch_normalisation_that_is_only_evaluated_is_not_the_identity(name):
    workload = workloads.load(name)
    drawn = draw(workload, workload.values({}), seed=0)
    norms = [key.removesuffix(".running_mean") for key in drawn if key.endswith(".running_mean")]
    assert norms
    for norm in norms:
        weight, bias, mean, variance = (drawn[f"{norm}.{p}"] for p in ("weight", "bias", "running_mean", "running_var"))
        assert variance.min() > 0
        assert np.median(np.abs(mean) / np.sqrt(variance)) > 0.05, "large enough to be missed"
        assert np.median(np.abs(bias / weight)) > 0.05
        for one in (weight, bias, mean, variance):
            assert not np.isin(one, (0, 1)).any()
            assert len(np.unique(one)) > 0.9 * len(one), "channels can be told apart"


def test_googlenet_has_the_channels_of_the_paper_s_table():
    assert [outputs(block) for block in BLOCKS] == [256, 480, 512, 512, 512, 528, 832, 832, 1024]


def test_bert_s_base_model_has_110_million_weights():
    base = {"words": 30_522, "length": 512, "layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072}
    assert trained("bert", base) == 110_106_428, "as transformers' BertForPreTraining"


@pytest.mark.parametrize(
    ("name", "given", "shapes"),
    [
        ("conv2d", {"in_channels": 2, "out_channels": 5, "kernel": 5, "image_size": 8}, [(4, 2, 8, 8), (4, 5, 6, 6)]),
        ("linear", {"in_features": 3, "out_features": 6}, [(4, 3), (4, 6)]),
        ("resnet50_inference", {"image_size": 32, "output": "features"}, [(4, 3, 32, 32), (4, 2048)]),
        ("batchnorm2d", {"channels": 3, "image_size": 5}, [(4, 3, 5, 5), (4, 3, 5, 5)]),
    ],
)
def test_inputs_of_operators_have_their_shapes_and_follow_the_generator(name, given, shapes):
    workload = workloads.load(name)
    values = workload.values(given)
    first, again, other = (workload.inputs(values, 4, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert [array.shape for array in first] == shapes
    assert all(array.dtype == np.float32 for array in first)
    for array, same, different in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(array, same)
        assert not np.array_equal(array, different)
    assert not np.array_equal(first[0].ravel()[:8], first[1].ravel()[:8])


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("cnn", {"image_size": 12}, "hyperparameters.image_size: unknown choice 12"),
        ("cnn", {"conv_droput": 0.1}, "unknown hyperparameter of cnn 'conv_droput': did you mean 'conv_dropout'"),
        ("cnn", {"conv_dropout": 1.0}, "hyperparameters.conv_dropout: 1.0 is too large, it must be below 1"),
        ("cnn", {"momentum": float("nan")}, "hyperparameters.momentum: nan is no number to compute with"),
        ("cnn", {"momentum": "0.9"}, "hyperparameters.momentum: '0.9' is a str, expected a float"),
        ("linear", {"in_features": 0}, "hyperparameters.in_features: 0 is too small, the least is 1"),
        ("linear", {"in_features": 2.5}, "hyperparameters.in_features: 2.5 is a float, expected a int"),
        ("conv2d", {"passes": "backward"}, "hyperparameters.passes: unknown choice 'backward'"),
        ("conv2d", {"kernel": 9, "padding": 1, "image_size": 6}, "kernel 9 .* images of 6x6 padded by 1: .* at most 8"),
        ("bert", {"hidden": 130, "heads": 4}, "hyperparameters.hidden: 130 is no multiple of the 4 heads"),
        *((one, {"length": 0}, "hyperparameters.length: 0 is too small") for one in ("gru", "lstm", "seq2seq", "bert")),
    ],
)
def test_wrong_hyperparameters_are_refused_by_name(name, given, message):
    with pytest.raises(BenchlibError, match=message):
        workloads.load(name).values(given)
