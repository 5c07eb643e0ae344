"""The twin framework builds the workload by itself."""
