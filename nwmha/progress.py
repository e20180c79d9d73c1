"""Where a sweep runs, and how it says how far it is: a bar on a terminal, plain lines in a log."""

import multiprocessing
import multiprocessing.connection
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from nwmha.sweeps import Run, varied


@contextmanager
def executor(workers, scheduler=None):
    """A ``concurrent.futures`` executor: processes of this machine, or a dask.distributed cluster at an address."""
    if scheduler:
        try:
            from distributed import Client
        except ImportError:
            raise ValueError("--scheduler needs dask.distributed: pip install -e '.[cluster]'") from None
        with Client(scheduler, timeout=30) as client:
            yield client.get_executor(pure=False)
        return
    # spawn: a forked process would inherit locks and threads of the parent
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _end_with_parent():
    """Let a worker end when the sweep is killed: otherwise it would wait for work, and hold its kernel, forever."""

    def watch():
        multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Progress:
    """Counts runs and claims as they come in. A context manager; ``report`` fits :func:`nwmha.sweeps.sweep`."""

    def __init__(self, runs, folder, stream=None):
        self.total = len(runs)
        self.done = sum((folder / "runs" / run.key).exists() for run in runs)
        self.names = varied(run.values for run in runs)
        self.held = self.failed = self.broken = 0
        self.stream = stream or sys.stderr
        self.bar = None

    def __enter__(self):
        if self.stream.isatty():
            from tqdm import tqdm

            self.bar = tqdm(total=self.total, initial=self.done, unit="run", file=self.stream, dynamic_ncols=True)
        elif self.done:
            print(f"{self.done} of {self.total} runs are finished already", file=self.stream, flush=True)
        return self

    def __exit__(self, *_):
        if self.bar is not None:
            self.bar.close()

    def report(self, run: Run, result):
        """Count one run: its result, or the exception for which there is none."""
        self.done += 1
        if isinstance(result, BaseException):
            self.broken += 1
            self._say(run, f"not executed: {type(result).__name__}: {result}", loud=True)
            return
        held = sum(claim["status"] == "held" for claim in result["claims"])
        failed = len(result["claims"]) - held
        self.held, self.failed = self.held + held, self.failed + failed
        text = f"{result['status']}: {held} claims held, {failed} failed, {result['seconds']:.1f} s"
        if result["status"] in ("refused", "stopped"):
            text = f"{result['status']}: {result['error'].splitlines()[0]}"
        self._say(run, text, loud=result["status"] != "held")

    def _say(self, run, text, loud):
        where = "".join(f" {name}={run.values[name]}" for name in self.names)
        line = f"[{self.done}/{self.total}] chapter {run.chapter}{where}: {text}"
        if self.bar is None:
            print(line, file=self.stream, flush=True)
            return
        if loud:
            self.bar.write(line, file=self.stream)
        self.bar.set_postfix_str(f"claims: {self.held} held, {self.failed} failed", refresh=False)
        self.bar.update()
