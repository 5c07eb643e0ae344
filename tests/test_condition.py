"""A condition says everything, refuses what cannot be, and names what was wrong."""

import pytest

from benchlib.condition import Condition
from benchlib.errors import BenchlibError


def test_a_condition_says_all_of_it():
    condition = Condition(workload="cnn")
    assert condition.batch_size == 64
    assert condition.learning_rate == 0.01
    assert condition.data == "digits"
    assert condition.hyperparameters["conv_dropout"] == 0.25
    assert str(condition) == "cnn pytorch eager fp32 cpu default batch 64 lr 0.01 digits"
    small = condition.but(threads=1, train_samples=100, hyperparameters={"image_size": 8})
    assert str(small).endswith("digits[:100] 1 thread image_size=8")


def test_equal_conditions_have_equal_keys_different_ones_do_not_and_json_changes_none():
    one = Condition(workload="cnn", hyperparameters={"image_size": 16})
    same = Condition(hyperparameters={"image_size": 16}, batch_size=64, workload="cnn")
    assert one == same
    assert one.key == same.key
    assert hash(one) == hash(same)
    changes = ({"batch_size": 32}, {"lane": "tuned"}, {"learning_rate": 0.02}, {"hyperparameters": {}}, {"threads": 2})
    assert len({one.key, *(one.but(**change).key for change in changes)}) == 6
    condition = Condition(workload="conv2d", batch_size=8, framework="mindspore", mode="graph")
    assert condition.learning_rate is None, "an operator has none"
    assert Condition.model_validate_json(condition.model_dump_json()) == condition


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"workload": "cnnn"}, r"workload: 'cnnn': unknown workload 'cnnn': did you mean 'cnn'\?"),
        ({"framework": "pytorhc"}, r"framework: 'pytorhc': .* did you mean 'pytorch'\?"),
        ({"mode": "grpah"}, r"mode: 'grpah': .* did you mean 'graph'\?"),
        ({"device": "cude"}, r"device: 'cude': .* did you mean 'cuda'\?"),
        ({"lane": "tunde"}, r"lane: 'tunde': .* did you mean 'tuned'\?"),
        ({"precision": "fp23"}, r"precision: 'fp23': .* did you mean 'fp32'\?"),
        ({"batch_size": 0}, r"batch_size: 0: .*greater than or equal to 1"),
        ({"batch_size": 2.5}, r"batch_size: 2.5: .*valid integer"),
        ({"batch_size": True}, r"batch_size: True: .*valid integer"),
        ({"batch_size": 2000}, r"batch_size 2000 is larger than the 1437 training samples of digits"),
        ({"learning_rate": "1e-3"}, r"learning_rate: '1e-3' is text, not a number: write it without quotes"),
        ({"learning_rate": -0.1}, r"learning_rate: -0.1: .*greater than 0"),
        ({"learning_rate": float("nan")}, r"learning_rate: nan: .*finite"),
        ({"threads": 0}, r"threads: 0: .*greater than or equal to 1"),
        ({"batchsize": 4}, r"unknown key 'batchsize': did you mean 'batch_size'\?"),
        ({"data": "cifar"}, r"unknown data of workload 'cnn' 'cifar': did you mean 'cifar10'\?"),
        ({"train_samples": 5000}, r"train_samples 5000: digits has 1437 training samples"),
        ({"hyperparameters": {"dropuot": 0.1}}, r"unknown hyperparameter of cnn 'dropuot': did you mean"),
        ({"workload": "conv2d", "learning_rate": 0.1}, r"learning_rate 0.1: conv2d trains nothing"),
    ],
)
def test_a_condition_that_cannot_be_is_refused_by_key_and_value(wrong, told):
    with pytest.raises(BenchlibError, match=told):
        Condition(**{"workload": "cnn", **wrong})
