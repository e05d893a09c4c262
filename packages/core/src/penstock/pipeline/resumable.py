"""A pipeline as far as checkpoints go: making them, and beginning where one was made."""

from __future__ import annotations

import os
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import CheckpointError, UsageError, located
from penstock.executor.checkpoint import Checkpoint
from penstock.graph.seeds import assign_seeds
from penstock.graph.user_line import stack_level
from penstock.pipeline.checkpoint_names import check_same, names_in_checkpoints
from penstock.pipeline.feeding import Feeding
from penstock.pipeline.source_workers import SourceWorkers, WorkersPipeline
from penstock.tracebacks import public_methods

if TYPE_CHECKING:
    from penstock.executor.executor import Executor
    from penstock.executor.plan import Plan
    from penstock.graph.nodes import OpNode


@public_methods
class ResumablePipeline(WorkersPipeline):
    """Knows what a pipeline's next batches depend on."""

    _feeding: Feeding

    def _begin_running(self) -> None:
        raise NotImplementedError

    def _shutdown(self) -> None:
        raise NotImplementedError

    def _begin_definition(self) -> None:
        super()._begin_definition()
        self._executor: Executor | None = None
        self._readers: dict[int, Any] = {}
        self._iteration = 0
        """Number of the next iteration to be scheduled, never reset: random streams count by it."""
        self._scheduling = threading.Lock()
        self._restored: Checkpoint | None = None
        self._checkpoint_names: dict[int, str] | None = None
        """What the operators are called in checkpoints, by their serial numbers, where those can be
        made.
        """

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """Whether the pipeline has begun where a checkpoint was made; False before the build."""
        return self._restored is not None

    def checkpoint(self, filename: str | os.PathLike[str] | None = None) -> bytes:
        """What a pipeline needs to know to go on from here, to be given to it as `checkpoint`.

        From here means behind the batches that have been taken; those that are being worked on are
        made again. Batches that an external source is *fed* (`feed_input`) and that were not taken
        have to be fed again.

        Parameters
        ----------
        filename
            A file to write the bytes to. Whoever reads it finds the old one or the new one whole,
            also if the program is interrupted here.

        Raises
        ------
        UsageError
            If the pipeline was not made with ``enable_checkpointing=True``, or a source cannot say
            where it stands.
        OSError
            If the file cannot be written.
        """
        return self._checkpoint(filename)

    def _checkpoint(
        self,
        filename: str | os.PathLike[str] | None = None,
        iterator: dict[str, Any] | None = None,
    ) -> bytes:
        """`checkpoint`, with the state of the `iterator` that runs the pipeline."""
        if not self._settings.enable_checkpointing:
            raise UsageError(
                "Cannot save a checkpoint of a pipeline that was made without it: give it "
                "`enable_checkpointing=True`."
            )
        self.build()
        data = self._current_state(iterator).packed()
        if filename is not None:
            _write_whole(Path(filename), data)
        return data

    def _current_state(self, iterator: dict[str, Any] | None) -> Checkpoint:
        executor, names = self._executor, self._checkpoint_names
        assert executor is not None
        assert names is not None
        with self._scheduling:  # nothing is scheduled meanwhile by another thread that feeds
            oldest, readers = executor.states()
            sources = self._feeding.state() if oldest is None else oldest.sources
            number = self._iteration if oldest is None else oldest.number
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
            if node.attachment is not None:
                entry["source"] = node.attachment.kind
            elif id(node) in readers:
                reader = self._readers[id(node)]
                entry["data"] = reader.identity()
                entry["shard"] = reader.meta()["shard_id"]
                entry["state"] = readers[id(node)]
            operators[name] = entry
        return Checkpoint(number, dict(sources), operators, iterator)

    # -- in the build ----------------------------------------------------------------------------

    def _begin_resuming(self, nodes: list[OpNode]) -> None:
        """Read the checkpoint, if there is one.

        Raises
        ------
        UsageError
            If it cannot be used, or none could be made of this pipeline.
        """
        settings = self._settings
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
                    "The pipeline does not support checkpoints, because it contains an operator "
                    f"that was created outside of it: `fn.{node.schema.name}`, created at "
                    f"{node.user_line}. Create it in the definition."
                )
        self._checkpoint_names = names_in_checkpoints(nodes)
        for node in nodes:
            if node.attachment is not None and node.attachment.kind == "function":
                warnings.warn(
                    f"{_source(node)} is a function without argument. A checkpoint does not know "
                    "where it stands: a pipeline that is resumed calls it as if from the "
                    "beginning. Let it take the number of the iteration, or give it the methods "
                    "`state_dict` and `load_state_dict`.",
                    UserWarning,
                    stacklevel=stack_level(),
                )
        if settings.checkpoint is None:
            return
        restored = Checkpoint.unpacked(settings.checkpoint)
        self._check_operators(nodes, restored)
        for node in nodes:
            name = self._checkpoint_names.get(node.serial)
            if node.attachment is not None and name is not None and node.attachment.is_under_way:
                warnings.warn(
                    f"{_source(node)} is a generator that has begun already, and goes on where it "
                    "is. It resumes where the checkpoint was made only if it is at its beginning.",
                    UserWarning,
                    stacklevel=stack_level(),
                )
                restored.sources["sources"][name] = None
        self._restored = restored

    def _check_operators(self, nodes: list[OpNode], restored: Checkpoint) -> None:
        """Check that the operators and sources are those of a checkpoint."""
        names = self._checkpoint_names
        assert names is not None
        check_same(nodes, names, restored.operators)
        for node in nodes:
            name = names.get(node.serial)
            if node.attachment is None or name is None:
                continue
            before = restored.operators[name]["source"]
            if before != node.attachment.kind:
                raise CheckpointError(
                    f"{_source(node)} is of the kind {node.attachment.kind!r}; when the checkpoint "
                    f"was made, it was of the kind {before!r}."
                )

    def _seeds(self, nodes: list[OpNode]) -> dict[int, int]:
        """The seeds of random operators, by ``id(node)``; a checkpoint has its own."""
        seeds = assign_seeds(nodes, self._settings.seed)
        names, restored = self._checkpoint_names, self._restored
        if restored is not None and names is not None:
            for node in nodes:
                if id(node) in seeds and node.serial in names:
                    seeds[id(node)] = restored.operators[names[node.serial]]["seed"]
        return seeds

    def _opened(self, node: OpNode, seeds: dict[int, int]) -> Any:
        """The reader of `node`, ready to be read from the beginning."""
        try:
            reader: Any = node.schema.cls(node.args)
            reader.checkpointing = self._settings.enable_checkpointing
            reader.open(self.max_batch_size, seeds.get(id(node), 0))
        except Exception as error:
            raise located(error, node.where()) from error
        return reader

    def _resume(self, plan: Plan) -> None:
        """Bring readers and sources to where they were."""
        names, restored = self._checkpoint_names, self._restored
        if restored is None or names is None:
            return
        self._iteration = restored.iteration
        for node in plan.readers:
            self._resume_reader(node, restored.operators[names[node.serial]])
        self._feeding.restore(restored.sources)

    def _resume_reader(self, node: OpNode, entry: dict[str, Any]) -> None:
        self._check_reader(node, entry)
        reader = self._readers[id(node)]
        if entry["shard"] == reader.meta()["shard_id"]:
            reader.restore(entry["state"])
        else:
            reader.follow(entry["state"])

    def _check_reader(self, node: OpNode, entry: dict[str, Any]) -> None:
        """Check that a reader reads what it did when a checkpoint was made."""
        reader = self._readers[id(node)]
        before, now = entry["data"], reader.identity()
        differences = [
            f"`{what}` is {now.get(what)!r} and was {before.get(what)!r}"
            for what in sorted({*before, *now})
            if before.get(what) != now.get(what)
        ]
        if differences:
            raise CheckpointError(
                f'The reader "{node.name}", created at {node.user_line}, cannot go on where it was '
                "when the checkpoint was made, because it reads something else: "
                f"{'; '.join(differences)}."
            )

    # -- once it has run -----------------------------------------------------------------------

    def _readable_checkpoint(self, data: bytes | str) -> Checkpoint:
        """The checkpoint in `data`, if this pipeline can go on from it.

        Raises
        ------
        CheckpointError
            If it is none, or that of another pipeline.
        """
        self.build()
        executor, names = self._executor, self._checkpoint_names
        assert executor is not None
        assert names is not None
        found = Checkpoint.unpacked(data)
        self._check_operators(self._nodes, found)
        for node in executor.plan.readers:
            self._check_reader(node, found.operators[names[node.serial]])
        return found

    def _go_to(self, data: bytes | str) -> None:
        """Go to where a checkpoint was made, from wherever the pipeline is.

        All that is worked on ahead is dropped. Readers are opened anew, and worker processes of
        external sources are started anew, because they hold sources that have been used.
        """
        with self._building:
            if self._executor is not None:
                self._executor.cancel()
            self._shutdown()
            self._py_pool.close()  # also where the last build failed
            self._py_pool = SourceWorkers(self._settings)
            for node in self._nodes:
                if node.attachment is not None:
                    node.attachment.begin_anew()
            self._settings.checkpoint = data
            self._begin_running()
            self.build()


def _source(node: OpNode) -> str:
    return f'The source of the external source "{node.name}", created at {node.user_line},'


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file that nobody ever finds half written."""
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
