"""Checkpoints of a pipeline: what is in one, and how a pipeline begins where one was made."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import CheckpointError, UsageError
from headrace.executor.checkpoint import TAKEN, PipelineCheckpoint
from headrace.graph.nodes import OpNode
from headrace.graph.seeds import assign_seeds
from headrace.graph.user_line import stack_level
from headrace.kernels.cpu.philox_state import DrawSeed
from headrace.pipeline.checkpoint_names import check_same, names_in_checkpoints

if TYPE_CHECKING:
    from pathlib import Path

    from headrace.executor.executor import Executor
    from headrace.pipeline.input_queues import InputQueues
    from headrace.pipeline.open_readers import OpenReaders
    from headrace.pipeline.prefetch import Prefetch
    from headrace.pipeline.settings import Settings


_SHARDS = "num_shards"
"""Key of `Reader.identity` that may differ when a checkpoint is restored."""


class Checkpointing:
    """Everything that a pipeline's checkpoints depend on, found when it is built."""

    def __init__(self, settings: Settings, nodes: list[OpNode]) -> None:
        self.restored: PipelineCheckpoint | None = None
        """Checkpoint that the pipeline starts from, if any."""
        self.names: dict[int, str] | None = None
        """Names of the operators in checkpoints by serial number, if checkpoints are possible."""
        self.dealt = False
        """True if a reader continues with the rest of an epoch of another number of shards."""
        self._nodes = nodes
        self._settings = settings
        if not settings.enable_checkpointing:
            if settings.checkpoint is not None:
                raise UsageError(
                    "Cannot restore a checkpoint in a pipeline that was made without it: give it "
                    "`enable_checkpointing=True`, together with `checkpoint`."
                )
            return
        for node in nodes:
            if node.owner is None:
                raise UsageError(
                    "The pipeline does not support checkpointing, because it contains operator "
                    f"`fn.{node.schema.name}`, which was created outside the pipeline, at "
                    f"{node.user_line}. Create it in the definition."
                )
        self.names = names_in_checkpoints(nodes)
        for node in nodes:
            if node.input_queue is not None and node.input_queue.kind == "function":
                warnings.warn(
                    f"{_source(node)} is a function without argument. A checkpoint does not know "
                    "where it stands: a pipeline that is resumed calls it as if from the "
                    "beginning. Let it take the number of the iteration, or give it the methods "
                    "`state_dict` and `load_state_dict`.",
                    UserWarning,
                    stacklevel=stack_level(),
                )
        if settings.checkpoint is not None:
            self.restored = self._unpacked(settings.checkpoint)

    @property
    def taken(self) -> list[int]:
        """Iterations from the checkpoint on that the consumer has had out of turn."""
        return [] if self.restored is None else list(self.restored.sources.get(TAKEN, ()))

    def _unpacked(self, data: bytes | str) -> PipelineCheckpoint:
        assert self.names is not None
        restored = PipelineCheckpoint.unpacked(data)
        self._check_operators(restored)
        for node in self._nodes:
            name = self.names.get(node.serial)
            if node.input_queue is not None and name is not None and node.input_queue.is_under_way:
                warnings.warn(
                    f"{_source(node)} is a generator that has begun already, and goes on where it "
                    "is. It resumes where the checkpoint was made only if it is at its beginning.",
                    UserWarning,
                    stacklevel=stack_level(),
                )
                restored.sources["sources"][name] = None
        return restored

    def _check_operators(self, restored: PipelineCheckpoint) -> None:
        """Check that the operators and sources are those of a checkpoint."""
        names = self.names
        assert names is not None
        check_same(self._nodes, names, restored.operators)
        for node in self._nodes:
            name = names.get(node.serial)
            if name is None:
                continue
            if node.input_queue is None:
                continue
            before = restored.operators[name]["source"]
            if before != node.input_queue.kind:
                raise CheckpointError(
                    f"{_source(node)} is of the kind {node.input_queue.kind!r}; when the "
                    f"checkpoint was made, it was of the kind {before!r}."
                )

    def seeds(self, nodes: list[OpNode], seed: int | None) -> dict[int, int]:
        """The seeds of random operators, by ``id(node)``; a checkpoint has its own."""
        seeds = assign_seeds(nodes, seed)
        names, restored = self.names, self.restored
        if restored is not None and names is not None:
            for node in nodes:
                if id(node) in seeds and node.serial in names:
                    seeds[id(node)] = restored.operators[names[node.serial]]["seed"]
        batch_size = self._settings.batch_size
        assert batch_size is not None
        return {key: DrawSeed.of_pipeline(seed, batch_size) for key, seed in seeds.items()}

    def resume(self, readers: OpenReaders, queues: InputQueues) -> int:
        """Bring readers and sources to where they were; return the number of the next iteration."""
        names, restored = self.names, self.restored
        if restored is None or names is None:
            return 0
        for node in readers.nodes:
            entry = restored.operators[names[node.serial]]
            reader = readers.by_node[id(node)]
            _check_reader(node, reader, entry)
            shards = entry["data"].get(_SHARDS)
            if shards != reader.identity().get(_SHARDS):
                self.dealt = True
                reader.deal({"shards": shards, "shard": entry["shard"], "state": entry["state"]})
            elif entry["shard"] == reader.meta()["shard_id"]:
                reader.restore(entry["state"])
            else:
                reader.follow(entry["state"])
        queues.restore(restored.sources)
        return restored.iteration

    def current(
        self,
        executor: Executor,
        readers: OpenReaders,
        queues: InputQueues,
        prefetch: Prefetch,
        iterator: dict[str, Any] | None,
    ) -> PipelineCheckpoint:
        """A checkpoint after the taken outputs, with the state of the `iterator`, if any."""
        names = self.names
        assert names is not None
        with prefetch.lock:  # nothing is scheduled meanwhile by another thread that feeds
            oldest, states = executor.states()
            sources = queues.state() if oldest is None else oldest.sources
            number = prefetch.number if oldest is None else oldest.number
        assert sources is not None
        plan = executor.plan
        operators: dict[str, dict[str, Any]] = {}
        for node in plan.nodes:
            name = names.get(node.serial)
            if name is None:
                continue
            entry: dict[str, Any] = {"operator": node.schema.name}
            if id(node) in plan.seeds:
                entry["seed"] = plan.seeds[id(node)]
            if node.input_queue is not None:
                entry["source"] = node.input_queue.kind
            elif id(node) in states:
                reader = readers.by_node[id(node)]
                entry["data"] = reader.identity()
                entry["shard"] = reader.meta()["shard_id"]
                state = states[id(node)]
                # That of a mix is worked out here.
                entry["state"] = dict(state) if isinstance(state, Mapping) else state
            operators[name] = entry
        return PipelineCheckpoint(number, dict(sources), operators, iterator)

    def readable(self, data: bytes | str, readers: OpenReaders) -> PipelineCheckpoint:
        """The checkpoint in `data`, if the pipeline can go on from it."""
        assert self.names is not None
        found = PipelineCheckpoint.unpacked(data)
        self._check_operators(found)
        for node in readers.nodes:
            entry = found.operators[self.names[node.serial]]
            _check_reader(node, readers.by_node[id(node)], entry)
        return found


def check_enabled(settings: Settings) -> None:
    """Check that checkpoints of a pipeline can be made."""
    if not settings.enable_checkpointing:
        raise UsageError(
            "Cannot save a checkpoint of a pipeline that was made without it: give it "
            "`enable_checkpointing=True`."
        )


def _check_reader(node: OpNode, reader: Any, entry: dict[str, Any]) -> None:
    """Check that a reader reads the same data as when a checkpoint was made."""
    before, now = entry["data"], reader.identity()
    place = f'The reader "{node.name}", created at {node.user_line},'
    differences = {
        what: f"`{what}` is {now.get(what)!r} and was {before.get(what)!r}"
        for what in sorted({*before, *now})
        if before.get(what) != now.get(what)
    }
    shards = differences.pop(_SHARDS, None)
    if differences:
        raise CheckpointError(
            f"{place} cannot go on where it was when the checkpoint was made, because it reads "
            f"something else: {'; '.join(differences.values())}."
        )
    why = "" if shards is None else reader.why_fixed()
    if why:
        raise CheckpointError(
            f"{place} cannot go on where it was when the checkpoint was made: {shards}, and what "
            f"is left of the epoch cannot be dealt anew, because {why}. Resume with as many "
            "shards, or begin an epoch without `checkpoint`."
        )


def _source(node: OpNode) -> str:
    return f'The source of the external source "{node.name}", created at {node.user_line},'


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is never seen half written."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
