"""MLP-Mixer for images of 32x32, in PyTorch."""

from torch import nn

INPUT = (3, 32, 32)
CLASSES = 10


class MlpBlock(nn.Module):
    """Two dense layers with GELU between them."""

    def __init__(self, dim, mlp_dim):
        super().__init__()
        self.fc1 = nn.Linear(dim, mlp_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(mlp_dim, dim)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class MixerBlock(nn.Module):
    """Mixes tokens, then channels."""

    def __init__(self, tokens, channels, tokens_mlp_dim, channels_mlp_dim):
        super().__init__()
        self.norm1 = nn.LayerNorm(channels)
        self.token_mixing = MlpBlock(tokens, tokens_mlp_dim)
        self.norm2 = nn.LayerNorm(channels)
        self.channel_mixing = MlpBlock(channels, channels_mlp_dim)

    def forward(self, x):
        y = self.norm1(x).transpose(1, 2)
        x = x + self.token_mixing(y).transpose(1, 2)
        return x + self.channel_mixing(self.norm2(x))


class MlpMixer(nn.Module):
    """Patches of 4x4, mixer blocks, the mean over tokens, a dense layer."""

    def __init__(self, channels=64, num_blocks=4):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, kernel_size=4, stride=4)
        self.blocks = nn.Sequential(*[MixerBlock(64, channels, 32, 128) for _ in range(num_blocks)])
        self.norm = nn.LayerNorm(channels)
        self.head = nn.Linear(channels, CLASSES)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        x = self.norm(self.blocks(x))
        return self.head(x.mean(dim=1))
