"""A small U-Net that gives each pixel one of two classes, in PyTorch."""

import torch
from torch import nn

INPUT = (3, 32, 32)
CLASSES = 2
LABELS = (32, 32)


def double_conv(in_channels, out_channels):
    """Two 3x3 convolutions, each with batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(inplace=True),
        nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    """Two levels down, two up, with bilinear upsampling."""

    def __init__(self, base=16):
        super().__init__()
        self.inc = double_conv(3, base)
        self.down1 = double_conv(base, 2 * base)
        self.down2 = double_conv(2 * base, 4 * base)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.up1 = double_conv(4 * base + 2 * base, 2 * base)
        self.up2 = double_conv(2 * base + base, base)
        self.outc = nn.Conv2d(base, 2, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(self.pool(x1))
        x3 = self.down2(self.pool(x2))
        x = self.up1(torch.cat([x2, self.up(x3)], dim=1))
        x = self.up2(torch.cat([x1, self.up(x)], dim=1))
        return self.outc(x)
