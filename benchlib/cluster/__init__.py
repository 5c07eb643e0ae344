"""Many machines: hosts and their names, results that are united and compared, and jobs that other machines measure."""
