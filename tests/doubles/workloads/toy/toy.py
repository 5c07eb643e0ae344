"""The toy framework builds the workload by itself."""
