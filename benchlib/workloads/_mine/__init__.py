"""The parts that a user's own models have in common: their description, and a default loss and optimizer for each
framework. ``benchlib.matching`` writes a workload's folder of these and of the user's files.
"""
