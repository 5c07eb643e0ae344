"""The loops of ``by_hand.py``: the Rosetta CNN, model and training, as each framework's documentation has them.

    python by_hand_loops.py FRAMEWORK VALUES

VALUES are hyperparameters in JSON. A line with a number of steps is answered with the seconds of one. A loop has its
batches at hand, as the framework wants them, and nothing of benchlib; it runs in Python 3.6 and later.
"""

import functools
import json
import sys
import time

import numpy as np

BATCH = 64


def pytorch(values, images, labels):
    """As in the tutorial "Training a Classifier"."""
    import torch
    from torch import nn

    model = nn.Sequential(
        *(nn.Conv2d(3, 50, 3, padding=1), nn.ReLU(), nn.Conv2d(50, 50, 3, padding=1)),
        *(nn.MaxPool2d(2), nn.ReLU(), nn.Dropout(values["conv_dropout"])),
        *(nn.Conv2d(50, 100, 3, padding=1), nn.ReLU(), nn.Conv2d(100, 100, 3, padding=1)),
        *(nn.MaxPool2d(2), nn.ReLU(), nn.Dropout(values["conv_dropout"]), nn.Flatten()),
        *(nn.Linear(100 * (values["image_size"] // 4) ** 2, 512), nn.ReLU(), nn.Dropout(values["dense_dropout"])),
        nn.Linear(512, 10),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=values["learning_rate"], momentum=values["momentum"])

    def step(batch):
        inputs, targets = batch
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()

    return step, [(torch.tensor(x), torch.tensor(y).long()) for x, y in zip(images, labels)], lambda: None


def tensorflow(values, images, labels):
    """As in the tutorial "TensorFlow 2 quickstart for experts"; the CPU's convolutions want the channels last."""
    import tensorflow as tf

    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            *(layers.Conv2D(50, 3, padding="same", activation="relu"), layers.Conv2D(50, 3, padding="same")),
            *(layers.MaxPooling2D(2), layers.ReLU(), layers.Dropout(values["conv_dropout"])),
            *(layers.Conv2D(100, 3, padding="same", activation="relu"), layers.Conv2D(100, 3, padding="same")),
            *(layers.MaxPooling2D(2), layers.ReLU(), layers.Dropout(values["conv_dropout"]), layers.Flatten()),
            *(layers.Dense(512, activation="relu"), layers.Dropout(values["dense_dropout"]), layers.Dense(10)),
        ]
    )
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.SGD(values["learning_rate"], momentum=values["momentum"])

    @tf.function
    def train_step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = loss_object(targets, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    batches = [(tf.constant(x.transpose(0, 2, 3, 1)), tf.constant(y)) for x, y in zip(images, labels)]
    return lambda batch: train_step(*batch), batches, lambda: None


def jax(values, images, labels):
    """As in Flax's tutorial "MNIST tutorial"."""
    import jax
    import optax
    from flax import nnx

    rngs, side = nnx.Rngs(0), values["image_size"] // 4
    pool = functools.partial(nnx.max_pool, window_shape=(2, 2), strides=(2, 2))

    def conv(inputs, outputs):
        return nnx.Conv(inputs, outputs, (3, 3), padding=1, rngs=rngs)

    model = nnx.Sequential(
        *(conv(3, 50), nnx.relu, conv(50, 50), pool, nnx.relu, nnx.Dropout(values["conv_dropout"], rngs=rngs)),
        *(conv(50, 100), nnx.relu, conv(100, 100), pool, nnx.relu, nnx.Dropout(values["conv_dropout"], rngs=rngs)),
        *(lambda x: x.reshape(x.shape[0], -1), nnx.Linear(100 * side * side, 512, rngs=rngs), nnx.relu),
        *(nnx.Dropout(values["dense_dropout"], rngs=rngs), nnx.Linear(512, 10, rngs=rngs)),
    )
    optimizer = nnx.Optimizer(model, optax.sgd(values["learning_rate"], values["momentum"]), wrt=nnx.Param)

    def loss_fn(model, inputs, targets):
        return optax.softmax_cross_entropy_with_integer_labels(model(inputs), targets).mean()

    @nnx.jit
    def train_step(model, optimizer, inputs, targets):
        loss, gradients = nnx.value_and_grad(loss_fn)(model, inputs, targets)
        optimizer.update(model, gradients)
        return loss

    def synchronize():
        jax.block_until_ready(nnx.state(model))

    batches = [(jax.numpy.asarray(x.transpose(0, 2, 3, 1)), jax.numpy.asarray(y)) for x, y in zip(images, labels)]
    return lambda batch: train_step(model, optimizer, *batch), batches, synchronize


def mxnet(values, images, labels):
    """As in Gluon's tutorial of training, hybridized as its page on performance says."""
    import mxnet as mx
    from mxnet import autograd, gluon
    from mxnet.gluon import nn

    net = nn.HybridSequential()
    net.add(nn.Conv2D(50, 3, padding=1, activation="relu"), nn.Conv2D(50, 3, padding=1), nn.MaxPool2D(2))
    net.add(nn.Activation("relu"), nn.Dropout(values["conv_dropout"]))
    net.add(nn.Conv2D(100, 3, padding=1, activation="relu"), nn.Conv2D(100, 3, padding=1), nn.MaxPool2D(2))
    net.add(nn.Activation("relu"), nn.Dropout(values["conv_dropout"]))
    net.add(nn.Dense(512, activation="relu"), nn.Dropout(values["dense_dropout"]), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    criterion.hybridize(static_alloc=True, static_shape=True)
    settings = {"learning_rate": values["learning_rate"], "momentum": values["momentum"]}
    trainer = gluon.Trainer(net.collect_params(), "sgd", settings)

    def step(batch):
        inputs, targets = batch
        with autograd.record():
            loss = criterion(net(inputs), targets)
        loss.backward()
        trainer.step(BATCH)

    return step, [(mx.nd.array(x), mx.nd.array(y)) for x, y in zip(images, labels)], mx.nd.waitall


def mindspore(values, images, labels):
    """As in MindSpore's API pages of ``WithLossCell`` and ``TrainOneStepCell``, in graph mode."""
    import mindspore as ms
    from mindspore import nn

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")

    def conv(inputs, outputs):
        return nn.Conv2d(inputs, outputs, 3, pad_mode="pad", padding=1, has_bias=True)

    net = nn.SequentialCell(
        *(conv(3, 50), nn.ReLU(), conv(50, 50), nn.MaxPool2d(2, stride=2), nn.ReLU()),
        *(nn.Dropout(p=values["conv_dropout"]), conv(50, 100), nn.ReLU(), conv(100, 100)),
        *(nn.MaxPool2d(2, stride=2), nn.ReLU(), nn.Dropout(p=values["conv_dropout"]), nn.Flatten()),
        *(nn.Dense(100 * (values["image_size"] // 4) ** 2, 512), nn.ReLU(), nn.Dropout(p=values["dense_dropout"])),
        nn.Dense(512, 10),
    )
    optimizer = nn.SGD(net.trainable_params(), learning_rate=values["learning_rate"], momentum=values["momentum"])
    train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    train.set_train()
    losses = []

    def step(batch):
        losses[:] = [train(*batch)]

    batches = [(ms.Tensor(x), ms.Tensor(y)) for x, y in zip(images, labels)]
    return step, batches, lambda: losses[0].asnumpy()


def chainer(values, images, labels):
    """As in Chainer's guide "How to Write a Training Loop", with iDeep where it is installed."""
    import chainer
    from chainer import functions as F
    from chainer import links as L

    side = values["image_size"] // 4
    model = chainer.Sequential(
        *(L.Convolution2D(3, 50, 3, pad=1), F.relu, L.Convolution2D(50, 50, 3, pad=1)),
        *(lambda x: F.max_pooling_2d(x, 2), F.relu, lambda x: F.dropout(x, values["conv_dropout"])),
        *(L.Convolution2D(50, 100, 3, pad=1), F.relu, L.Convolution2D(100, 100, 3, pad=1)),
        *(lambda x: F.max_pooling_2d(x, 2), F.relu, lambda x: F.dropout(x, values["conv_dropout"])),
        *(L.Linear(100 * side * side, 512), F.relu, lambda x: F.dropout(x, values["dense_dropout"])),
        L.Linear(512, 10),
    )
    if chainer.backends.intel64.is_ideep_available():
        chainer.global_config.use_ideep = "auto"
        model.to_intel64()
    optimizer = chainer.optimizers.MomentumSGD(lr=values["learning_rate"], momentum=values["momentum"]).setup(model)

    def step(batch):
        inputs, targets = batch
        loss = F.softmax_cross_entropy(model(inputs), targets)
        model.cleargrads()
        loss.backward()
        optimizer.update()

    return step, list(zip(images, labels)), lambda: None


def cntk(values, images, labels):
    """As in CNTK's tutorial 103, part D: layers, a trainer, its minibatches; labels are one of ten."""
    import cntk as C
    from cntk.layers import Convolution2D, Dense, Dropout, MaxPooling, Sequential

    side = values["image_size"]
    inputs, targets = C.input_variable((3, side, side)), C.input_variable(10)
    model = Sequential(
        [
            *(Convolution2D((3, 3), 50, pad=True, activation=C.relu), Convolution2D((3, 3), 50, pad=True)),
            *(MaxPooling((2, 2), strides=2), C.relu, Dropout(values["conv_dropout"])),
            *(Convolution2D((3, 3), 100, pad=True, activation=C.relu), Convolution2D((3, 3), 100, pad=True)),
            *(MaxPooling((2, 2), strides=2), C.relu, Dropout(values["conv_dropout"])),
            *(Dense(512, activation=C.relu), Dropout(values["dense_dropout"]), Dense(10)),
        ]
    )(inputs)
    loss = C.cross_entropy_with_softmax(model, targets)
    rate = C.learning_parameter_schedule(values["learning_rate"], minibatch_size=BATCH)
    learner = C.momentum_sgd(model.parameters, rate, C.momentum_schedule(values["momentum"], minibatch_size=BATCH))
    trainer = C.Trainer(model, (loss, None), [learner])
    batches = [{inputs: x, targets: np.eye(10, dtype=np.float32)[y]} for x, y in zip(images, labels)]
    return trainer.train_minibatch, batches, lambda: trainer.previous_minibatch_loss_average


def theano(values, images, labels):
    """As in the tutorial "Convolutional Neural Networks (LeNet)", with dropout and momentum as Lasagne has them."""
    import theano
    from theano import tensor as T
    from theano.sandbox.rng_mrg import MRG_RandomStreams
    from theano.tensor import nnet
    from theano.tensor.signal.pool import pool_2d

    chance, streams = np.random.RandomState(0), MRG_RandomStreams(1)
    weights = []

    def weight(*shape):
        weights.append(theano.shared(chance.normal(0, 0.05, shape).astype(np.float32)))
        return weights[-1]

    def conv(x, inputs, outputs):
        y = nnet.conv2d(x, weight(outputs, inputs, 3, 3), border_mode="half")
        return y + weight(outputs).dimshuffle("x", 0, "x", "x")

    def dropout(x, p):
        return x / (1 - p) * streams.binomial(x.shape, p=1 - p, dtype="float32") if p else x

    x, y = T.tensor4(dtype="float32"), T.ivector()
    h = conv(nnet.relu(conv(x, 3, 50)), 50, 50)
    h = dropout(nnet.relu(pool_2d(h, (2, 2), ignore_border=True)), values["conv_dropout"])
    h = conv(nnet.relu(conv(h, 50, 100)), 100, 100)
    h = dropout(nnet.relu(pool_2d(h, (2, 2), ignore_border=True)), values["conv_dropout"])
    h = nnet.relu(T.dot(h.flatten(2), weight(100 * (values["image_size"] // 4) ** 2, 512)) + weight(512))
    logits = T.dot(dropout(h, values["dense_dropout"]), weight(512, 10)) + weight(10)
    loss = nnet.categorical_crossentropy(nnet.softmax(logits), y).mean()
    updates = []
    for one, gradient in zip(weights, T.grad(loss, weights)):
        velocity = theano.shared(np.zeros_like(one.get_value()))
        moved = np.float32(values["momentum"]) * velocity - np.float32(values["learning_rate"]) * gradient
        updates += [(velocity, moved), (one, one + moved)]
    train = theano.function([x, y], loss, updates=updates)
    return lambda batch: train(*batch), list(zip(images, labels)), lambda: None


def caffe2(values, images, labels):
    """As in the tutorial "MNIST", with batches that are fed."""
    from caffe2.python import brew, core, model_helper, optimizer, workspace

    core.GlobalInit(["caffe2", "--caffe2_log_level=2"])
    net = model_helper.ModelHelper(name="train", arg_scope={"order": "NCHW"})
    x = brew.conv(net, "data", "conv1", 3, 50, kernel=3, pad=1)
    x = brew.conv(net, brew.relu(net, x, x), "conv2", 50, 50, kernel=3, pad=1)
    x = brew.relu(net, brew.max_pool(net, x, "pool1", kernel=2, stride=2), "relu2")
    x = brew.dropout(net, x, "dropout1", ratio=values["conv_dropout"], is_test=0)
    x = brew.conv(net, x, "conv3", 50, 100, kernel=3, pad=1)
    x = brew.conv(net, brew.relu(net, x, x), "conv4", 100, 100, kernel=3, pad=1)
    x = brew.relu(net, brew.max_pool(net, x, "pool2", kernel=2, stride=2), "relu4")
    x = brew.dropout(net, x, "dropout2", ratio=values["conv_dropout"], is_test=0)
    x = brew.fc(net, x, "dense1", 100 * (values["image_size"] // 4) ** 2, 512)
    x = brew.dropout(net, brew.relu(net, x, x), "dropout3", ratio=values["dense_dropout"], is_test=0)
    x = brew.fc(net, x, "dense2", 512, 10)
    _, loss = net.net.SoftmaxWithLoss([x, "label"], ["softmax", "loss"])
    net.AddGradientOperators([loss])
    optimizer.build_sgd(net, values["learning_rate"], momentum=values["momentum"])
    workspace.FeedBlob("data", images[0])
    workspace.FeedBlob("label", labels[0])
    workspace.RunNetOnce(net.param_init_net)
    workspace.CreateNet(net.net)

    def step(batch):
        workspace.FeedBlob("data", batch[0])
        workspace.FeedBlob("label", batch[1])
        workspace.RunNet(net.net)

    return step, list(zip(images, labels)), lambda: workspace.FetchBlob(loss)


def paddle(values, images, labels):
    """As in the guide "Quick Start" of Paddle 2, with a loop of its own."""
    import paddle
    from paddle import nn

    model = nn.Sequential(
        *(nn.Conv2D(3, 50, 3, padding=1), nn.ReLU(), nn.Conv2D(50, 50, 3, padding=1)),
        *(nn.MaxPool2D(2), nn.ReLU(), nn.Dropout(values["conv_dropout"])),
        *(nn.Conv2D(50, 100, 3, padding=1), nn.ReLU(), nn.Conv2D(100, 100, 3, padding=1)),
        *(nn.MaxPool2D(2), nn.ReLU(), nn.Dropout(values["conv_dropout"]), nn.Flatten()),
        *(nn.Linear(100 * (values["image_size"] // 4) ** 2, 512), nn.ReLU(), nn.Dropout(values["dense_dropout"])),
        nn.Linear(512, 10),
    )
    optimizer = paddle.optimizer.Momentum(values["learning_rate"], values["momentum"], parameters=model.parameters())
    criterion = nn.CrossEntropyLoss()

    def step(batch):
        inputs, targets = batch
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

    batches = [(paddle.to_tensor(x), paddle.to_tensor(y.astype(np.int64))) for x, y in zip(images, labels)]
    return step, batches, lambda: None


def main():
    """Train, and answer each line with the seconds of a step."""
    framework, values = sys.argv[1], json.loads(sys.argv[2])
    chance, side = np.random.RandomState(0), values["image_size"]
    images = [chance.normal(size=(BATCH, 3, side, side)).astype(np.float32) for _ in range(8)]
    labels = [chance.randint(0, 10, BATCH).astype(np.int32) for _ in range(8)]
    step, batches, synchronize = globals()[framework](values, images, labels)
    for line in sys.stdin:
        started = time.perf_counter()
        for number in range(int(line)):
            step(batches[number % len(batches)])
        synchronize()
        print("\nseconds", (time.perf_counter() - started) / int(line), flush=True)


if __name__ == "__main__":
    main()
