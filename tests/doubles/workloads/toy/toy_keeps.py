"""The keeping framework builds the workload by itself."""
