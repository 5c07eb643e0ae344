"""The Rosetta CNN, slowed down by a known share."""
