"""The bare framework builds the workload by itself."""
