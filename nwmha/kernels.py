"""Kernels that stay warm between reruns: started once a worker, emptied before every chapter.

Starting Python and importing torch, sympy and matplotlib costs more than the arithmetic of a small chapter. A warm
kernel pays for it once. Its namespace, figures and plot settings are reset, so a chapter finds what a fresh kernel
gives it; only the loaded modules stay.
"""

import asyncio
import os
import subprocess
import threading

RESET = """
import sys as _sys
if "matplotlib" in _sys.modules:
    import matplotlib as _mpl
    from matplotlib import pyplot as _plt
    _plt.close("all")
    _mpl.rcdefaults()
if "torch" in _sys.modules:
    import torch as _torch
    _torch.set_default_dtype(_torch.float32)
get_ipython().reset(new_session=True)
"""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

_own = threading.local()  # a kernel serves one thread: a cluster's worker may have several


def run(source, target, values, *, folder, fresh=False):
    """Execute a notebook through papermill, in this thread's warm kernel or in a fresh one; keep it in ``target``.

    ``folder`` is the working folder of the kernel. Raises what papermill raises; a kernel that died or hangs is
    given up, and the next run starts another.
    """
    import papermill

    for name in THREADS:
        os.environ.setdefault(name, "1")  # a worker a core: more threads would fight for it
    if fresh:
        close()
    manager = _warm(folder)
    try:
        return papermill.execute_notebook(
            str(source), str(target), parameters=values, kernel_name="python3", progress_bar=False, cwd=str(folder),
            request_save_on_cell_execute=False, km=manager,
        )  # fmt: skip
    except papermill.PapermillExecutionError:
        raise  # the chapter's own error: the kernel is sound
    except BaseException:
        close()
        raise
    finally:
        if fresh:
            close()


def close():
    """Stop this thread's warm kernel, if it has one."""
    manager, _own.manager = getattr(_own, "manager", None), None
    if manager is not None:
        asyncio.run(manager.shutdown_kernel(now=True))


def _warm(folder):
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell, new_notebook

    if getattr(_own, "manager", None) is None:
        _own.manager = _started(folder)
    for client in _own.manager.clients:
        client.stop_channels()  # nbclient opens a client a run and leaves it open: sockets would run out
    _own.manager.clients.clear()
    try:
        NotebookClient(new_notebook(cells=[new_code_cell(RESET)]), km=_own.manager).execute()
    except BaseException:
        close()
        raise
    return _own.manager


def _started(folder):
    from jupyter_client import AsyncKernelManager

    class Manager(AsyncKernelManager):
        def client(self, **settings):
            self.clients.append(super().client(**settings))
            return self.clients[-1]

    manager = Manager(kernel_name="python3")
    manager.clients = []
    # What a chapter prints travels in messages; on the kernel's own stderr comes only its log.
    asyncio.run(manager.start_kernel(cwd=str(folder), stderr=subprocess.DEVNULL))
    return manager
