"""The ground floor: all that a worker needs beside ``frameworks`` and ``workloads``. It imports numpy and the standard
library only, so that any framework's environment will do; nothing of it imports a floor above.
"""
