"""What is settled in the files of several workloads so that all frameworks run the same model, as what: how. See
``benchlib.workloads.Workload.settled``.

What is said here of PyTorch and MindSpore was read in, or tried with, the versions in ``requirements.lock``.
"""

from __future__ import annotations

INITIAL_WEIGHTS = {
    "initial weights": (
        "drawn once, as workload.py says, and copied into both: each framework's own come from its own generator"
    ),
}
EMBEDDING = {
    "initial embedding": (
        "one of the weights that are copied into both: PyTorch's own has a standard deviation of 1, MindSpore's "
        "(embedding_table) of 0.01"
    ),
}
LABELS = {
    "labels": (
        "whole numbers are int64 in PyTorch, whose cross entropy refuses int32 labels, and int32 in MindSpore, as the "
        "manual of its cross entropy asks"
    ),
}
GRADIENTS = {
    "gradients": (
        "of the input and all weights, from a given gradient of the output: autograd.grad in PyTorch, value_and_grad "
        "with sens_param in MindSpore, whose step returns them, or graph mode would leave them out"
    ),
}
BEHAVIOUR = {
    "training or evaluation": (
        "set in both when a model is built, because PyTorch's modules begin in training behaviour and MindSpore's "
        "cells in that of evaluation"
    ),
}
DROPOUT = {
    **BEHAVIOUR,
    "dropout probability": (
        "given by name, p=, in MindSpore, where the first argument of nn.Dropout is the probability to keep a number"
    ),
    "dropout objects": (
        "one for each place: MindSpore seeds a dropout when it is made, and in graph mode one that is applied twice "
        "drops the same twice"
    ),
}
PADDING = {
    "padding of convolutions": (
        'a number of pixels in both, with pad_mode="pad" in MindSpore, which takes pad_mode="same" unless told'
    ),
}
WITH_BIAS = {
    "bias of convolutions": "has_bias=True in MindSpore, whose convolutions have none unless told, unlike PyTorch's",
}
WITHOUT_BIAS = {
    "bias of convolutions": "none, as MindSpore's default is, with bias=False in PyTorch, whose default is one",
}
NORM_NAMES = {
    "names of batch normalisation": (
        "MindSpore's gamma, beta, moving_mean and moving_variance are PyTorch's weight, bias, running_mean and "
        "running_var, and are copied as these"
    ),
}
NORM_MOMENTUM = {
    "momentum of batch normalisation": (
        "each framework's default, which is the same: 0.1 is the share of the new batch in PyTorch, 0.9 that of the "
        "old statistics in MindSpore"
    ),
}
POOLING = {
    "padding of pooling": (
        "in MindSpore zeros, put around the image before it, because its own padded pooling is slow: nothing behind "
        "ReLU is negative, so they do what minus infinity does in PyTorch"
    ),
}
DECAY_OF_ALL = {
    "weight decay": (
        "of all weights: MindSpore's nn.SGD gets them as a parameter group, because without one it leaves out those "
        "with gamma or beta in their names, which are batch normalisation's"
    ),
}
ADAM = {
    "Adam": (
        "experimental.optim.AdamW without decay in MindSpore, because its nn.Adam and experimental.optim.Adam add "
        "epsilon before the bias is corrected, and PyTorch's after"
    ),
}
MXNET = {
    "training or evaluation in MXNet": (
        "said of each forward pass, by autograd.record and autograd.predict_mode: a block has no behaviour of its own"
    ),
}
MXNET_LOSS = {
    **MXNET,
    "mean loss in MXNet": (
        "the mean over SoftmaxCrossEntropyLoss, which gives a loss for each sample; so Trainer.step gets a batch size "
        "of 1, by which it divides the gradients"
    ),
}
MXNET_SGD = {
    "momentum in MXNet": (
        "its velocity has the learning rate in it and PyTorch's has not, which is the same update while the rate stays "
        "as it is"
    ),
}
MXNET_DECAY = {
    "weight decay in MXNet": "of all weights, as gluon.Trainer has it unless a parameter's wd_mult says otherwise",
}
MXNET_ADAM = {
    "Adam in MXNet": (
        "a subclass in workloads/_gluon.py, because mx.optimizer.Adam adds epsilon before the bias is corrected: the "
        "same operator, adam_update, gets an epsilon that is corrected, too"
    ),
}
MXNET_NORM = {
    "names of batch normalisation in MXNet": "gamma and beta are PyTorch's weight and bias, and are copied as these",
    "epsilon of batch normalisation in MXNet": "1e-5 by default in Gluon, as in PyTorch",
    "running variance in MXNet": (
        "is made of variances of the batch, PyTorch's of those of a sample (a sum over one number less); it is turned "
        "into PyTorch's, exactly, whenever weights are read or a model is evaluated, and not in steps: see "
        "frameworks/mxnet.py"
    ),
}
MXNET_GATES = {
    "gates in MXNet": (
        "in cuDNN's order, which is PyTorch's (LSTM: input, forget, cell, output; GRU: reset, update, new), with both "
        "biases, and in a GRU the reset after the product: weights are copied as they are"
    ),
}
MXNET_GRADIENTS = {
    "gradients in MXNet": (
        "of output.backward(gradient), which writes them to arrays that the input and the weights have for that"
    ),
}
