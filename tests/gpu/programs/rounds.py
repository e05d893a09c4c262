"""One of two ranks that start and stop a loader over and over; prints what is left behind.

torchrun --nproc-per-node 2 -m tests.gpu.programs.rounds FOLDER ROUNDS
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import threading

import torch
import torch.distributed as dist

from headrace.plugin.pytorch import DALIGenericIterator
from tests.gpu.programs.training import take_share, training


def counts():
    """What a round may not leave behind."""
    gc.collect()
    with open("/proc/self/status") as status:
        pinned = next(int(line.split()[1]) for line in status if line.startswith("VmLck"))
    return {
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
        "children": len(open(f"/proc/self/task/{os.getpid()}/children").read().split()),
        "locked_kilobytes": pinned,
    }


def contexts():
    """Devices on which this process has a context."""
    driver = ctypes.CDLL("libcuda.so.1")
    found = []
    for number in range(torch.cuda.device_count()):
        device, flags, is_active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
        assert not driver.cuDeviceGet(ctypes.byref(device), number)
        assert not driver.cuDevicePrimaryCtxGetState(
            device, ctypes.byref(flags), ctypes.byref(is_active)
        )
        if is_active.value:
            found.append(number)
    return found


def main():
    folder, rounds = sys.argv[1], int(sys.argv[2])
    on_gpu = torch.cuda.is_available() and torch.cuda.device_count() > 1
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    take_share(rank, world_size)
    device_id = rank if on_gpu else None
    if on_gpu:
        torch.cuda.set_device(rank)
    found = []
    for number in range(rounds):
        where = "mixed" if on_gpu else "cpu"
        pipe = training(folder, rank, world_size, where, device_id=device_id, seed=number)
        loader = DALIGenericIterator(pipe, ["image", "label", "source"], reader_name="reader")
        for _ in zip(range(number % 4), loader, strict=False):
            pass  # stopped before, in and at the end of an epoch
        del pipe, loader
        dist.barrier()
        if number in (rounds // 2, rounds - 1):
            row = counts()
            if on_gpu:
                torch.cuda.synchronize()
                free, total = torch.cuda.mem_get_info(rank)
                row["device_megabytes"] = (total - free) >> 20
                assert contexts() == [rank]
            found.append(row)
    everything: list[object] = [None] * world_size
    dist.all_gather_object(everything, found)
    if rank == 0:
        print("FOUND " + json.dumps(everything), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
