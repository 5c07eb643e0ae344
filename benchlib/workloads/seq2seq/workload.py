"""The workload ``seq2seq``, free of any framework."""

from __future__ import annotations

import numpy as np

from benchlib.workloads import Exercise, Gate, Hyperparameter, Samples, Values, Weight, Workload
from benchlib.workloads.layers import dense_weights, recurrent_weights
from benchlib.workloads.neutral import DROPOUT_OFF, LARGE_EPSILON, SMALL_CLIP
from benchlib.workloads.settled import (
    ADAM,
    DROPOUT,
    EMBEDDING,
    GRADIENTS_OF_STEPS,
    INITIAL_WEIGHTS,
    JAX_LEFT_OUT,
    JAX_RECURRENT,
    JAX_WEIGHTS,
    LABELS,
    MXNET_ADAM,
    MXNET_GATES,
    MXNET_LOSS,
    PADDLE_GATES,
    PADDLE_LEFT_OUT,
    PADDLE_LOSS,
    PADDLE_WEIGHTS,
    TENSORFLOW_ADAM,
    TENSORFLOW_EMBEDDING,
    TENSORFLOW_LEFT_OUT,
    TENSORFLOW_RECURRENT,
    TENSORFLOW_WEIGHTS,
)

END = 3  # the token: see ``benchlib.data.translations``


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""
    embedding, hidden, words = values["embedding"], values["hidden"], values["target_words"]
    return {
        # As large as PyTorch's: from uniform numbers up to 0.05 next to nothing is learned of Multi30k in an epoch.
        "source.weight": Weight((values["words"], embedding), "normal", deviation=1.0),
        "target.weight": Weight((words, embedding), "normal", deviation=1.0),
        **recurrent_weights("encoder", 3, embedding, hidden),
        **recurrent_weights("decoder", 3, embedding, hidden),
        "attention.weight": Weight((hidden, hidden), "glorot_uniform", (hidden, hidden)),
        **dense_weights("combined", 2 * hidden, hidden),
        **dense_weights("dense", hidden, words),
    }


def shortened(samples: Samples) -> dict[str, np.ndarray]:
    """Sentences that end, in both languages, after half of the room that there is."""
    made = {name: array.copy() for name, array in samples.items()}
    length = max(1, made["source"].shape[1] // 2)
    made["source"][:, length:], made["target"][:, length:], made["labels"][:, length:] = 0, 0, -1
    return {**made, "lengths": np.minimum(made["lengths"], length)}


def lengthened(samples: Samples) -> dict[str, np.ndarray]:
    """Sentences whose words, in both languages, come again until there is no room left but for the end."""
    length = samples["source"].shape[1]
    made = {name: array.copy() for name, array in samples.items()}
    for row, label in zip(made["source"], made["labels"], strict=True):
        for words in (row, label):
            words[:] = [*np.resize(words[(words > 0) & (words != END)], length - 1), END]
    made["target"][:, 1:], made["lengths"][:] = made["labels"][:, :-1], length
    return made


WORKLOAD = Workload(
    name="seq2seq",
    title="GRU encoder-decoder",
    kind="training",
    source=(
        "a GRU encoder and a GRU decoder with the attention of Luong et al., 'Effective approaches to attention-based "
        "neural machine translation' (EMNLP 2015), section 3.1, 'general'; for the translation task of the comparison "
        "for Ascend (2023), which does not give its sizes"
    ),
    data=("number_names", "multi30k"),
    weights=weights,
    hyperparameters={
        "words": Hyperparameter(60, "size of the source's vocabulary, with tokens that are no words", minimum=5),
        "target_words": Hyperparameter(60, "size of the target's vocabulary, with tokens that are no words", minimum=5),
        "length": Hyperparameter(
            24, "tokens of the longest sentence, its end included; longer ones are cut", minimum=2
        ),
        "embedding": Hyperparameter(256, "numbers that stand for a word", minimum=1),
        "hidden": Hyperparameter(256, "width of encoder and decoder", minimum=1),
        "dropout": Hyperparameter(
            0.3, "dropout probability of words and before the last layer", minimum=0.0, below=1.0
        ),
        "clip": Hyperparameter(1.0, "greatest norm of all gradients together; longer ones are shortened", minimum=1e-6),
        "epsilon": Hyperparameter(1e-8, "added to the denominator of Adam", minimum=0.0),
    },
    data_defaults={"multi30k": {"words": 6000, "target_words": 6000, "length": 32}},
    batch_size=64,
    learning_rate=0.002,
    metric="bleu",
    metric_name="BLEU (13a, lower case)",
    thresholds={"multi30k": 10.0, "number_names": 80.0},
    gate=Gate({"dropout": DROPOUT_OFF, "epsilon": LARGE_EPSILON, "clip": SMALL_CLIP}),
    exercises={
        "padding of the source": Exercise(lambda samples: samples["source"][:, -1] == 0, shortened),
        # every sentence has a word at the first place; these have one, or their end, at the last
        "a source of full length": Exercise(lambda samples: samples["source"][:, -1] != 0, lengthened),
        "padding of the target": Exercise(lambda samples: samples["labels"][:, -1] == -1, shortened),
        "a target of full length": Exercise(lambda samples: samples["labels"][:, -1] != -1, lengthened),
    },
    dropouts=lambda values: (
        ("of the source's words", values["dropout"]),
        ("of the target's words", values["dropout"]),
        ("before the last layer", values["dropout"]),
    ),
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS_OF_STEPS,
        **EMBEDDING,
        **LABELS,
        **DROPOUT,
        **ADAM,
        "sequences": (
            "neither sorted nor packed: the encoder reads the padding too, and its state after the last word is looked "
            "up among its outputs by the length, by indexing in PyTorch and by ops.gather_nd in MindSpore"
        ),
        "attention": (
            "written out in both, with the lowest number of its type (PyTorch) or -1e9 (MindSpore) as the score of "
            "padding: either leaves it a weight of 0"
        ),
        "clipping": (
            "by the norm of all gradients together, to which PyTorch's clip_grad_norm_ adds 1e-6 and MindSpore's "
            "clip_by_global_norm nothing, which is little beside the 1.0 that is allowed"
        ),
        "predicted words": (
            "cast from int64, which MindSpore's argmax returns, to int32, as the words are that the decoder gets first"
        ),
        **JAX_WEIGHTS,
        **JAX_RECURRENT,
        **JAX_LEFT_OUT,
        "JAX: clipping": (
            "by the norm of all gradients together plus 1e-6, as in PyTorch: by a formula in the file, since "
            "optax.clip_by_global_norm adds nothing"
        ),
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_EMBEDDING,
        **TENSORFLOW_RECURRENT,
        **TENSORFLOW_LEFT_OUT,
        **TENSORFLOW_ADAM,
        "TensorFlow: clipping": (
            "by the norm of all gradients together, to which Keras's global_clipnorm adds nothing: the 1e-6 of PyTorch "
            "is added in benchlib/workloads/_keras.py"
        ),
        **MXNET_LOSS,
        **MXNET_ADAM,
        **MXNET_GATES,
        "MXNet: attention": "as in MindSpore, with -1e9 as the score of padding",
        "MXNet: clipping": "by gluon.utils.clip_global_norm, which adds 1e-8 to the norm",
        **PADDLE_WEIGHTS,
        **PADDLE_LOSS,
        **PADDLE_LEFT_OUT,
        **PADDLE_GATES,
    },
    unit="sentences",
    fields=("source", "lengths", "target", "labels"),
    optimizer_state=2,
    holds=lambda values: values["length"] * (2 * values["embedding"] + 2 * values["hidden"] + values["target_words"]),
)
