"""ResNet-50 v1.5: 50 layers of convolutions with shortcuts around them."""
