"""Two nodes of Debian's Slurm, or of Ray, on this machine, with a folder of their own; all ends with the context."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import until

from benchlib import environments

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
    """The daemons, by name; ``on`` is the engine, as drivers are told it."""

    def __init__(self, folder: Path, on: str) -> None:
        self.folder, self.on, self.daemons, self.commands = folder, on, dict[str, subprocess.Popen](), {}

    def start(self, name: str, *command: str) -> None:
        """Start a daemon, or one that was killed again."""
        self.commands[name] = command = command or self.commands[name]
        log = (self.folder / f"{name}.out").open("a")
        self.daemons[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self, name: str) -> None:
        for line in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                own = line.read_bytes()  # of a job there, in this folder
                if f"SLURMD_NODENAME={name}\0".encode() in own and str(self.folder).encode() in own:
                    os.kill(int(line.parent.name), signal.SIGKILL)
        os.killpg(self.daemons[name].pid, signal.SIGKILL)
        self.daemons.pop(name).wait()

    def close(self) -> None:
        for name in self.commands:
            if name in self.daemons:
                self.kill(name)
            shutil.rmtree(environments.root() / "outputs" / "ray" / name, ignore_errors=True)


@contextlib.contextmanager
def slurm(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Start munge, the controller and two nodes; skip where they are not installed, or this is not root."""
    if os.geteuid() or not all(map(shutil.which, PROGRAMS)):
        pytest.skip("takes root, and apt-get install slurm-wlm munge")
    ports = free_ports(3)
    key, conf = folder / "munge.key", folder / "slurm.conf"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    (folder / "state").mkdir()
    conf.write_text(CONF.format(host=socket.gethostname().partition(".")[0], ports=ports, folder=folder))
    patch.setenv("SLURM_CONF", str(conf))
    with contextlib.closing(Cluster(folder, "slurm --time=10")) as cluster:
        munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
        cluster.start("munged", "munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *munge)
        until(lambda: (folder / "munge.socket").exists())
        cluster.start("slurmctld", "slurmctld", "-D")
        for name in ("n1", "n2"):
            cluster.start(name, "slurmd", "-D", "-N", name)
        until(lambda: asked("sinfo", "-h", "-N", "-o", "%t").split() == ["idle", "idle"], 60)
        yield cluster


@contextlib.contextmanager
def ray(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Start two nodes of Ray, the first of which is the head; their names are of this process."""
    for name, value in {"AUTH_MODE": "token", "AUTH_TOKEN": secrets.token_hex(32), "worker_niceness": "0"}.items():
        patch.setenv(f"RAY_{name}", value)
    (port,) = free_ports(1)
    start = [str(Path(environments.find("ray").python).with_name("ray")), "start", "--block", "--num-cpus=1"]
    start += ["--node-ip-address=127.0.0.1", "--object-store-memory=100000000", '--resources={"benchlib": 1}']
    joins = {"n1": ["--head", f"--port={port}", "--include-dashboard=0"], "n2": [f"--address=127.0.0.1:{port}"]}
    with contextlib.closing(Cluster(folder, f"ray 127.0.0.1:{port}")) as cluster:
        for name, how in joins.items():
            name = f"{name}-{os.getpid()}"
            cluster.start(name, "env", f"BENCHLIB_HOST={name}", *start, f"--node-name={name}", *how)
            status = [start[0], "status", f"--address=127.0.0.1:{port}"]
            until(lambda status=status: subprocess.run(status, capture_output=True).returncode == 0, 60)
        yield cluster


def free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as held:
        return [held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(number)]


def asked(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
