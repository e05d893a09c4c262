"""What a Ray cluster costs and brings: the same pipeline in the process, and in workers.

    hatch run ray:bench                     all cases
    hatch run ray:bench --case cost --rounds 9

* ``cost``: `image_train` by one worker on this machine, with the cut that the engine chooses and
  with all work in the worker (float32 through the store), beside the same pipeline in the process.
  Rates are samples per second of processors, all processes of Ray included, and by the clock.
* ``nodes``: one worker on a node, beside two on two nodes. Needs three idle processors: the trainer
  takes one.
* ``messages``: batches of one number from two and from four nodes, which take nothing but messages.
* ``data``: the same work by Ray Data with torchvision's transforms in the same number of actors.

Nodes are processes of this machine. Peers take turns; figures are ratios of medians.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray.cluster_utils import Cluster

import headrace
from benchmarks.support import graphs
from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from examples.demo.photographs import write_dataset
from headrace.plugin.pytorch import DALIGenericIterator
from headrace.plugin.ray import RayIterator

BATCH_SIZE = 64
CASES = ("cost", "nodes", "messages", "data")
STORE_BYTES = 1 << 30


def pipeline(root: Path) -> Any:
    """`image_train`, one thread."""
    pipe = headrace.Pipeline(
        batch_size=BATCH_SIZE, num_threads=1, device_id=None, seed=42, workers="threads"
    )
    with pipe:
        pipe.set_outputs(*graphs.train(headrace, str(root)))
    return pipe


def peer(name: str, iterator: Any, ahead: int, *, by_processor: bool = False) -> Peer:
    """A peer that takes batches of an iterator without an end."""
    return Peer(name, lambda: len(next(iterator)[0]["images"]), None, ahead, by_processor)


def on_cluster(root: Path, workers: int, **options: Any) -> RayIterator:
    """`image_train` by workers."""
    return RayIterator(pipeline(root), ["images", "labels"], num_workers=workers, **options)


def cost(root: Path, rounds: int, seconds: float) -> dict[str, list[Peer]]:
    """One worker beside the process."""
    alone = DALIGenericIterator(pipeline(root), ["images", "labels"])
    chosen, whole = on_cluster(root, 1), on_cluster(root, 1, cut="outputs")
    print(chosen.cut.why)
    rows = {}
    for how, by_processor in (("by processors", True), ("by the clock", False)):
        peers = [
            peer("in process", alone, 2, by_processor=by_processor),
            peer("chosen cut", chosen, 4, by_processor=by_processor),
            peer("float32", whole, 4, by_processor=by_processor),
        ]
        measure(peers, rounds=rounds, seconds=seconds, swapped=True)
        rows[how] = peers
    return rows


def nodes(root: Path, rounds: int, seconds: float) -> dict[str, list[Peer]]:
    """Two nodes beside one."""
    one = on_cluster(root, 1, resources={"far": 1})
    two = on_cluster(root, 2, resources={"far": 1})
    print({worker.node_id[:8] for worker in two.workers})
    peers = [peer("one node", one, 4), peer("two nodes", two, 6)]
    measure(peers, rounds=rounds, seconds=seconds, swapped=True)
    return {"image_train": peers}


def messages(root: Path, rounds: int, seconds: float) -> dict[str, list[Peer]]:
    """Batches of one number: what the trainer can hand over, whatever is in them."""

    def numbers(workers: int) -> RayIterator:
        pipe = headrace.Pipeline(batch_size=1, num_threads=1, device_id=None, workers="threads")
        with pipe:
            pipe.set_outputs(headrace.fn.random.uniform())
        far = {"far": 1}
        return RayIterator(pipe, ["images"], num_workers=workers, resources=far, cut="outputs")

    peers = [peer(f"{count} nodes", numbers(count), 2 * count) for count in (2, 4)]
    measure(peers, rounds=rounds, seconds=seconds, swapped=True)
    return {"batches": peers}


def transform(row: dict[str, Any]) -> dict[str, Any]:
    """`image_train` in torchvision, on Pillow's images, as most programs have it."""
    import io

    from PIL import Image

    from tests.support.torchvision_beside_cpu import import_torchvision

    import_torchvision()
    from torchvision import transforms

    image = Image.open(io.BytesIO(row["bytes"])).convert("RGB")
    mean, std = ([value / 255 for value in each] for each in (graphs.MEAN, graphs.STD))
    work = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(mean, std),
        ]
    )
    return {"images": work(image).numpy()}


def batches_of_ray_data(root: Path, workers: int) -> Iterator[Any]:
    """The same by Ray Data, epoch after epoch."""
    paths = [str(path) for path in sorted(root.rglob("*.jpg"))]
    # Long epochs: to begin one takes Ray Data a while.
    data = ray.data.read_binary_files(paths * 16, override_num_blocks=64)
    data = data.map(transform, concurrency=workers, num_cpus=1)
    while True:
        for batch in data.iter_torch_batches(batch_size=BATCH_SIZE, drop_last=True):
            yield [batch]


def data(root: Path, rounds: int, seconds: float) -> dict[str, list[Peer]]:
    """Ray Data beside workers."""
    # One after the other: Ray Data goes on with an epoch while nobody asks for batches.
    ours = peer("Headrace", on_cluster(root, 1), 4)
    measure([ours], rounds=rounds, seconds=seconds, warm_up_seconds=seconds)
    theirs = peer("Ray Data", batches_of_ray_data(root, 1), 4)
    measure([theirs], rounds=rounds, seconds=seconds, warm_up_seconds=seconds)
    return {"image_train": [theirs, ours]}


def main() -> None:
    """Run the cases that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--case", action="append", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--images", type=int, default=512)
    asked = parser.parse_args()
    runs: dict[str, tuple[Callable[..., dict[str, list[Peer]]], str]] = {
        "cost": (cost, "in process"),
        "nodes": (nodes, "one node"),
        "messages": (messages, "2 nodes"),
        "data": (data, "Ray Data"),
    }
    wanted = checked_cases(asked.case, CASES)
    head = {"num_cpus": 2, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    far = {"nodes": 3, "messages": 6}
    for _ in range(max(far.get(name, 0) for name in wanted)):
        cluster.add_node(num_cpus=1, resources={"far": 1}, object_store_memory=STORE_BYTES // 4)
    ray.init(address=cluster.address, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        root = write_dataset(Path(folder) / "photographs", asked.images)
        for name in wanted:
            run, reference = runs[name]
            print_table(f"Ray: {name}", run(root, asked.rounds, asked.seconds), reference=reference)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
