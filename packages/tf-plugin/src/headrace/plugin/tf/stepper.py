"""The function that TensorFlow calls for each batch, and the sessions behind it.

TensorFlow sees a function without a state of its own: from the state of an iterator to its next
state and a batch. So iterators can be saved, restored and copied as any other. That a session
stands where the state says is a matter of speed: where none does, one is brought there.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import UsageError
from headrace.plugin.tf import program_end
from headrace.plugin.tf.session import Session, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.plugin.tf.components import Component

_numbers = itertools.count(1)
"""Numbers of all steps, so that no two tokens of a process are alike."""
_TRUE, _FALSE = np.array(True), np.array(False)
_NO_TOKEN = np.zeros(0, np.uint8)
"""The state of an iterator at its beginning."""


class Stepper:
    """Makes the batches of the iterators over one dataset.

    Each iterator has a session. It is found by the token that it left with the iterator in the step
    before, and ends when the token is gone, because the iterator is. With `goes_on`, a new iterator
    goes on with the next epoch where an older one has ended.
    """

    def __init__(self, make_session: Callable[[], Session], goes_on: bool) -> None:
        self._make_session = make_session
        self._process = os.getpid()
        self._goes_on = goes_on
        self.components: Sequence[Component] = ()
        """Components of the outputs; set before the first step."""
        self._lock = threading.RLock()
        """Guards the next two; never held while a pipeline is waited for. Re-entrant, because the
        garbage collector may find that an iterator is gone while it is held.
        """
        self._by_key: dict[bytes, Session] = {}
        """Sessions with an iterator, by the keys of their tokens."""
        self._idle: list[Session] = []
        """Sessions without one."""
        program_end.add(self)

    def first_session(self) -> Session:
        """The session of the first iterator."""
        if not self._idle:
            self._idle.append(self._make_session())
        return self._idle[0]

    def step(self, state: np.ndarray) -> list[np.ndarray]:
        """Do one step from `state`: the next state, whether there is a batch, its components."""
        self.check_process()
        with program_end.call() as has_begun:
            if has_begun():
                return self._end()
            try:
                found = self._step(Token.read(state))
            except Exception:
                if not has_begun():
                    raise
            return self._end() if has_begun() else found

    def check_process(self) -> None:
        """Check that this is the process in which the dataset was made.

        A process that was forked from it has no threads of TensorFlow's, nor of the pipelines', and
        would wait for them for ever.
        """
        if os.getpid() != self._process:
            raise UsageError(
                "The process was forked from the one that made this DALIDataset, and TensorFlow "
                'does not work in forked processes. Start processes with the method "spawn", and '
                "make the dataset in them."
            )

    def weak_step(self) -> Callable[[np.ndarray], list[np.ndarray]]:
        """`step`, as a function that does not keep the stepper alive.

        TensorFlow appends each function of a ``numpy_function`` to the outermost graph, which is
        that of the process in eager execution, and never lets go of it. The dataset keeps the
        stepper, and TensorFlow's iterators keep their datasets.
        """
        found = weakref.ref(self)

        def step(state: np.ndarray) -> list[np.ndarray]:
            stepper = found()
            if stepper is None:
                raise UsageError(
                    "The `DALIDataset` of this iterator has been deleted: keep a reference to it."
                )
            return stepper.step(state)

        return step

    def _step(self, token: Token) -> list[np.ndarray]:
        session = self._session(token)
        with session.lock:
            try:
                batch = next(session)
            except StopIteration:
                self._ended(session)
                return self._end()
            arrays = [
                array
                for component in self.components
                for array in component.arrays(batch.outputs[component.number], batch.kept)
            ]
            new = Token.of(session, next(_numbers))
        with self._lock:
            self._by_key.pop(session.key, None)
            session.key = new.key
            self._by_key[new.key] = session
        dropped = weakref.WeakMethod(self._dropped)
        state = new.kept(lambda key: _call(dropped, key))
        return [state, _TRUE, *arrays]

    def _end(self) -> list[np.ndarray]:
        return [_NO_TOKEN, _FALSE, *(a for c in self.components for a in c.empty())]

    def _session(self, token: Token) -> Session:
        """The session that stands where `token` says."""
        if not token.key:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                return self._make_session()
            idle.reset()  # which does nothing at the beginning of an epoch
            return idle
        with self._lock:
            session = self._by_key.get(token.key)
        if session is None:
            state = token.state()
            session = self._make_session()
            session.load_state_dict(state)
        return session

    def _ended(self, session: Session) -> None:
        with self._lock:
            self._by_key.pop(session.key, None)
            self._leave(session)
        if not self._goes_on:
            session.close()

    def _dropped(self, key: bytes) -> None:
        """Take note that a token is gone; if it was the last one of a session, so is its iterator.

        The session ends with the last reference to it: a copy of the iterator may be using it.
        """
        with self._lock:
            session = self._by_key.pop(key, None)
            if session is not None:
                self._leave(session)

    def _leave(self, session: Session) -> None:
        """Let the next iterator have the session, where it goes on with its next epoch."""
        session.key = b""
        if self._goes_on:
            self._idle.append(session)

    def is_in_use(self) -> bool:
        """True if there are iterators."""
        return bool(self._by_key)

    def close(self) -> None:
        """Stop the threads of all sessions."""
        with self._lock:
            sessions = [*self._by_key.values(), *self._idle]
        for session in sessions:
            session.close()


def _call(method: weakref.WeakMethod[Any], key: bytes) -> None:
    found = method()
    if found is not None:
        found(key)
