"""Points that the files of several workloads settle so that all frameworks run the same model, as point: how. See
``benchlib.workloads.Workload.settled``.

The statements on PyTorch and MindSpore were read in, or tried with, the versions in ``requirements.lock``; those on
others in the versions of ``environments/NAME.txt``, as jax (with flax and optax), tensorflow (with Keras), mxnet,
chainer, cntk-2.7, theano, caffe2 and paddle. A statement on an earlier version names it.
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
GRADIENTS_OF_STEPS = {
    "gradients of the step before": (
        "are forgotten in PyTorch (zero_grad with set_to_none=True), in all versions: up to 1.13 its default was to "
        "fill them with zeros, and 1.4 has no other way of its own"
    ),
}
GRADIENTS = {
    "gradients": (
        "of the input and all weights, from a given gradient of the output: autograd.grad in PyTorch, value_and_grad "
        "with sens_param in MindSpore, whose step returns them, or graph mode would leave them out; MindSpore 2.0, "
        "whose value_and_grad has no sens_param, gets the same from the class behind it"
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
        'a number of pixels in both, with pad_mode="pad" in MindSpore, which takes pad_mode="same" by default'
    ),
}
WITH_BIAS = {
    "bias of convolutions": "has_bias=True in MindSpore, whose convolutions have none by default, unlike PyTorch's",
}
WITHOUT_BIAS = {
    "bias of convolutions": "none, as MindSpore's default is, with bias=False in PyTorch, whose default is one",
}
NORM_NAMES = {
    "names of batch normalisation": (
        "MindSpore's gamma, beta, moving_mean and moving_variance are PyTorch's weight, bias, running_mean and "
        "running_var, and are copied as these"
    ),
    "running variance": (
        "made of variances of samples in both (a sum over one number less), but of those of batches in MindSpore 2.0: "
        "there it is turned into PyTorch's, exactly, whenever weights are read or a model is evaluated, and not in "
        "steps, see frameworks/_mindspore_old.py"
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
        "ReLU is negative, so they act as minus infinity does in PyTorch"
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
        "epsilon before the bias is corrected, and PyTorch's after; MindSpore 2.0, which has no experimental.optim, "
        "gets an AdamW of our own, workloads/_mindspore.py: the operator behind nn.Adam, with an epsilon that is "
        "corrected, too"
    ),
}
JAX_WEIGHTS = {
    "JAX: names and order of weights": (
        "flax's kernel of a dense layer (inputs, outputs) or convolution (height, width, inputs, outputs) is PyTorch's "
        "weight (outputs, inputs, ...), and laid out so when it is loaded; its embedding is that weight, its scale, "
        "mean and var are weight, running_mean and running_var"
    ),
}
JAX_IMAGES = {
    "JAX: images": (
        "channels are the last of four dimensions, as nnx.Conv, nnx.BatchNorm and nnx.max_pool want them; batches are "
        "laid out so off the clock"
    ),
}
JAX_PADDING = {
    "JAX: padding": (
        'a number of pixels: nnx.Conv pads for the same size by default ("SAME", which with a stride of 2 begins one '
        "pixel later than PyTorch), nnx.max_pool not at all"
    ),
}
JAX_NORM = {
    "JAX: batch normalisation": (
        "momentum=0.9, the share of the old statistics, is PyTorch's 0.1, and flax's own is 0.99; the running variance "
        "is made that of a sample (over one number less), as PyTorch's is: flax's is that of the batch"
    ),
}
JAX_VARIANCE = {
    "JAX: variance of batch normalisation": (
        "the mean of squared differences (use_fast_variance=False), as in PyTorch: flax's own is a difference of mean "
        "squares, of whose digits a large mean leaves few"
    ),
}
JAX_RECURRENT = {
    "JAX: recurrent layers": (
        "a loop (jax.lax.scan) written out with two biases for each gate, because flax's cells have one, and Adam "
        "moves the sum of two by twice as much"
    ),
}
JAX_LEFT_OUT = {
    "JAX: labels that are left out": (
        "are not in the mean (where=), because optax's cross entropy with whole numbers has nothing like ignore_index; "
        "-1 is read as 0 before, for it would count from the end"
    ),
}
JAX_DECAY = {
    "JAX: weight decay": (
        "optax.add_decayed_weights before optax.sgd, which has none of its own: momentum takes it in, as PyTorch's does"
    ),
}
JAX_GRADIENTS = {
    "JAX: gradients": "by jax.vjp; a step returns them, or jax.jit would leave out unused results",
}
TENSORFLOW_WEIGHTS = {
    "TensorFlow: names and order of weights": (
        "Keras's kernel of a dense layer (inputs, outputs) or convolution (height, width, inputs, outputs) is "
        "PyTorch's weight (outputs, inputs, ...), and laid out so when it is loaded; its embeddings are that weight, "
        "its gamma, beta, moving_mean and moving_variance are weight, bias, running_mean and running_var. TensorFlow "
        "2.3 puts the layer's name before a weight's and an output's number after it: both are left out"
    ),
}
TENSORFLOW_IMAGES = {
    "TensorFlow: images": (
        "channels are the last of four dimensions, as Keras's layers want them on the CPU; batches are laid out so off "
        "the clock"
    ),
}
TENSORFLOW_PADDING = {
    "TensorFlow: padding of convolutions": (
        'as many pixels on each side, by padding="same" where the stride is 1 and in pixels, given to tf.nn.conv2d, '
        "where it is 2: there same begins one pixel later than PyTorch. In pixels the gradients take longer, and "
        "layers.ZeroPadding2D moves the image once more. TensorFlow 2.3 does not call a layer's convolution_op, which "
        "does so: it is put where the layer looks for its operator"
    ),
}
TENSORFLOW_POOLING = {
    "TensorFlow: padding of pooling": (
        "zeros, by layers.ZeroPadding2D before it, as keras.applications has it: nothing behind ReLU is negative"
    ),
}
TENSORFLOW_NORM = {
    "TensorFlow: batch normalisation": (
        "the operator FusedBatchNormV3, whose running variance is that of a sample (over one number less), as "
        "PyTorch's is: that of Keras's own layer is the batch's; epsilon is given as 1e-5, Keras's own is 1e-3, and "
        "the share of the old statistics as 0.9, Keras's own is 0.99"
    ),
}
TENSORFLOW_RECURRENT = {
    "TensorFlow: recurrent layers": (
        "of our own, with two biases for each gate, because Keras's LSTM has one, and Adam moves the sum of two by "
        "twice as much; PyTorch's weight (outputs, inputs) is laid out as (inputs, outputs) when it is loaded, an "
        "LSTM's in the order of gates that its operator has, too"
    ),
}
TENSORFLOW_LEFT_OUT = {
    "TensorFlow: labels that are left out": (
        "count nothing in the mean, because the cross entropy with whole numbers has nothing like ignore_index; -1 is "
        "read as 0 before, for on the CPU it is an error, and NaN on a GPU"
    ),
}
TENSORFLOW_SGD = {
    "TensorFlow: SGD": (
        "a Keras optimizer of our own with the operator ResourceApplyMomentum: keras.optimizers.SGD takes the rate "
        "into its velocity, which is another update where the rate changes, and its weight_decay is no part of the "
        "gradient. In TensorFlow 2.3 its base class is ours, too (workloads/_keras2.py)"
    ),
}
TENSORFLOW_ADAM = {
    "TensorFlow: Adam": (
        "a Keras optimizer of our own with the operator ResourceApplyAdam, which like keras.optimizers.Adam adds "
        "epsilon before the bias is corrected: it is given epsilon times the root of that correction, which comes to "
        "the same as PyTorch's. In TensorFlow 2.3 its base class is ours, too (workloads/_keras2.py)"
    ),
}
TENSORFLOW_EMBEDDING = {
    "TensorFlow: gradients of embeddings": (
        "made dense before the optimizer sees them: TensorFlow's name the rows that were looked up, one twice if it "
        "was so, of which the norm is another"
    ),
}
TENSORFLOW_GRADIENTS = {
    "TensorFlow: gradients": (
        "by tf.GradientTape from the given gradient (output_gradients=); a step returns them, or tf.function would "
        "leave out unused results"
    ),
}
MXNET = {
    "MXNet: training or evaluation": (
        "said of each forward pass, by autograd.record and autograd.predict_mode: a block has no behaviour of its own"
    ),
}
MXNET_LOSS = {
    **MXNET,
    "MXNet: mean loss": (
        "the mean over SoftmaxCrossEntropyLoss, which gives a loss for each sample; so Trainer.step gets a batch size "
        "of 1, by which it divides the gradients"
    ),
}
MXNET_SGD = {
    "MXNet: momentum": (
        "its velocity has the learning rate in it and PyTorch's has not, which is the same update while the rate stays "
        "as it is"
    ),
}
MXNET_DECAY = {
    "MXNet: weight decay": "of all weights, as gluon.Trainer has it unless a parameter's wd_mult says otherwise",
}
MXNET_ADAM = {
    "MXNet: Adam": (
        "a subclass in workloads/_gluon.py, because mx.optimizer.Adam adds epsilon before the bias is corrected: the "
        "same operator, adam_update, gets an epsilon that is corrected, too"
    ),
}
MXNET_NORM = {
    "MXNet: names of batch normalisation": "gamma and beta are PyTorch's weight and bias, and are copied as these",
    "MXNet: epsilon of batch normalisation": "1e-5 by default in Gluon, as in PyTorch",
    "MXNet: running variance": (
        "is made of variances of the batch, PyTorch's of those of a sample (a sum over one number less); it is turned "
        "into PyTorch's, exactly, whenever weights are read or a model is evaluated, and not in steps: see "
        "frameworks/mxnet.py"
    ),
}
MXNET_GATES = {
    "MXNet: gates": (
        "in cuDNN's order, which is PyTorch's (LSTM: input, forget, cell, output; GRU: reset, update, new), with both "
        "biases, and in a GRU the reset after the product: weights are copied as they are"
    ),
}
MXNET_GRADIENTS = {
    "MXNet: gradients": (
        "of output.backward(gradient), which writes them to arrays that the input and the weights have for that"
    ),
}
CHAINER = {
    "Chainer: training or evaluation": (
        'said of each forward pass, by chainer.using_config("train", ...): a link has no behaviour of its own'
    ),
}
CHAINER_DROPOUT = {
    "Chainer: dropout": (
        "by NumPy, with iDeep, too, whose own seeds its random numbers with the clock and drops the same for a second"
    ),
}
CHAINER_SGD = {
    "Chainer: momentum": (
        "its velocity has the learning rate in it and PyTorch's has not, which is the same update while the rate stays "
        "as it is"
    ),
}
CHAINER_DECAY = {
    "Chainer: weight decay": (
        "of all weights, by the hook WeightDecay, which adds it to the gradient before momentum takes it in"
    ),
}
CHAINER_ADAM = {
    "Chainer: Adam": (
        "a subclass in workloads/_chainer.py, because optimizers.Adam adds epsilon before the bias is corrected: its "
        "update gets an epsilon that is corrected, too"
    ),
}
CHAINER_POOLING = {
    "Chainer: pooling": (
        "cover_all=False: by default F.max_pooling_2d has one more row and column wherever some pixels would be left "
        "out; its padding is minus infinity, as PyTorch's"
    ),
}
CHAINER_NORM = {
    "Chainer: batch normalisation": (
        "gamma, beta, avg_mean and avg_var are PyTorch's weight, bias, running_mean and running_var; epsilon is given "
        "as 1e-5, Chainer's own is 2e-5; the running variance is that of a sample, as PyTorch's"
    ),
    "Chainer: momentum of batch normalisation": "decay, 0.9 by default, is the share of the old statistics",
}
CHAINER_RECURRENT = {
    "Chainer: recurrent layers": (
        "a loop written out, with two biases for each gate: on the CPU L.NStepGRU and L.NStepLSTM have them, too, but "
        "put their weights together anew at each step, and take twice as long; L.StatefulGRU resets before the product"
    ),
}
CHAINER_GATES = {
    "Chainer: gates": (
        "F.lstm has them unit by unit (new, entry, forget, exit): the weights, in PyTorch's order, are put into that "
        "one in each forward pass"
    ),
}
CHAINER_GRADIENTS = {
    "Chainer: gradients": "by output.backward() after output.grad is set; those of the step before are cleared first",
}
CNTK_WEIGHTS = {
    "CNTK: names and order of weights": (
        "W and b are PyTorch's weight and bias; a dense layer's W (inputs, outputs), or (channels, height, width, "
        "outputs) behind a convolution, is turned when it is loaded"
    ),
}
CNTK_LOSS = {
    "CNTK: labels": "are ones and zeros, one of so many, as its cross entropy wants them; laid out so off the clock",
    "CNTK: mean loss": "made by the trainer of the losses of a batch, as that of the gradients is",
}
CNTK_SGD = {
    "CNTK: momentum": (
        "unit_gain=False: by default a gradient counts by 1 - momentum only; its velocity has the learning rate in it "
        "and PyTorch's has not, which is the same update while the rate stays as it is"
    ),
    "CNTK: learning rate": "that of a whole batch (minibatch_size=IGNORE): by default it may be one of a sample",
}
CNTK_ADAM = {
    "CNTK: Adam": (
        "C.adam in a learner of our own (workloads/_cntk.py), because it adds epsilon before the bias is corrected: by "
        "a schedule of its second momentum its average of squares is the corrected one, and one of its rate takes out "
        "the correction that it still makes, which comes to PyTorch's update"
    ),
}
CNTK_EMBEDDING = {
    "CNTK: embedding": (
        "C.gather, whose gradient is dense: that of a product with sparse ones and zeros, as its own layer makes it, "
        "is sparse, for which there is no C.adam on the CPU"
    ),
}
CNTK_RECURRENT = {
    "CNTK: recurrent layers": (
        "Recurrence over a step of our own, with two biases for each gate and the reset after the product: its GRU has "
        "one bias and resets before, and its optimized_rnnstack, which is cuDNN's, is for GPUs only"
    ),
}
CNTK_PADDING = {
    "CNTK: padding": (
        "half the kernel on each side, by auto_padding; an image smaller than the kernel, which it refuses, gets its "
        "zeros by C.pad before"
    ),
}
CNTK_NORM = {
    "CNTK: batch normalisation": (
        "scale, bias, aggregate_mean and aggregate_variance are PyTorch's weight, bias, running_mean and running_var; "
        "epsilon is given as 1e-5, CNTK's own is 1e-5, too"
    ),
    "CNTK: gradients": (
        "which no step computes, and the gate compares: of batch normalisation written out, because CNTK's own goes "
        "back through the statistics of the batch"
    ),
}
PADDLE_WEIGHTS = {
    "PaddlePaddle: dense layers": (
        "their weight (inputs, outputs) is PyTorch's (outputs, inputs), and laid out so when it is loaded"
    ),
}
PADDLE_LOSS = {
    "PaddlePaddle: labels": "are int64, as in PyTorch",
    "PaddlePaddle: loss": (
        "of one sample 64 at most on the CPU, whose softmax takes no exponent below -64; gradients are the same. The "
        "gate compares no losses of large weights. What cuts nothing, logsumexp, is 7 times as slow"
    ),
    "PaddlePaddle: gradients between steps": (
        "forgotten, by clear_grad(set_to_zero=False), as PyTorch's zero_grad does: by default they are set to zero"
    ),
}
PADDLE_LEFT_OUT = {
    "PaddlePaddle: labels that are left out": (
        "the sum over the others is divided by their number, because with ignore_index=-1 the mean is over all labels"
    ),
}
PADDLE_DECAY = {
    "PaddlePaddle: weight decay": "of all weights, to whose gradients Momentum adds it, as PyTorch's SGD does",
}
PADDLE_NORM = {
    "PaddlePaddle: names of batch normalisation": (
        "_mean and _variance are PyTorch's running_mean and running_var, and are copied as these"
    ),
    "PaddlePaddle: momentum of batch normalisation": "0.9, the share of the old statistics, is PyTorch's 0.1",
    "PaddlePaddle: running variance": (
        "is made of variances of the batch, PyTorch's of those of a sample (a sum over one number less); it is turned "
        "into PyTorch's, exactly, whenever weights are read or a model is evaluated, and not in steps: see "
        "frameworks/paddle.py"
    ),
}
PADDLE_GATES = {
    "PaddlePaddle: gates": (
        "in cuDNN's order, which is PyTorch's (LSTM: input, forget, cell, output; GRU: reset, update, new), with both "
        "biases, and in a GRU the reset after the product: weights are copied as they are"
    ),
}
PADDLE_GRADIENTS = {
    "PaddlePaddle: gradients": (
        "of output.backward(gradient), which leaves them with the input and the weights; each step forgets the earlier "
        "ones"
    ),
}
THEANO_LOSS = {
    "Theano: cross entropy": (
        "the logarithm of softmax, for which Theano puts an operation of its own that does not saturate"
    ),
}
THEANO_CONVOLUTION = {
    "Theano: convolutions": "filter_flip=False: by default kernels are turned by half a circle, as in mathematics",
}
THEANO_DROPOUT = {
    "Theano: dropout": (
        "a mask of MRG_RandomStreams, and what is kept divided by its share: Theano has no operation for it"
    ),
}
THEANO_POOLING = {
    "Theano: pooling": (
        "the larger of two, twice: the gradient of its pool_2d goes to all numbers that are equally large, which a "
        "plain ground makes, and PyTorch's to the first"
    ),
}
THEANO_SGD = {
    "Theano: momentum": "written out as PyTorch's update, because Theano has no optimizers",
}
THEANO_ADAM = {
    "Theano: Adam": (
        "written out, because Theano has no optimizers; both corrections are made to the learning rate and to epsilon, "
        "which comes to PyTorch's update"
    ),
}
THEANO_RECURRENT = {
    "Theano: recurrent layers": (
        "theano.scan over a step of our own, because Theano has no layers; the products with the inputs of all steps "
        "are one, before it"
    ),
}
THEANO_NORM = {
    "Theano: batch normalisation": (
        "batch_normalization of given statistics and a deviation: batch_normalization_test refuses an epsilon of 1e-5 "
        "in fp32, where it is a little less"
    ),
}
CAFFE2_CONVOLUTION = {
    "Caffe2: first convolution": "no_gradient_to_input: else Caffe2 makes a gradient of the images, too",
}
CAFFE2_DROPOUT = {
    "Caffe2: dropout": "each operator has a seed of its own: of the same one all would drop the same",
}
CAFFE2_POOLING = {
    "Caffe2: pooling (not settled)": (
        "the gradient of its MaxPool goes to all numbers that are equally large, and PyTorch's to the first: where "
        "images have a plain ground it is another gradient, so that there is no ratio. By TopK it would be PyTorch's, "
        "in seven times the time of MaxPool"
    ),
}
CAFFE2_SGD = {
    "Caffe2: momentum": (
        "nesterov=False: by default it is Nesterov's; its velocity has the learning rate in it and PyTorch's has not, "
        "which is the same update while the rate stays as it is"
    ),
}
CAFFE2_ADAM = {
    "Caffe2: Adam": (
        "written in operators (workloads/_caffe2.py), because its own adds epsilon before the bias is corrected, and "
        "counts the first step as the second"
    ),
}
CAFFE2_EMBEDDING = {
    "Caffe2: embedding": "dense_gradient: else its optimizers leave the momentum of absent words as it is",
}
CAFFE2_RECURRENT = {
    "Caffe2: recurrent layers": "linear_before_reset: the reset is behind the product, as in cuDNN",
}
CAFFE2_NORM = {
    "Caffe2: batch normalisation": (
        "_s, _b, _rm and _riv are PyTorch's weight, bias, running_mean and running_var; _riv is no inverse"
    ),
    "Caffe2: gradients": (
        "which no step computes, and the gate compares: of batch normalisation written out, because Caffe2's own has "
        "no way back in evaluation"
    ),
}
