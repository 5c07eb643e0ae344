"""ResNet-50 as flax's example for ImageNet is written."""
