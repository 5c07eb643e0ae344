"""Material for a paper: an appendix, and the trace of a number to its measurements."""
