"""An index whose pieces are what a reader's parser makes of the entries of its index."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import BadSampleError
from headrace.operators.readers.index import FileIndex, Index, RaggedColumn, fetched
from headrace.operators.readers.kept_index import kept_arrays
from headrace.operators.readers.storage import Allocate, join
from headrace.operators.support.contexts import SampleContext
from headrace.operators.support.lazy_value import computed
from headrace.operators.support.planning import PlanContext, Samples
from headrace.types import storage_dtype

if TYPE_CHECKING:
    from headrace.operators.readers.base import Reader

_TOGETHER = 256
"""Entries that are read at once to find the lengths of all."""
_MOST_THREADS = 8
_MEMORY: Any = SimpleNamespace(empty=np.empty)


def parse(
    reader: Reader, c: SampleContext, dtypes: Sequence[Any], data: Sequence[Any]
) -> list[Any]:
    """Call the parser of a reader as another operator, whose context is `c`.

    `dtypes`: those of all outputs of the reader. `data`: what the parser is handed.
    """
    plans: Any = None
    if reader.plan is not None:
        context = PlanContext(reader.args, {}, (c.index,), c.seed, c.iteration, [c.source])
        planned = reader.plan(context, *[Samples([each]) for each in data])
        if planned is not None:
            shapes = [[tuple(each[0].tolist())] for each in planned.shapes]
            plans = SimpleNamespace(rows=planned.rows(1), shapes=shapes, dtypes=dtypes)
    memory = [None] * len(dtypes)
    own = SampleContext(c.node, reader.args, c.arena, c.seed, memory, (c.index,), [c.source], plans)
    own.iteration = c.iteration
    found = computed(reader.cpu(own, *data), own)
    return list(found) if isinstance(found, (tuple, list)) else [found]


class ParsedIndex(Index):
    """The entries of a reader that was opened, with its `outputs` as pieces."""

    def __init__(self, reader: Reader, outputs: Sequence[int]) -> None:
        specs = reader.output_specs()
        super().__init__(len(reader.index), [specs[k] for k in outputs])
        self._reader, self._part, self._outputs = reader, reader.index, list(outputs)
        self.indices = (self._part,)
        self._dtypes = [storage_dtype(spec.dtype) for spec in specs]
        self._first_column = len(specs) - len(reader.index.columns)
        self._bytes = 0
        self.reads_apart, self.orders_groups = self._part.reads_apart, self._part.orders_groups
        self.looks_ahead, self.length_names = self._part.looks_ahead, self._part.length_names

    def source(self, entry: int) -> str:
        """The file or key that an entry comes from."""
        return self._part.source(entry)

    def containers(self) -> np.ndarray:
        """The first entry of what is read in one go."""
        return self._part.containers()

    def lengths(self, name: str) -> np.ndarray | None:
        """The lengths that the reader knows by this name."""
        return self._part.lengths(name)

    def expect(self, entries: Sequence[int]) -> None:
        """Take note that entries will be wanted soon."""
        self._part.expect(entries)

    def fetch_together(self, entries: np.ndarray, empty: Allocate) -> Sequence[Any]:
        """Outputs of several entries; `None` for those of one that is bad."""
        part, count = self._part, len(self._part.specs)
        pieces, self._bytes = fetched(part, entries, empty, self._bytes)
        columns = [column[entries] for column in (*part.details, *part.columns)]
        found: list[Any] = []
        for k, entry in enumerate(entries.tolist()):
            own = pieces[k * count : (k + 1) * count]
            there = all(p is not None and (p.size or part.allows_empty) for p in own)
            try:
                found += self._parsed(entry, own, [c[k] for c in columns]) if there else [None]
            except Exception:  # whatever it is, `fetch` meets it again
                there = False
            if not there:
                found[k * len(self.specs) :] = [None] * len(self.specs)
        return found

    def fetch(self, entry: int) -> tuple[Any, ...]:
        """Outputs of one entry."""
        columns = [column[np.array([entry])][0] for column in self._columns]
        return tuple(self._parsed(entry, self._part.fetch(entry), columns))

    @property
    def _columns(self) -> tuple[Any, ...]:
        return (*self._part.details, *self._part.columns)

    def _parsed(self, entry: int, pieces: Sequence[Any], columns: Sequence[Any]) -> list[Any]:
        details = len(self._part.details)
        made = [*pieces, *columns[:details]]
        if self._reader.parses:
            node: Any = None
            args = self._reader.args
            c = SampleContext(node, args, _MEMORY, 0, (), (0,), [self.source(entry)])
            made = parse(self._reader, c, self._dtypes, made)
        every = [*made, *columns[details:]]
        return [np.asarray(every[k]) for k in self._outputs]

    def measured(self) -> np.ndarray:
        """Number of elements of the first output of each entry, int64, for which all are read if no
        column says it; 1 for those that cannot be read.
        """
        first = self._outputs[0]
        if first >= self._first_column:
            column = self._part.columns[first - self._first_column]
            if isinstance(column, RaggedColumn):
                return np.diff(column.ends, prepend=0)
            return np.array([len(v) for v in column[np.arange(len(self))]], np.int64)
        part = self._part
        if not isinstance(part, FileIndex):
            return self._scanned()
        digest = hashlib.blake2b(repr([vars(self._reader.args), first]).encode(), digest_size=16)
        for name, places in sorted(part._places.items()):
            digest.update(name.encode() + places.tobytes())
        kind = f"lengths {type(self._reader).__name__} {digest.hexdigest()}"
        paths = [join(part.root, path) for path in part.paths]
        kept = kept_arrays(kind, paths, lambda: {"lengths": self._scanned()})
        assert kept is not None
        return kept["lengths"]

    def _scanned(self) -> np.ndarray:
        bounds = range(0, len(self), _TOGETHER)
        with ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_THREADS)) as threads:
            return np.concatenate(list(threads.map(self._sizes, bounds)))

    def _sizes(self, begin: int) -> np.ndarray:
        entries = np.arange(begin, min(begin + _TOGETHER, len(self)))
        if self._part.reads_apart:
            self.expect(entries.tolist())
        rows = self.fetch_together(entries, np.empty)[:: len(self.specs)]
        found = np.ones(len(entries), np.int64)
        for k, row in enumerate(rows):
            try:
                found[k] = len(self.fetch(int(entries[k]))[0] if row is None else row)
            except BadSampleError:
                continue  # its row tells of it, as the policy of bad samples has it
        return found
