"""A framework in numpy, for tests of everything that is not about a framework. It can be told to misbehave."""

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchlib.frameworks import check_weights
from benchlib.worker import warmup
from benchlib.worker.batches import Batches

PACKAGE = "numpy"
DEVICES = ("cpu",)
LAUNCHER = ("-m", "toy_launcher", "{world_size}")


def _spin():
    while True:
        pass


def _asked_for_a_block():
    frame = sys._getframe()
    while frame and not frame.f_code.co_name.startswith("do_"):
        frame = frame.f_back
    return frame is not None and frame.f_back.f_code.co_name == "serve" and frame.f_code.co_name == "do_block"


class Session:
    SCALE = 1.0

    def __init__(self, device, mode, precision, seed, knobs):
        print("toy framework: a line on standard output")

    rank, world_size, reductions = 0, 1, 0

    def join(self, communication):
        self.rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.together, self.world_size = size, size if communication else 1
        return self.rank, size

    def agree(self, value):
        return float(self._mean({"value": np.array(value)}, self.together)["value"])

    def _mean(self, arrays, size):
        """Over the processes, which share their working directory."""
        if size == 1:
            return arrays
        self.reductions += 1
        np.savez(f"mine.{self.rank}.npz", **arrays)
        os.replace(f"mine.{self.rank}.npz", f"{self.reductions}.{self.rank}.npz")
        names = [f"{self.reductions}.{rank}.npz" for rank in range(size)]
        while not all(map(os.path.exists, names)):
            time.sleep(0.0005)
        given = [dict(np.load(name)) for name in names]
        return {name: np.mean([one[name] for one in given], axis=0) for name in arrays}

    def build(self, workload, module, values, learning_rate):
        self.values, self.rate = values, learning_rate
        self.shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self.random = np.random.RandomState(0)
        how = values["misbehave"]
        if how != "slow down":  # nothing of it gets faster with use: it would warm up for longer than it does all else
            warmup.LEAST_S, warmup.CHUNK_S = 0.03, 0.003
        if how == "other stream":  # as another version of numpy may draw
            drawn = np.random.default_rng
            np.random.default_rng = lambda seed: drawn([7, 7])
        elif how.startswith("own order"):
            given, own = Batches.order, 2 if how.endswith("later") else 1
            Batches.order = lambda batches, epoch: given(batches, epoch)[:: -1 if epoch == own else 1]

    def load(self, weights, loss_scale=1.0):
        check_weights("weights for toy", self.shapes, {name: array.shape for name, array in weights.items()})
        self.state = {name: array.copy() for name, array in weights.items()}
        self.velocity = {name: np.zeros_like(array) for name, array in weights.items()}
        self.dropped = []

    def weights(self):
        return {name: array.copy() for name, array in self.state.items()}

    def put(self, arrays):
        return arrays[0].reshape(len(arrays[0]), -1), arrays[1]

    def outputs(self, batch, training):
        self.taken_in = self._masked(batch[0], training)
        return (self.SCALE * self.taken_in @ self.state["weight"] + self.state["bias"],)

    def _masked(self, inputs, training):
        p = self.values.get("dropout", 0.0)
        if not training or not p:
            return inputs
        left = (inputs * self._kept(inputs.shape, p) / (1 - p)).astype(np.float32)
        self.dropped.append(("dropout", inputs, left))
        return left

    draw = None

    @contextmanager
    def given_masks(self, draw):
        self.draw = draw
        yield
        self.draw = None

    def _kept(self, shape, p):
        return self.draw(0, shape, p) if self.draw else self.random.random_sample(shape) >= p

    def _probabilities(self, batch):
        (outputs,) = self.outputs(batch, True)
        z = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return z / z.sum(axis=1, keepdims=True)

    def gradients(self, batch):
        d = self._probabilities(batch)
        d[np.arange(len(d)), batch[1]] -= 1
        d *= np.float32(self._of_samples(batch[1]))[:, None]
        found = {"weight": self.taken_in.T @ d, "bias": d.sum(axis=0)}
        return self._mean(found, self.world_size)

    def _of_samples(self, labels):
        """Their shares of the loss."""
        return np.full(len(labels), 1 / len(labels))

    def step(self, batch):
        self._misbehave()
        self.steps = getattr(self, "steps", 0) + 1
        slower = 1.004**self.steps if self.values["misbehave"] == "slow down" else 1.0
        end = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) + slower * self.values["burn_ms"] / 1000
        while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) < end:
            pass
        loss = -np.log(self._probabilities(batch)[np.arange(len(batch[1])), batch[1]]).mean()
        self._descend(self.gradients(batch))
        return loss

    def _settings(self):
        return self.rate, self.values.get("momentum", 0.0), self.values.get("decay", 0.0)

    def _descend(self, gradients):
        rate, momentum, decay = map(np.float32, self._settings())
        for name, gradient in gradients.items():
            self.velocity[name] = momentum * self.velocity[name] + gradient + decay * self.state[name]
            self.state[name] -= rate * self.velocity[name]

    def update(self, gradients, steps):
        for number in range(steps):
            self._descend(gradients[number % len(gradients)])

    def dropouts(self, batch, training):
        self.dropped = []
        self.outputs(batch, training)
        seen, self.dropped = self.dropped, []
        return seen

    def _misbehave(self):
        how = self.values["misbehave"]
        if how.startswith("rank 1: "):
            how = how[len("rank 1: ") :] if self.rank == 1 else ""
        if how.endswith(" in a block"):
            how = how[: -len(" in a block")] if _asked_for_a_block() else ""
        if how == "die":
            print("last words", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "hang":
            time.sleep(3600)
        elif how == "raise":
            raise RuntimeError("out of toys")
        elif how == "raise half a character":
            raise RuntimeError("out of \ud83e")
        elif how == "broken file":
            np.save = np.savez = lambda file, *arrays, **named: Path(file).write_bytes(b"\x93NUMPY\x01\x00")
        elif how == "few predictions" and not hasattr(self, "steps"):
            np.save = lambda file, array, save=np.save: save(file, array[:-1])
        elif how == "rubbish":
            for fd in os.listdir("/proc/self/fd"):  # whatever socket this process has
                link = f"/proc/self/fd/{fd}"
                if os.path.islink(link) and "socket" in os.readlink(link):
                    os.write(int(fd), b"\x00 not a message \n")
        elif how == "once" and not os.path.exists(self.values["flag"]):
            open(self.values["flag"], "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "spin" and not hasattr(self, "steps"):
            threading.Thread(target=_spin, daemon=True).start()
        elif how == "fork" and not hasattr(self, "steps") and os.fork() == 0:
            os.setsid()  # as what becomes a daemon does
            ctypes.CDLL(None).prctl(15, b"toy-child", 0, 0, 0)  # PR_SET_NAME
            _spin()
        elif how == "leave a thread" and not hasattr(self, "steps"):
            threading.Thread(target=time.sleep, args=(3600,), daemon=False).start()
        elif how == "hold the GIL":
            ctypes.PyDLL(None).sleep(3600)
        elif how == "print" and not hasattr(self, "steps"):
            for fd in (1, 2):  # as C does
                os.write(fd, b"\x00\xff{}\n" * 100_000)
        elif how == "clock" and not hasattr(self, "steps"):
            right = time.perf_counter
            time.perf_counter = lambda: 50 * right()
        elif how == "set threads":
            self.threads = 2
        elif how == "nan":
            time.perf_counter = lambda: float("nan")
        elif how == "later" and os.path.exists(self.values["flag"]):
            raise RuntimeError("out of toys, from now on")
        elif how == "negative":
            real = time.perf_counter
            time.perf_counter = lambda: -2 * real()

    def multiply_adds(self, batch):
        return 3.0 * self.state["weight"].size * len(batch[0])

    def mark(self):
        return None

    def synchronize(self):
        pass

    def to_numpy(self, value):
        return np.asarray(value)

    def settings(self):
        return {"threads": getattr(self, "threads", 1)}

    def device_memory(self):
        return {}

    @staticmethod
    def versions():
        return {"toy": "1.0"}
