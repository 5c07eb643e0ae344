"""A convolutional autoencoder for images of 32x32, in PyTorch."""

from torch import nn

INPUT = (3, 32, 32)
TARGET = (3, 32, 32)


class AutoEncoder(nn.Module):
    """Down to 64 numbers and up again."""

    def __init__(self, latent=64):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.LeakyReLU(0.2),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.BatchNorm2d(32),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(32 * 8 * 8, latent),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, 32 * 8 * 8),
            nn.ReLU(),
            nn.Unflatten(1, (32, 8, 8)),
            nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 3, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))
