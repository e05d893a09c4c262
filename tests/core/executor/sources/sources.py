"""Sources that tests run in workers, and pipelines of them: a module, which workers import."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np

from headrace import Pipeline, fn


def pipeline(source, batch_size=4, options=None, **arguments):
    """A pipeline that returns what `source` gives."""
    options = {"py_num_workers": 2, **(options or {})}
    pipe = Pipeline(batch_size, 1, None, **options)
    with pipe:
        pipe.set_outputs(fn.external_source(source, **{"parallel": "processes", **arguments}))
    return pipe


def values(batch):
    """The samples of the first output as lists."""
    return [np.asarray(batch[0].at(k)).tolist() for k in range(len(batch[0]))]


def run(pipe, times=3):
    """Run a pipeline several times."""
    for _ in range(times):
        pipe.run()


def numbered(info):
    return np.array([info.idx_in_epoch, os.getpid()])


def ending(index):
    if index >= 3:
        raise StopIteration
    return [np.array([index])] * 4


def raising(info):
    if info.idx_in_epoch == 6:
        raise LookupError("not this one")
    return np.zeros(1)


class OddError(Exception):
    """An error that does not survive pickling."""

    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def raising_odd(info):
    raise OddError("odd", "one")


def exiting(info):
    sys.exit(3)


def killed(info):
    if info.idx_in_epoch == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.zeros(1)


def ended(info):
    if info.idx_in_epoch == 6:
        os._exit(7)
    return np.zeros(1)


def stopped(info):
    os.kill(os.getpid(), signal.SIGSTOP)
    return np.zeros(1)


def hanging(info):
    if info.idx_in_epoch == 6:
        time.sleep(1000)
    return np.zeros(1)


def forever(index):
    return [np.full((50, 50), index)] * 4
