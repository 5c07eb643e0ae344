"""The gate: are the models of two conditions the same? With its certificates."""
