"""A part of the plug-in."""
