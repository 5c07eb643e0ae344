"""The workload ``lstm``, free of any framework."""

from __future__ import annotations

import numpy as np

from benchlib.workloads import Exercise, Gate, Hyperparameter, Samples, Values, Weight, Workload
from benchlib.workloads.layers import dense_weights, recurrent_weights
from benchlib.workloads.neutral import DROPOUT_OFF, LARGE_EPSILON
from benchlib.workloads.settled import (
    ADAM,
    CHAINER,
    CHAINER_ADAM,
    CHAINER_DROPOUT,
    CHAINER_GATES,
    CHAINER_RECURRENT,
    DROPOUT,
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
)


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""
    words, embedding, hidden = values["words"], values["embedding"], values["hidden"]
    found = {"embedding.weight": Weight((words, embedding), "uniform", limit=0.05)}
    for layer, inputs in (("layer1", embedding), ("layer2", 2 * hidden)):
        for direction in ("ahead", "back"):
            found.update(recurrent_weights(f"{layer}.{direction}", 4, inputs, hidden))
    return {**found, **dense_weights("dense", 2 * hidden, values["classes"])}


def shortened(samples: Samples) -> dict[str, np.ndarray]:
    """Sequences that end after half of their tokens."""
    tokens, length = samples["tokens"].copy(), max(1, samples["tokens"].shape[1] // 2)
    tokens[:, length:] = 0
    return {**samples, "tokens": tokens, "lengths": np.minimum(samples["lengths"], length)}


WORKLOAD = Workload(
    name="lstm",
    title="Bidirectional LSTM",
    kind="training",
    source=(
        "two bidirectional LSTM layers over words, for the sentiment of film reviews, after the task of Xia and Zhou "
        "(2022), section 3.1; they take MindSpore's model zoo, with word vectors trained elsewhere (GloVe), which here "
        "are trained with the rest"
    ),
    data=("digits_sequence", "imdb"),
    weights=weights,
    hyperparameters={
        "words": Hyperparameter(
            20, "size of the vocabulary, with the tokens for padding, start and unknown", minimum=4
        ),
        "length": Hyperparameter(64, "tokens of the longest sequence; longer ones lose their end", minimum=1),
        "classes": Hyperparameter(10, "classes of the sequences", minimum=2),
        "embedding": Hyperparameter(100, "numbers that stand for a word", minimum=1),
        "hidden": Hyperparameter(100, "width of an LSTM layer in each direction", minimum=1),
        "dropout": Hyperparameter(
            0.5, "dropout probability of words, and before the second layer and the dense one", minimum=0.0, below=1.0
        ),
        "epsilon": Hyperparameter(1e-8, "added to the denominator of Adam", minimum=0.0),
    },
    data_values={"digits_sequence": {"words": 20, "classes": 10}, "imdb": {"classes": 2}},
    data_defaults={"imdb": {"words": 20_000, "length": 250}},
    batch_size=64,
    learning_rate=0.001,
    metric="accuracy",
    thresholds={"imdb": 0.84, "digits_sequence": 0.80},
    gate=Gate({"dropout": DROPOUT_OFF, "epsilon": LARGE_EPSILON}),
    exercises={
        "padding": Exercise(lambda samples: samples["lengths"] < samples["tokens"].shape[1], shortened),
        # the first place of every sequence has a token; of these the last has one, too
        "a sequence of full length": Exercise(lambda samples: samples["lengths"] == samples["tokens"].shape[1]),
    },
    dropouts=lambda values: (
        ("of the words", values["dropout"]),
        ("before the second layer", values["dropout"]),
        ("before the dense layer", values["dropout"]),
    ),
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS_OF_STEPS,
        **EMBEDDING,
        **LABELS,
        **DROPOUT,
        **ADAM,
        "sequences": (
            "neither sorted nor packed, nor given to the LSTM with their lengths, because then both unroll it into "
            "single steps on the CPU"
        ),
        "two directions": (
            "an LSTM each, of a plain sequence: the way back gets each sequence reversed within its own length, by "
            "index_select in PyTorch and ops.reverse_sequence in MindSpore"
        ),
        "last state": (
            "looked up among the outputs by each sequence's length, by indexing in PyTorch and by ops.gather_nd in "
            "MindSpore, because the state that the LSTM hands out is that after the padding"
        ),
        **JAX_WEIGHTS,
        **JAX_RECURRENT,
        "JAX: two directions": "as in PyTorch; a sequence is reversed within its own length by jnp.take_along_axis",
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_EMBEDDING,
        **TENSORFLOW_RECURRENT,
        **TENSORFLOW_ADAM,
        "TensorFlow: two directions": (
            "as in MindSpore, by tf.reverse_sequence; each is the operator BlockLSTM, whose gates are in another order "
            "(BlockLSTMV2's are in PyTorch's, but its gradient in TensorFlow 2.21 is that of BlockLSTM, and wrong)"
        ),
        **MXNET_LOSS,
        **MXNET_ADAM,
        **MXNET_GATES,
        "MXNet: two directions": (
            "reversed by SequenceReverse; a bidirectional rnn.LSTM heeds lengths (use_sequence_length) on GPUs only"
        ),
        "MXNet: last state": "by SequenceLast with the lengths",
        **CHAINER,
        **CHAINER_DROPOUT,
        **CHAINER_ADAM,
        **CHAINER_RECURRENT,
        **CHAINER_GATES,
        "Chainer: two directions": "as in PyTorch; a sequence is reversed within its own length by F.permutate",
        **PADDLE_WEIGHTS,
        **PADDLE_LOSS,
        **PADDLE_GATES,
    },
    unit="sequences",
    fields=("tokens", "lengths", "labels"),
    optimizer_state=2,
    holds=lambda values: values["length"] * (values["embedding"] + 4 * values["hidden"]),
)
