"""MLP-Mixer for images of 32x32, in MindSpore."""

from mindspore import nn


class MlpBlock(nn.Cell):
    """Two dense layers with the exact GELU between them."""

    def __init__(self, dim, mlp_dim):
        super().__init__()
        self.fc1 = nn.Dense(dim, mlp_dim)
        self.act = nn.GELU(approximate=False)
        self.fc2 = nn.Dense(mlp_dim, dim)

    def construct(self, x):
        return self.fc2(self.act(self.fc1(x)))


class MixerBlock(nn.Cell):
    """Mixes tokens, then channels."""

    def __init__(self, tokens, channels, tokens_mlp_dim, channels_mlp_dim):
        super().__init__()
        self.norm1 = nn.LayerNorm((channels,), epsilon=1e-5)
        self.token_mixing = MlpBlock(tokens, tokens_mlp_dim)
        self.norm2 = nn.LayerNorm((channels,), epsilon=1e-5)
        self.channel_mixing = MlpBlock(channels, channels_mlp_dim)

    def construct(self, x):
        y = self.norm1(x).swapaxes(1, 2)
        x = x + self.token_mixing(y).swapaxes(1, 2)
        return x + self.channel_mixing(self.norm2(x))


class MlpMixer(nn.Cell):
    """Patches of 4x4, mixer blocks, the mean over tokens, a dense layer."""

    def __init__(self, channels=64, num_blocks=4, num_classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, kernel_size=4, stride=4, pad_mode="valid", has_bias=True)
        self.blocks = nn.SequentialCell([MixerBlock(64, channels, 32, 128) for _ in range(num_blocks)])
        self.norm = nn.LayerNorm((channels,), epsilon=1e-5)
        self.head = nn.Dense(channels, num_classes)

    def construct(self, x):
        x = self.stem(x)
        b, c, h, w = x.shape
        x = x.reshape(b, c, h * w).swapaxes(1, 2)
        x = self.norm(self.blocks(x))
        return self.head(x.mean(axis=1))
