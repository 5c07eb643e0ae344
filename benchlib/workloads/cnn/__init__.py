"""The "Rosetta" CNN: four convolutions and two dense layers, trained on small colour images."""
