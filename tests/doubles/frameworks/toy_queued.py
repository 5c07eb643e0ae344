"""The toy framework with a queue, as an accelerator has one: a step returns at once, and another thread does it."""

import queue
import threading

from benchlib.frameworks import toy

PACKAGE = "numpy"
DEVICES = ("cpu",)


class Session(toy.Session):
    def __init__(self, device, mode, precision, seed, knobs):
        super().__init__(device, mode, precision, seed, knobs)
        self.queue = queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            batch = self.queue.get()
            super().step(batch)
            self.queue.task_done()

    def step(self, batch):
        self.queue.put(batch)
        return 0.0

    def synchronize(self):
        self.queue.join()

    def weights(self):
        self.queue.join()
        return super().weights()
