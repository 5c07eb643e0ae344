"""ResNet-50 v1 as Keras's applications and Gluon's model zoo have it."""
