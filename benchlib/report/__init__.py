"""From an executed notebook to the report that people read: one HTML file that asks nothing of the network."""
