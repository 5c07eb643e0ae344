"""The framework builds the workload by itself."""
