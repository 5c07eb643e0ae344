"""Runs a profile: plan, clock, execution of notebooks, what is stale, pages."""
