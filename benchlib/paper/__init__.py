"""What goes into a paper: an appendix, and the way from a number back to its measurements."""
