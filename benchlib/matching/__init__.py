"""A user's own models: files are read, their weights matched, and a workload made of them, as a plug-in."""
