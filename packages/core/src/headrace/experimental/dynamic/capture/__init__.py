"""Loops that are traced once and then done ahead.

``reader.next_epoch(batch_size=N, capture=True)`` and ``source.captured(N)`` are loops like any
other, with the same values bit for bit. Their first two steps are done as usual and noted. From
then on the calls that both steps had in common are done some steps ahead, as one piece of work for
each step, while the program is still busy with an earlier one: as a pipeline would.

Every call is compared with what was noted. A call of another operator, with other arguments, or on
data from elsewhere is simply done when it is made; so is a call that reads its result. Random
generators are the exception: numbers are drawn ahead in the way they were drawn before, and a loop
that takes more or fewer of them than in the step before ends with an error.
"""

from headrace.experimental.dynamic.invariants import invariant

__all__ = ["invariant"]
