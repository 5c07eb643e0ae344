"""A convolutional autoencoder for images of 32x32, in MXNet's Gluon."""

from mxnet.gluon import nn


class ConvAutoencoder(nn.HybridBlock):
    """Down to 64 numbers and up again."""

    def __init__(self, latent=64, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.down = nn.HybridSequential()
            for channels in (16, 32):
                self.down.add(nn.Conv2D(channels, kernel_size=3, strides=2, padding=1))
                self.down.add(nn.BatchNorm(momentum=0.9, epsilon=1e-5))
                self.down.add(nn.LeakyReLU(0.2))
            self.code = nn.Dense(latent)
            self.expand = nn.Dense(32 * 8 * 8, activation="relu")
            self.deconv1 = nn.Conv2DTranspose(16, kernel_size=4, strides=2, padding=1)
            self.norm = nn.BatchNorm(momentum=0.9, epsilon=1e-5)
            self.deconv2 = nn.Conv2DTranspose(3, kernel_size=4, strides=2, padding=1)

    def hybrid_forward(self, F, x):
        """Encodes and decodes."""
        x = self.code(self.down(x))
        x = self.expand(x).reshape((0, 32, 8, 8))
        x = F.relu(self.norm(self.deconv1(x)))
        return self.deconv2(x)
