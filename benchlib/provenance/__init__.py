"""What a number depends on: code, machine, packages, devices, knobs, telemetry."""
