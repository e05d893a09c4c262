"""One call of an operator, as every suite of tests can make it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headrace.operators.support.registry import find
from headrace.operators.support.schema import OpSchema

Rows = list[np.ndarray]


@dataclass
class Case:
    """For each input the samples and their layout; constants, and arguments by sample."""

    name: str
    inputs: list[tuple[Rows, str]]
    args: dict[str, Any] = field(default_factory=dict)
    """Members of `types` by their names; ``{root}`` stands for the folder of `files`."""
    tensors: dict[str, list[Any]] = field(default_factory=dict)
    dali: bool = True
    """DALI's dynamic mode takes the same call."""
    exact: bool = False
    written: Callable[..., Any] | None = None
    """``written(fn, *inputs)`` for operators that users write and do not call: ``x[1:]``."""
    dynamic: bool = True
    """Ours does."""
    gpu: bool = True
    """The GPU does, where the operator runs there."""
    note: str = ""
    """What tells it from others with the same arguments."""
    batch_size: int = 3
    """Where there are no inputs."""
    derived: bool = False
    """Made of another case by `variants`."""
    key_of: str = ""
    """The key of the case that this one is a form of."""

    @property
    def size(self) -> int:
        """Number of samples."""
        return len(self.inputs[0][0]) if self.inputs else self.batch_size

    @property
    def schema(self) -> OpSchema:
        """Declaration of the operator."""
        return find(self.name)

    def constants(self, types: Any, root: str = "") -> dict[str, Any]:
        """The constants, with members of a library's `types`, and of files below `root`."""

        def value(given: Any) -> Any:
            if isinstance(given, list) and given and isinstance(given[0], str):
                return [value(each) for each in given]
            if not isinstance(given, str):
                return given
            return getattr(types, given, None) or given.replace("{root}", root)

        return {name: value(given) for name, given in self.args.items()}

    @property
    def devices(self) -> list[str]:
        """Where it runs: ``"cpu"``, ``"gpu"``; the latter also for ``"mixed"``."""
        schema, found = self.schema, []
        if "cpu" in schema.devices and (schema.cls.has_cpu() or schema.fed or schema.reader):
            found.append("cpu")
        if (
            self.gpu
            and not self.derived
            and {"gpu", "mixed"} & set(schema.devices)
            and schema.cls.has_gpu()
        ):
            found.append("gpu")
        return found

    @property
    def key(self) -> str:
        """All that tells this case from others, in one line."""
        if self.key_of:
            return self.key_of
        inputs = [f"{rows[0].dtype}{list(rows[0].shape)}{layout}" for rows, layout in self.inputs]
        args = [f"{k}={_short(v)}" for k, v in self.args.items()]
        tensors = [f"{k}=each{_short(v)}" for k, v in self.tensors.items()]
        return " ".join([self.name, *filter(None, [self.note]), *inputs, *args, *tensors])

    def as_sequence(self) -> Case | None:
        """Each sample twice, as frames, if the operator takes sequences of these."""
        schema = self.schema
        if not (schema.frames and self.inputs) or self.written:
            return None
        rows, layout = self.inputs[0]
        allowed = schema.inputs[0].layouts
        if not layout or "F" in layout or (allowed and f"F{layout}" not in allowed):
            return None
        frames = [np.stack([row, row[::-1]]) for row in rows], f"F{layout}"
        return replace(self, inputs=[frames, *self.inputs[1:]])

    def __str__(self) -> str:
        return self.key


def _short(value: Any) -> str:
    if callable(value):
        return "..."
    text = str(value.tolist() if isinstance(value, np.ndarray) else value).replace(" ", "")
    return text if len(text) <= 40 else text[:37] + "..."
