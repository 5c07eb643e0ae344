"""The provenance of a number: code, machine, packages, devices, knobs, telemetry."""
