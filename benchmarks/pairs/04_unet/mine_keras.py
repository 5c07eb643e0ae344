"""A small U-Net that gives each pixel one of two classes, in Keras."""

import keras
from keras import layers


def conv_block(x, filters):
    """Two 3x3 convolutions, each with batch norm and ReLU."""
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
        x = layers.Activation("relu")(x)
    return x


def up_block(x, skip, filters):
    """Doubles the resolution and joins what came from the way down."""
    x = layers.UpSampling2D(2, interpolation="bilinear")(x)
    x = layers.Concatenate()([skip, x])
    return conv_block(x, filters)


def model():
    """Two levels down, two up."""
    inputs = keras.Input((32, 32, 3))
    encoded1 = conv_block(inputs, 16)
    encoded2 = conv_block(layers.MaxPooling2D(2)(encoded1), 32)
    bottleneck = conv_block(layers.MaxPooling2D(2)(encoded2), 64)
    decoded = up_block(bottleneck, encoded2, 32)
    decoded = up_block(decoded, encoded1, 16)
    outputs = layers.Conv2D(2, 1)(decoded)
    return keras.Model(inputs, outputs, name="unet")
