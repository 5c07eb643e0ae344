"""The forgetful framework builds the workload by itself."""
