"""The careless framework builds the workload by itself."""
