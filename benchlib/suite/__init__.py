"""The run of a profile: plan, clock, execution of notebooks, staleness, pages."""
