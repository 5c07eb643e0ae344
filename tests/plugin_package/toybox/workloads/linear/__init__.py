"""benchlib's own workload ``linear``, in Abacus."""
