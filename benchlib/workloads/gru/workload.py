"""The workload ``gru``, free of any framework."""

from __future__ import annotations

import numpy as np

from benchlib.workloads import Exercise, Gate, Hyperparameter, Samples, Values, Weight, Workload
from benchlib.workloads.layers import dense_weights, recurrent_weights
from benchlib.workloads.neutral import LARGE_EPSILON
from benchlib.workloads.settled import (
    ADAM,
    CAFFE2_ADAM,
    CAFFE2_EMBEDDING,
    CAFFE2_RECURRENT,
    CHAINER,
    CHAINER_ADAM,
    CHAINER_RECURRENT,
    CNTK_ADAM,
    CNTK_EMBEDDING,
    CNTK_LOSS,
    CNTK_RECURRENT,
    CNTK_WEIGHTS,
    EMBEDDING,
    GRADIENTS_OF_STEPS,
    INITIAL_WEIGHTS,
    JAX_RECURRENT,
    JAX_WEIGHTS,
    LABELS,
    MXNET_ADAM,
    MXNET_GATES,
    MXNET_LOSS,
    PADDLE_GATES,
    PADDLE_LOSS,
    PADDLE_WEIGHTS,
    TENSORFLOW_ADAM,
    TENSORFLOW_EMBEDDING,
    TENSORFLOW_RECURRENT,
    TENSORFLOW_WEIGHTS,
    THEANO_ADAM,
    THEANO_LOSS,
    THEANO_RECURRENT,
)


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""
    return {
        "embedding.weight": Weight((values["words"], values["embedding"]), "uniform", limit=0.05),
        **recurrent_weights("gru", 3, values["embedding"], values["hidden"]),
        **dense_weights("dense", values["hidden"], values["classes"]),
    }


def shortened(samples: Samples) -> dict[str, np.ndarray]:
    """Sequences that have lost the first half of their tokens."""
    tokens = samples["tokens"].copy()
    tokens[:, : tokens.shape[1] // 2] = 0
    return {**samples, "tokens": tokens}


WORKLOAD = Workload(
    name="gru",
    title="Rosetta GRU",
    kind="training",
    source=(
        "the recurrent network for IMDB of Karmanov's Rosetta Stone of deep-learning frameworks "
        "(https://github.com/ilkarman/DeepLearningFrameworks): 30,000 words, 150 tokens, embedding 125, one GRU layer "
        "of 100, Adam; longer reviews lose their beginning, shorter ones are padded before it, as Keras does"
    ),
    data=("digits_sequence", "imdb"),
    weights=weights,
    hyperparameters={
        "words": Hyperparameter(
            20, "size of the vocabulary, with the tokens for padding, start and unknown", minimum=4
        ),
        "length": Hyperparameter(64, "tokens of a sequence", minimum=1),
        "classes": Hyperparameter(10, "classes of the sequences", minimum=2),
        "embedding": Hyperparameter(125, "numbers that stand for a word", minimum=1),
        "hidden": Hyperparameter(100, "width of the GRU layer", minimum=1),
        "epsilon": Hyperparameter(1e-8, "added to the denominator of Adam", minimum=0.0),
    },
    data_values={"digits_sequence": {"words": 20, "classes": 10}, "imdb": {"classes": 2}},
    data_defaults={"imdb": {"words": 30_000, "length": 150}},
    pads_before=True,
    batch_size=64,
    learning_rate=0.001,
    metric="accuracy",
    thresholds={"imdb": 0.82, "digits_sequence": 0.80},
    gate=Gate({"epsilon": LARGE_EPSILON}),
    exercises={
        "padding": Exercise(lambda samples: samples["tokens"][:, 0] == 0, shortened),
        # the last place of every sequence has a token; of these the first has one, too
        "a sequence of full length": Exercise(lambda samples: samples["tokens"][:, 0] != 0),
    },
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS_OF_STEPS,
        **EMBEDDING,
        **LABELS,
        **ADAM,
        "padding of sequences": (
            "before the first token, so that the state which the GRU hands out is that after the last one, without "
            "lengths in either framework"
        ),
        **JAX_WEIGHTS,
        **JAX_RECURRENT,
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_EMBEDDING,
        **TENSORFLOW_RECURRENT,
        **TENSORFLOW_ADAM,
        **MXNET_LOSS,
        **MXNET_ADAM,
        **MXNET_GATES,
        "MXNet: last state": (
            "a slice of the outputs: SequenceLast without lengths ends the process in its gradient (1.9.1, imperative)"
        ),
        **CHAINER,
        **CHAINER_ADAM,
        **CHAINER_RECURRENT,
        **CNTK_WEIGHTS,
        **CNTK_LOSS,
        **CNTK_ADAM,
        **CNTK_EMBEDDING,
        **CNTK_RECURRENT,
        **PADDLE_WEIGHTS,
        **PADDLE_LOSS,
        **PADDLE_GATES,
        **THEANO_LOSS,
        **THEANO_RECURRENT,
        **THEANO_ADAM,
        **CAFFE2_EMBEDDING,
        **CAFFE2_RECURRENT,
        **CAFFE2_ADAM,
    },
    unit="sequences",
    fields=("tokens", "labels"),
    optimizer_state=2,
    holds=lambda values: values["length"] * (values["embedding"] + values["hidden"]),
)
