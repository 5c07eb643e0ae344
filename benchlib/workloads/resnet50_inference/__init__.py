"""ResNet-50 as it is used: forward only, with the weights as they are."""
