"""Debian's Slurm with two nodes on this machine, on loopback, in a folder of its own; all ends with the context."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
CONF = """
ClusterName=toys
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=8
KillWait=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1
PartitionName=all Nodes=n1,n2 Default=YES
"""


class Cluster:
    """The daemons, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.daemons = folder, dict[str, subprocess.Popen]()

    def start(self, name: str, *command: str) -> None:
        log = (self.folder / f"{name}.out").open("a")
        self.daemons[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self, name: str) -> None:
        for line in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                own = line.read_bytes()  # of a job there, in this folder
                if f"SLURMD_NODENAME={name}\0".encode() in own and str(self.folder).encode() in own:
                    os.kill(int(line.parent.name), signal.SIGKILL)
        self.daemons[name].kill()
        self.daemons.pop(name).wait()


@contextlib.contextmanager
def started(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Start munge, the controller and two nodes; skip where they are not installed, or this is not root."""
    if os.geteuid() or not all(map(shutil.which, PROGRAMS)):
        pytest.skip("takes root, and apt-get install slurm-wlm munge")
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    key, conf = folder / "munge.key", folder / "slurm.conf"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    (folder / "state").mkdir()
    conf.write_text(CONF.format(host=socket.gethostname().partition(".")[0], ports=ports, folder=folder))
    patch.setenv("SLURM_CONF", str(conf))
    cluster = Cluster(folder)
    try:
        munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
        cluster.start("munged", "munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *munge)
        until(lambda: (folder / "munge.socket").exists())
        cluster.start("slurmctld", "slurmctld", "-D")
        for name in ("n1", "n2"):
            cluster.start(name, "slurmd", "-D", "-N", name)
        until(lambda: asked("sinfo", "-h", "-N", "-o", "%t").split() == ["idle", "idle"], 60)
        yield cluster
    finally:
        for name in [*cluster.daemons]:
            cluster.kill(name)


def asked(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def until(holds, seconds: float = 30) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it did not come to that in time"
        time.sleep(0.1)
