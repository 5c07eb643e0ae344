"""The workload ``bert``, free of any framework."""

from __future__ import annotations

import numpy as np

from benchlib.errors import BenchlibError
from benchlib.workloads import Exercise, Gate, Hyperparameter, Samples, Values, Weight, Work, Workload
from benchlib.workloads.neutral import DROPOUT_OFF, LARGE_DECAY, LARGE_EPSILON
from benchlib.workloads.settled import (
    DROPOUT,
    EMBEDDING,
    GRADIENTS_OF_STEPS,
    INITIAL_WEIGHTS,
    JAX_LEFT_OUT,
    JAX_WEIGHTS,
    LABELS,
    PADDLE_LEFT_OUT,
    PADDLE_LOSS,
    PADDLE_WEIGHTS,
    TENSORFLOW_ADAM,
    TENSORFLOW_EMBEDDING,
    TENSORFLOW_LEFT_OUT,
    TENSORFLOW_WEIGHTS,
)

DEVIATION = 0.02  # of all initial weights that are drawn
UNKNOWN, FIRST = 2, 5  # the token, and that of the first word: see ``benchlib.data.corpus``
EPSILON = 1e-12  # of layer normalisation
WARM_UP = (2, "in three steps it is over, and they move the weights by enough to be compared")


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""
    words, hidden, inner = values["words"], values["hidden"], values["intermediate"]

    def table(name: str, rows: int) -> dict[str, Weight]:
        return {f"{name}.weight": Weight((rows, hidden), "normal", deviation=DEVIATION)}

    def dense(name: str, inputs: int, outputs: int) -> dict[str, Weight]:
        return {
            f"{name}.weight": Weight((outputs, inputs), "normal", deviation=DEVIATION),
            f"{name}.bias": Weight((outputs,), "zeros"),
        }

    def norm(name: str) -> dict[str, Weight]:
        return {f"{name}.weight": Weight((hidden,), "ones"), f"{name}.bias": Weight((hidden,), "zeros")}

    arrays = {**table("words", words), **table("places", values["length"]), **table("segments", 2), **norm("norm")}
    for layer in range(values["layers"]):
        name = f"layers.{layer}"
        arrays.update({**dense(f"{name}.qkv", hidden, 3 * hidden), **dense(f"{name}.mixed", hidden, hidden)})
        arrays.update(norm(f"{name}.norm1"))
        arrays.update({**dense(f"{name}.inner", hidden, inner), **dense(f"{name}.outer", inner, hidden)})
        arrays.update(norm(f"{name}.norm2"))
    arrays.update({**dense("guess", hidden, hidden), **norm("guess_norm"), "guess_bias": Weight((words,), "zeros")})
    return {**arrays, **dense("pool", hidden, hidden), **dense("follows", hidden, 2)}


def work(values: Values) -> Work:
    """The work of a sample's forward pass: the matrix products, whose inputs and outputs have to be moved."""
    hidden, inner, length, masked = (values[name] for name in ("hidden", "intermediate", "length", "masked"))
    of_layer = length * (4 * hidden**2 + 2 * hidden * inner) + 2 * length**2 * hidden
    heads = masked * (hidden**2 + hidden * values["words"]) + hidden**2
    moved = length * (10 * hidden + 2 * inner) + 2 * values["heads"] * length**2
    return Work(float(values["layers"] * of_layer + heads), 4.0 * (values["layers"] * moved + masked * values["words"]))


def fits(values: Values) -> None:
    """Each head of the attention gets an equal share of the width."""
    if values["hidden"] % values["heads"]:
        raise BenchlibError(
            f"hyperparameters.hidden: {values['hidden']} is no multiple of the {values['heads']} heads of the attention"
        )


def shortened(samples: Samples) -> dict[str, np.ndarray]:
    """Pairs that end after half of their tokens, and the masked words of these."""
    made = {name: array.copy() for name, array in samples.items()}
    length = made["tokens"].shape[1] // 2
    made["tokens"][:, length:], made["segments"][:, length:] = 0, 0
    outside = made["places"] >= length
    made["labels"][outside], made["places"][outside] = -1, 0
    return made


def filled(samples: Samples) -> dict[str, np.ndarray]:
    """Pairs of which as many words are to be guessed as there is room for, if need be some of them again."""
    words, masked = samples["tokens"].copy(), samples["labels"] != -1
    words[np.nonzero(masked)[0], samples["places"][masked]] = samples["labels"][masked]
    room = samples["places"].shape[1]
    places = np.stack([np.resize(np.flatnonzero(row >= FIRST), room) for row in words])
    labels = np.take_along_axis(words, places, axis=1)
    return {**samples, "places": places.astype(samples["places"].dtype), "labels": labels}


def masked_at(samples: Samples, place: int) -> np.ndarray:
    """The pairs that have a word to be guessed at this place of their text."""
    return ((samples["places"] == place) & (samples["labels"] != -1)).any(axis=1)


def forgotten(samples: Samples) -> dict[str, np.ndarray]:
    """Pairs whose second token is a word that the vocabulary has not."""
    tokens = samples["tokens"].copy()
    tokens[:, 1] = UNKNOWN
    return {**samples, "tokens": tokens}


WORKLOAD = Workload(
    name="bert",
    title="BERT",
    kind="training",
    source=(
        "BERT of Devlin et al., 'BERT: pre-training of deep bidirectional transformers for language understanding' "
        "(NAACL 2019), pre-trained on masked words and next sentences; its sizes are hyperparameters: 12 layers of "
        "768, 12 heads and 3072 inside are the paper's base model, the defaults are those known as BERT-tiny (Turc et "
        "al. 2019)"
    ),
    data=("pydoc", "text"),
    weights=weights,
    work=work,
    fits=fits,
    hyperparameters={
        "words": Hyperparameter(4000, "size of the vocabulary, with the tokens that are no words", minimum=6),
        "length": Hyperparameter(128, "tokens of a pair of sentences", minimum=8),
        "masked": Hyperparameter(20, "most masked words of a pair", minimum=1),
        "layers": Hyperparameter(2, "transformer layers", minimum=1, maximum=1000),
        "hidden": Hyperparameter(128, "width of a layer", minimum=1),
        "heads": Hyperparameter(2, "heads of the attention", minimum=1),
        "intermediate": Hyperparameter(512, "width inside a layer's dense part", minimum=1),
        "dropout": Hyperparameter(0.1, "dropout probability, of the attention's weights too", minimum=0.0, below=1.0),
        "weight_decay": Hyperparameter(0.01, "decay of matrices, as a factor of them", minimum=0.0),
        "warm_up": Hyperparameter(100, "steps in which the learning rate rises to its value", minimum=1, maximum=10**9),
        "epsilon": Hyperparameter(1e-6, "added to the denominator of AdamW", minimum=0.0),
    },
    batch_size=32,
    learning_rate=5e-4,
    metric="accuracy",
    metric_name="accuracy of masked test words",
    gate=Gate({"dropout": DROPOUT_OFF, "epsilon": LARGE_EPSILON, "weight_decay": LARGE_DECAY, "warm_up": WARM_UP}),
    exercises={
        "padding": Exercise(lambda samples: samples["tokens"][:, -1] == 0, shortened),
        "a pair of full length": Exercise(lambda samples: samples["tokens"][:, -1] != 0),
        "fewer masked words than places": Exercise(lambda samples: samples["labels"][:, -1] == -1, shortened),
        "as many masked words as there is room for": Exercise(lambda samples: samples["labels"][:, -1] != -1, filled),
        # before it is the token that a pair starts with, behind the last one the token that ends it
        "a masked word at the first place": Exercise(lambda samples: masked_at(samples, 1)),
        "a masked word at the last place": Exercise(lambda samples: masked_at(samples, samples["tokens"].shape[1] - 2)),
        "an unknown word": Exercise(lambda samples: (samples["tokens"] == UNKNOWN).any(axis=1), forgotten),
    },
    dropouts=lambda values: (
        ("of the words", values["dropout"]),
        *(
            (f"{place} of layer {layer}", values["dropout"])
            for layer in range(values["layers"])
            for place in ("of the attention", "after the attention", "after the dense part")
        ),
    ),
    schedule=lambda values: values["warm_up"],
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS_OF_STEPS,
        **EMBEDDING,
        **LABELS,
        **DROPOUT,
        "GELU": (
            "approximate=False in MindSpore, which takes the tanh form by default; PyTorch's default is the exact one"
        ),
        "epsilon of layer normalisation": f"given to all as {EPSILON:g}: PyTorch's own is 1e-5, MindSpore's 1e-7",
        "names of layer normalisation": (
            "MindSpore's gamma and beta are PyTorch's weight and bias, and are copied as these"
        ),
        "attention": (
            "one operator in PyTorch, products and softmax in MindSpore, where the files give the factor that "
            "PyTorch's takes by itself, 1 over the root of a head's width"
        ),
        "padding of sequences": (
            "PyTorch's mask sets the scores of padding to minus infinity, MindSpore's file to -1e9: a weight of 0 in "
            "fp32 either way"
        ),
        "dropout of attention": (
            "PyTorch's operator drops in evaluation too unless its probability is set to 0 there; in MindSpore it is "
            "an nn.Dropout of its own"
        ),
        "AdamW": (
            "experimental.optim.AdamW in MindSpore, because its nn.AdamWeightDecay does not correct the bias; one of "
            "our own in 2.0, which has none"
        ),
        "weight decay": (
            "of matrices alone, by parameter groups in both, because AdamW lets all weights decay by default"
        ),
        "order of gradients": (
            "that of the optimizer's groups, because MindSpore's optimizers match gradients and weights by place"
        ),
        "warm-up": (
            "LinearLR in both, advanced after each step; MindSpore's is that of experimental.optim, which takes no "
            "optimizer of nn"
        ),
        **JAX_WEIGHTS,
        **JAX_LEFT_OUT,
        "JAX: GELU": "approximate=False, because nnx.gelu takes the tanh form by default",
        "JAX: epsilon of layer normalisation": f"given as {EPSILON:g}: flax's own is 1e-6",
        "JAX: attention": (
            "products and softmax, with the lowest number of its type as the score of padding: "
            "nnx.dot_product_attention does the same where it drops, and hides its dropout from the gate"
        ),
        "JAX: weight decay and warm-up": (
            "a mask of optax.adamw for matrices alone, and optax.linear_schedule, which is asked for a rate before "
            "each step"
        ),
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_EMBEDDING,
        **TENSORFLOW_LEFT_OUT,
        **TENSORFLOW_ADAM,
        "TensorFlow: GELU": "tf.nn.gelu, which is the exact one by default; before 2.4 its formula with tf.math.erf",
        "TensorFlow: epsilon of layer normalisation": f"given as {EPSILON:g}: Keras's own is 1e-3",
        "TensorFlow: attention": (
            "products and softmax, with the lowest number of its type as the score of padding: Keras's "
            "layers.MultiHeadAttention has weights of its own for each of the three"
        ),
        "TensorFlow: weight decay and warm-up": (
            "Keras's decoupled decay with all weights of one dimension excluded, and a LearningRateSchedule, which is "
            "asked for a rate before each step"
        ),
        **PADDLE_WEIGHTS,
        **PADDLE_LOSS,
        **PADDLE_LEFT_OUT,
        "PaddlePaddle: attention": (
            "scaled_dot_product_attention, which wants the heads behind the length, so they are not moved before it"
        ),
    },
    unit="pairs of sentences",
    fields=("tokens", "segments", "places", "follows", "labels"),
    targets=2,
    optimizer_state=2,
    holds=lambda values: (
        values["layers"] * values["length"] * (5 * values["hidden"] + values["intermediate"])
        + values["masked"] * values["words"]
    ),
)
