"""Where each framework lives that the studies of whole models are about, and which of them are there for a workload."""

from __future__ import annotations

from benchlib import frameworks, workloads
from benchlib.environments import DEFAULT
from benchlib.runner import availability

ENVIRONMENTS = {
    "pytorch": DEFAULT,
    "mindspore": DEFAULT,
    "jax": "jax",
    "tensorflow": "tensorflow",
    "mxnet": "mxnet",
}


def there(workload: str, device: str = "cpu") -> list[str]:
    """Those that have a file for the workload, and can use the device here in their environment."""
    offered = frameworks.of_workload(workloads.load(workload))
    return [
        framework
        for framework, environment in ENVIRONMENTS.items()
        if framework in offered and availability.why_absent(framework, device, environment) is None
    ]
