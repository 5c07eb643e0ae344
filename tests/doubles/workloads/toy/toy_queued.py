"""The queued framework builds the workload by itself."""
