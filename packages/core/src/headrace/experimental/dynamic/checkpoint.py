"""Saving and restoring the state of readers and random generators together."""

from __future__ import annotations

import contextlib
import glob
import importlib
import json
import os
import re
import string
import tempfile
from dataclasses import dataclass
from typing import Any

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CheckpointNotFoundError,
    UnknownNameError,
    UsageError,
)

__all__ = ["Checkpoint", "current"]

_VERSION = 2
_AUTOMATIC = "__op_"
_EXAMPLE = '"state_{seq:04d}.json"'


@dataclass(slots=True)
class _Entry:
    """State kept under one name."""

    state: Any
    type_name: str | None


class Checkpoint:
    """The states of several objects, by name: to be saved, and restored in another process.

    Objects are those with ``get_state()`` and ``set_state(state)``: readers and `random.RNG`. A
    state that is there already when an object is registered is given to the object at once.

    Examples
    --------
    >>> import headrace.experimental.dynamic as ndd
    >>> rng = ndd.random.RNG(seed=42)
    >>> saved = ndd.checkpoint.Checkpoint()
    >>> saved.register(rng, "rng")
    'rng'
    >>> saved.collect()
    >>> text = saved.serialize()
    >>> other = ndd.checkpoint.Checkpoint()
    >>> other.deserialize(text)
    >>> other.register(ndd.random.RNG(), "rng")
    'rng'
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all objects and states."""
        self._objects: dict[str, Any] = {}
        self._states: dict[str, _Entry] = {}
        self._dirty: set[str] = set()
        """Names of the states that have yet to be given to their objects."""
        self._sequence = 0
        self._complete = False
        self._loaded = False

    @property
    def is_complete(self) -> bool:
        """True if the states are those of the last `collect`."""
        return self._complete

    @property
    def is_loaded(self) -> bool:
        """True if the states came from `load` or `deserialize`, and none was collected since."""
        return self._loaded

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the objects, in the order of their registration."""
        return tuple(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, name: object) -> bool:
        return name in self._objects

    def register(self, op: Any, name: str | None = None) -> str:
        """Add an object.

        Parameters
        ----------
        op
            A reader or an `RNG`.
        name
            Name of its state. Without it, a name is made of the number of objects there are, so
            that a program that is to restore them must register as many in the same order. Another
            object of that name and type is replaced.

        Returns
        -------
        str
            The name.

        Raises
        ------
        ArgumentValueError
            If `name` is empty or could be a name made by counting.
        UsageError
            If the object has another name, or states were collected and this one is not among them.
        UnknownNameError
            If states were loaded and this one is not among them.
        ArgumentTypeError
            If `op` has no state, or its type is not that of the object or the state of this name.
        """
        known = next((n for n, o in self._objects.items() if o is op), None)
        if name is None:
            if known is not None:
                return known
            name = f"{_AUTOMATIC}{len(self._objects)}"
        else:
            _check_name(name)
            if known is not None and known != name:
                raise UsageError(
                    f"The object cannot get the name {name!r}: it has the name {known!r}."
                )
        if not (hasattr(op, "get_state") and hasattr(op, "set_state")):
            raise ArgumentTypeError(
                f"{op!r} has no `get_state` and `set_state`; readers and random.RNG have."
            )
        self._check_type(op, name)
        keep_states = getattr(op, "_keep_states", None)  # readers keep none unless told to
        if keep_states is not None:
            keep_states()
        self._objects[name] = op
        self._apply(name)
        return name

    def _check_type(self, op: Any, name: str) -> None:
        kind = type(op).__name__
        old = self._objects.get(name)
        if old is not None:
            if type(old).__name__ != kind:
                raise ArgumentTypeError(
                    f"Cannot replace operator {name!r}, of type '{type(old).__name__}', by one of "
                    f"type '{kind}'."
                )
        elif self._complete:
            raise UsageError(
                f"The checkpoint is completed: states were collected, and {name!r} is not among "
                "them; `clear` starts anew."
            )
        elif self._loaded and name not in self._states:
            raise UnknownNameError(
                f"Loaded checkpoint has no state {name!r}; its states are "
                f"{', '.join(map(repr, self._states))}. Names made by counting depend on the "
                "order of registration: `register(op, name)` does not."
            )
        entry = self._states.get(name)
        if entry is not None and entry.type_name is not None and entry.type_name != kind:
            raise ArgumentTypeError(
                f"Type mismatch: the state {name!r} is that of a '{entry.type_name}', but the "
                f"object is a '{kind}'."
            )

    def _apply(self, name: str) -> None:
        if name in self._dirty:
            self._objects[name].set_state(self._states[name].state)
            self._dirty.remove(name)

    def get_state(self, name: str) -> Any:
        """The state kept for an object; `None` where there is none yet.

        Raises
        ------
        UnknownNameError
            If no object has that name.
        """
        if name not in self._objects:
            raise UnknownNameError(f"No object {name!r} is registered.")
        entry = self._states.get(name)
        return None if entry is None else entry.state

    def set_state(self, name: str, value: Any, op_type: type | str | None = None) -> None:
        """Keep a state for an object, which gets it in `register` or `restore`.

        Parameters
        ----------
        name
            Name of an object, which may be registered later.
        value
            What the object's ``set_state`` takes.
        op_type
            Class of the object, or its name, to be compared with the object's.

        Raises
        ------
        UnknownNameError
            If states were collected and there is no object of that name.
        ArgumentTypeError
            If `op_type` is neither a class nor a string.
        """
        if op_type is not None and not isinstance(op_type, (type, str)):
            raise ArgumentTypeError(f"`op_type` is a class or its name, got {op_type!r}.")
        if self._complete and name not in self._objects:
            raise UnknownNameError(f"No object {name!r} is registered.")
        kind = op_type.__name__ if isinstance(op_type, type) else op_type
        if kind is not None:
            kind = kind.rpartition(".")[2]
        elif name in self._states:
            kind = self._states[name].type_name
        self._states[name] = _Entry(value, kind)
        self._dirty.add(name)

    def _check_owners(self) -> None:
        orphans = [name for name in self._states if name not in self._objects]
        if orphans:
            raise UsageError(
                f"There are states that have no corresponding registered ops: {orphans}."
            )

    def collect(self) -> None:
        """Keep the states that all objects are in now.

        Raises
        ------
        UsageError
            If there are states of objects that are not registered, or an object has no state now.
        """
        self._check_owners()
        collected = {
            name: _Entry(op.get_state(), type(op).__name__) for name, op in self._objects.items()
        }
        self._states = collected
        self._dirty.clear()
        self._complete = True
        self._loaded = False

    def restore(self) -> None:
        """Give all objects their states, but for those that have got them already.

        Raises
        ------
        UsageError
            If a state has no object or an object no state. With no state at all, nothing happens.
        """
        if not self._states:
            return
        self._check_owners()
        missing = [name for name in self._objects if name not in self._states]
        if missing:
            raise UsageError(f"The checkpoint is incomplete: it has no states of {missing}.")
        for name, op in self._objects.items():
            self._check_type(op, name)
            self._apply(name)

    def serialize(self) -> str:
        """All states as a text, in JSON.

        Raises
        ------
        UsageError
            If there are none.
        """
        if not self._states:
            raise UsageError("The checkpoint is empty: call `collect` first.")
        states = {
            name: {"state": str(entry.state), "type": entry.type_name}
            for name, entry in self._states.items()
        }
        return json.dumps({"version": _VERSION, "states": states})

    def deserialize(self, data: str) -> None:
        """Take states from `data`, a text that `serialize` made, in place of those there are.

        Raises
        ------
        ValueError
            If it is no such text.
        """
        found = json.loads(data)
        if not isinstance(found, dict) or "version" not in found:
            raise ArgumentValueError("This is no checkpoint: it has no version.")
        if found["version"] != _VERSION:
            raise ArgumentValueError(
                f"The checkpoint has the version {found['version']!r}; known is {_VERSION}."
            )
        states = found.get("states")
        if not isinstance(states, dict):
            raise ArgumentValueError("This is no checkpoint: it has no states.")
        entries = {}
        for name, entry in states.items():
            if not isinstance(entry, dict) or "state" not in entry or "type" not in entry:
                raise ArgumentValueError(
                    f"Invalid checkpoint entry {name!r}: it needs a `state` and a `type`."
                )
            if not isinstance(entry["type"], (str, type(None))):
                raise ArgumentValueError(
                    f"Invalid `type` of the checkpoint entry {name!r}: {entry['type']!r} is no "
                    "name of a class."
                )
            entries[name] = _Entry(entry["state"], entry["type"])
        self._states = entries
        self._dirty = set(entries)
        self._loaded = True
        self._complete = False

    def save(self, filename: str | os.PathLike[str]) -> str:
        """Write the states to a file, which appears complete or not at all.

        Parameters
        ----------
        filename
            Holds ``{seq}``, also with a format as in ``{seq:04d}``: a number higher than those of
            the files there are.

        Returns
        -------
        str
            Name of the file.

        Raises
        ------
        UsageError
            If there are no states.
        ArgumentValueError
            If `filename` does not hold ``{seq}``.
        UnknownNameError
            If it holds anything else in braces.
        """
        pattern = _checked_pattern(filename)
        data = self.serialize()
        present = [number for number, _ in _numbered_files(pattern)]
        sequence = max(self._sequence, max(present, default=-1) + 1)
        path = pattern.format(seq=sequence)
        self._sequence = sequence + 1
        _write(path, data)
        return path

    def load(self, filename: str | os.PathLike[str]) -> str:
        """Take the states from a file that `save` wrote.

        Parameters
        ----------
        filename
            As for `save`; of several files, that of the highest number is read.

        Returns
        -------
        str
            Name of the file.

        Raises
        ------
        FileNotFoundError
            If there is none.
        ValueError
            If it is no checkpoint, or `filename` does not hold ``{seq}``.
        """
        pattern = _checked_pattern(filename)
        found = max(_numbered_files(pattern), default=None)
        if found is None:
            raise CheckpointNotFoundError(f"There is no file of a checkpoint {pattern!r}.")
        path = found[1]
        with open(path, encoding="utf-8") as file:
            self.deserialize(file.read())
        return path


def current() -> Checkpoint:
    """The checkpoint of the current `EvalContext`."""
    # A context has a checkpoint, so that its module is above this one.
    contexts = importlib.import_module("headrace.experimental.dynamic.contexts")
    found: Checkpoint = contexts.EvalContext.current().checkpoint
    return found


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"`name` is a string, got {name!r}.")
    if not name:
        raise ArgumentValueError("`name` is empty.")
    if name.startswith(_AUTOMATIC):
        raise ArgumentValueError(
            f"`name`={name!r} begins with {_AUTOMATIC!r}, like names that are made by counting."
        )


def _checked_pattern(filename: str | os.PathLike[str]) -> str:
    """`filename`, if it holds ``{seq}`` and nothing else in braces."""
    pattern = os.fspath(filename)
    fields = {field for _, field, _, _ in string.Formatter().parse(pattern) if field is not None}
    if fields - {"seq"}:
        raise UnknownNameError(
            f"{pattern!r} may hold {{seq}} only, as in {_EXAMPLE}; got {sorted(fields - {'seq'})}."
        )
    if not fields:
        raise ArgumentValueError(
            f"`filename`={pattern!r} does not hold {{seq}}, the number of the file, as in "
            f"{_EXAMPLE}."
        )
    return pattern


def _numbered_files(pattern: str) -> list[tuple[int, str]]:
    """Number and name of each file that `pattern` can have given, however wide its numbers are."""
    searched, expression = "", ""
    for literal, field, _, _ in string.Formatter().parse(pattern):
        searched += glob.escape(literal)
        expression += re.escape(literal)
        if field is not None:
            expression += "(?P=seq)" if "(?P<seq>" in expression else r"(?P<seq>\d+)"
            searched += "*"
    compiled = re.compile(expression)
    found = []
    for path in glob.glob(searched):
        match = compiled.fullmatch(path)
        if match is not None:
            found.append((int(match["seq"]), path))
    return found


def _write(path: str, data: str) -> None:
    """Write `data` beside `path` and move it there."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".tmp")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
