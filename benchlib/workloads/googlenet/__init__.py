"""GoogLeNet (Inception v1) with batch normalisation: blocks of convolutions of several sizes side by side."""
