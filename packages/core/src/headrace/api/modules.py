"""Public modules whose members are made from the registry when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from headrace.errors import OperatorNotReleasedError, UnknownOperatorError, did_you_mean
from headrace.operators.support import registry
from headrace.operators.support.listed import Listed
from headrace.operators.support.schema import OpSchema
from headrace.tracebacks import public


class OperatorNamespace:
    """One kind of interface: how it names an operator, and what it makes of a declaration."""

    def __init__(
        self, make: Callable[[OpSchema, str], Any], name_of: Callable[[OpSchema | Listed], str]
    ) -> None:
        self._make = make
        self._name_of = name_of

    def _offered(self) -> Iterable[OpSchema | Listed]:
        """The operators there are interfaces for."""
        return registry.listed()

    def install(self, root: str) -> None:
        """Create the sub-modules of module `root` that dotted operator names call for."""
        registry.on_replacement(lambda schema: self._forget(root, schema))
        for schema in self._offered():
            if schema.module:
                self._module(root, schema.module)

    def _module(self, root: str, dotted: str) -> ModuleType:
        full = f"{root}.{dotted}"
        if full in sys.modules:
            return sys.modules[full]
        module = ModuleType(full, f"Operators below ``{full}``.")
        module.__path__ = []
        module.__getattr__ = public(lambda name: self.lookup(full, name, root))  # type: ignore[method-assign]
        module.__dir__ = lambda: self.names(full, root)  # type: ignore[method-assign]
        sys.modules[full] = module
        parent, _, last = dotted.rpartition(".")
        owner = self._module(root, parent) if parent else sys.modules[root]
        setattr(owner, last, module)
        return module

    def _members(self, module: str, root: str) -> dict[str, OpSchema | Listed]:
        below = module[len(root) + 1 :]
        return {self._name_of(s): s for s in self._offered() if s.module == below}

    def lookup(self, module: str, name: str, root: str | None = None) -> Any:
        """Member `name` of `module`, made now and kept."""
        root = root or module
        found = None if name.startswith("__") else self._members(module, root).get(name)
        if found is None:
            below = f"{module[len(root) + 1 :]}.{name}".lstrip(".")
            if not name.startswith("__") and any(
                s.module == below or s.module.startswith(below + ".") for s in self._offered()
            ):
                return self._module(root, below)
            if name.startswith("__"):
                raise AttributeError(f"module {module!r} has no attribute {name!r}")
            raise self._to_come(module, name, root) or self._unknown(module, name, root)
        value = self._make(registry.find(found.name), module)
        setattr(sys.modules[module], name, value)
        return value

    def _to_come(self, module: str, name: str, root: str) -> OperatorNotReleasedError | None:
        """The error for a name that is an operator of DALI's, or a module with some."""
        from headrace.dali_names import DALI_CLASSES

        known = [
            Listed(operator, "", own, reader=f".{operator}".rpartition(".")[0].endswith(".readers"))
            for operator, own in DALI_CLASSES.items()
        ]
        wanted = f"{module}.{name}"[len(root) + 1 :]
        for operator in known:
            own = f"{operator.module}.{self._name_of(operator)}".lstrip(".")
            if own == wanted or own.startswith(f"{wanted}."):
                return OperatorNotReleasedError(
                    f"`{module.removeprefix('headrace.')}.{name}` is to come: DALI 2.4 has it, "
                    "this version of Headrace does not. docs/support-matrix.md lists what there is."
                )
        return None

    def _unknown(self, module: str, name: str, root: str) -> UnknownOperatorError:
        """Return the error for an unknown name, with the closest known ones."""
        shown = module.removeprefix("headrace.")
        elsewhere = {self._name_of(s): s for s in self._offered() if not s.hidden}
        if name in elsewhere:
            right = f"{elsewhere[name].module}.{name}".lstrip(".")
            question = f' Did you mean "{root.removeprefix("headrace.")}.{right}"?'
        elif replacement := self._replacement(name):
            right = f"{replacement.module}.{self._name_of(replacement)}".lstrip(".")
            question = (
                f" Former releases of DALI had it; in its place is "
                f'"{root.removeprefix("headrace.")}.{right}".'
            )
        else:
            question = did_you_mean(name, self.names(module, root))
        return UnknownOperatorError(f"`{shown}` has no operator {name!r}.{question}")

    def _replacement(self, name: str) -> OpSchema | Listed | None:
        """The operator that took the place of the one `name` of former releases of DALI."""
        from headrace.to_come import FORMER_OPERATORS

        wanted = FORMER_OPERATORS.get(name.lower().replace("_", ""))
        return next((s for s in self._offered() if s.name == wanted), None)

    def _forget(self, root: str, schema: OpSchema) -> None:
        """Let the next look-up make the interface of `schema` anew: it is declared again."""
        module = f"{root}.{schema.module}" if schema.module else root
        if module in sys.modules:
            vars(sys.modules[module]).pop(self._name_of(schema), None)

    def names(self, module: str, root: str | None = None) -> list[str]:
        """Public names in `module`."""
        root = root or module
        own = [n for n, s in self._members(module, root).items() if not s.hidden]
        prefix = module + "."
        below = [m[len(prefix) :] for m in sys.modules if m.startswith(prefix)]
        return sorted({*own, *(b for b in below if "." not in b and b[0] != "_")})
