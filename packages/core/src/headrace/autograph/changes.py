"""Items and attributes that a branch of an `if` on data changes: put back, and joined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace.autograph import tracing
from headrace.autograph.joining import Missing, extents_differ, unset
from headrace.errors import ArgumentTypeError, DivergentBranchesError
from headrace.graph.user_line import user_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.autograph.blocks import DataBlocks

    Join = Callable[[Any, Any, str], Any]

NOTHING = unset("it")
"""An item or attribute that is not there."""


class Attribute:
    """An attribute of an object."""

    def __init__(self, base: Any, name: str, text: str) -> None:
        self.base = base
        self.text = text
        self._name = name
        self.key: tuple[int, Any] = id(base), (name,)

    def get(self) -> Any:
        """Return the current value of the attribute."""
        return getattr(self.base, self._name, NOTHING)

    def set(self, value: Any) -> None:
        """Put something there, or `NOTHING`."""
        if value is not NOTHING:
            setattr(self.base, self._name, value)
        elif self.get() is not NOTHING:
            delattr(self.base, self._name)

    def join(self, if_true: Any, if_false: Any, join: Join) -> Any:
        """Join the values from the two branches."""
        return _known(join(if_true, if_false, repr(f"{self.text}.{self._name}")))


class Item(Attribute):
    """An item of an object that is no list or dictionary; `name` is its key."""

    def get(self) -> Any:
        try:
            return self.base[self._name]
        except (LookupError, TypeError):
            return NOTHING

    def set(self, value: Any) -> None:
        if value is not NOTHING:
            self.base[self._name] = value
        elif self.get() is not NOTHING:
            del self.base[self._name]

    def join(self, if_true: Any, if_false: Any, join: Join) -> Any:
        return _known(join(if_true, if_false, repr(f"{self.text}[{self._name!r}]")))


class Contents:
    """All items of a list or dictionary: whichever keys name them, and however many there are."""

    def __init__(self, base: Any, text: str) -> None:
        self.base = base
        self.text = text
        self.key = id(base), ()

    def get(self) -> Any:
        """Return a copy of the contents."""
        return dict(self.base) if isinstance(self.base, dict) else list(self.base)

    def set(self, value: Any) -> None:
        """Replace the contents."""
        if isinstance(self.base, dict):
            self.base.clear()
            self.base.update(value)
        else:
            self.base[:] = value

    def join(self, if_true: Any, if_false: Any, join: Join) -> Any:
        """Join the items from the two branches."""
        name = repr(self.text)
        if isinstance(if_true, dict):
            return {
                k: _known(
                    join(
                        if_true.get(k, NOTHING),
                        if_false.get(k, NOTHING),
                        repr(f"{self.text}[{k!r}]"),
                    )
                )
                for k in {**if_true, **if_false}
            }
        if len(if_true) != len(if_false):
            raise DivergentBranchesError(extents_differ(name, if_true, if_false, user_line()))
        return [
            _known(join(a, b, repr(f"{self.text}[{k}]")))
            for k, (a, b) in enumerate(zip(if_true, if_false, strict=True))
        ]


Slot = Attribute | Contents


class Changes:
    """Changes made by one branch, in order of the first change."""

    def __init__(self) -> None:
        self.slots: dict[tuple[int, Any], Slot] = {}
        self.before: dict[tuple[int, Any], Any] = {}
        self.after: dict[tuple[int, Any], Any] = {}

    def note(self, slot: Slot) -> None:
        """Record the present value before its first change."""
        if slot.key not in self.slots:
            self.slots[slot.key] = slot
            self.before[slot.key] = slot.get()

    def undo(self) -> None:
        """Put back all that was there, but into lists and dictionaries that the branch made."""
        self.after = {key: slot.get() for key, slot in self.slots.items()}
        old = {id(each) for value in self.before.values() for each in _containers(value)}
        own = {id(each) for value in self.after.values() for each in _containers(value)} - old
        for key in list(reversed(self.slots)):
            if key[0] in own:
                del self.slots[key], self.after[key]
            else:
                self.slots[key].set(self.before[key])


def join_changes(if_true: Changes, if_false: Changes, join: Join) -> None:
    """Assign the joined values of both branches; everything is as before both when called."""
    slots = {**if_true.slots, **if_false.slots}
    before = {**if_false.before, **if_true.before}
    pending = dict.fromkeys(slots)

    def settle(key: tuple[int, Any]) -> None:
        del pending[key]
        values = [each.after.get(key, before[key]) for each in (if_true, if_false)]
        # Of what is in it, all is to be joined already.
        inner = {id(each) for value in values for each in _containers(value)}
        for other in [other for other in pending if other[0] in inner]:
            if other in pending:
                settle(other)
        slots[key].set(slots[key].join(values[0], values[1], join))

    while pending:
        settle(next(iter(pending)))


def _known(value: Any) -> Any:
    if isinstance(value, Missing) and value is not NOTHING:
        raise value.error(value.message)
    return value


def _containers(value: Any) -> Iterator[Any]:
    """The lists and dictionaries in `value`, which may be one."""
    if isinstance(value, (list, dict, tuple)):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from _containers(each)


class Changed:
    """Proxy of an object whose items or attributes a branch assigns or deletes; records these
    changes.
    """

    __slots__ = ("_headrace",)

    def __init__(self, base: Any, text: str, blocks: list[DataBlocks]) -> None:
        object.__setattr__(self, "_headrace", (base, text, blocks))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._headrace[0], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_noted(self, Attribute, name), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_noted(self, Attribute, name), name)

    def __getitem__(self, key: Any) -> Any:
        return self._headrace[0][key]

    def __setitem__(self, key: Any, value: Any) -> None:
        _noted(self, Item, key)[key] = value

    def __delitem__(self, key: Any) -> None:
        del _noted(self, Item, key)[key]


def _noted(changed: Changed, kind: type[Attribute], name: Any) -> Any:
    """The object, once the change is noted."""
    base, text, blocks = changed._headrace
    slot: Slot
    if kind is Item and isinstance(base, (list, dict)):
        _check_key(name, text)
        slot = Contents(base, text)
    else:
        slot = kind(base, name, text)
        try:
            hash(slot.key)
        except TypeError:  # a part of an array, which is no data
            return base
    for block in blocks:
        block.changes.note(slot)
    return base


def _check_key(key: Any, text: str) -> None:
    branches = tracing.current()
    if branches is not None and branches.is_data(key):
        raise ArgumentTypeError(
            f"The key of `{text}[...]`, assigned at {user_line()}, is data; which item is assigned "
            "must be known while the pipeline is being defined. Assign each of them, with a "
            f"condition: `{text}[0] = new if key == 0 else {text}[0]`."
        )
