"""The top floor: notebooks and parameters to outputs. Experiments, the report, the claims and the command line."""
