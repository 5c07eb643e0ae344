"""GCN as the library torch_geometric has it."""
