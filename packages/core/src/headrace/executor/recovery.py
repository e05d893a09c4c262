"""Recovery of an iteration some of whose samples cannot be read, decoded or processed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import BadSampleError, NoGoodSampleError
from headrace.executor.bad_samples import BadSample, check_policy, find_replacements, report
from headrace.executor.plan import mixes_samples

if TYPE_CHECKING:
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan
    from headrace.executor.statistics import Statistics


AGAIN, RESTART = "again", "restart"
"""Next step of an iteration after its failed samples were handled."""


class Recovery:
    """Acts on failed samples as the user wants it."""

    def __init__(
        self, plan: Plan, readers: dict[int, Any], policy: str, statistics: Statistics
    ) -> None:
        self.bad_samples: list[BadSample] = []
        self._plan = plan
        self._readers = readers
        self._policy = check_policy(policy)
        self._statistics = statistics

    @property
    def tolerates(self) -> bool:
        """True if an iteration continues without failed samples."""
        return self._policy != "raise"

    def mend(self, iteration: Iteration, error: BaseException) -> str:
        """Repair the failed samples of a stage on the GPU, so that it can try again."""
        failures = getattr(error, "failures", None)
        stage = self._plan.stages[iteration.stage]
        if not failures:
            raise error
        if self._policy == "raise":
            raise failures[min(failures)]
        # Copies of a sample that fails now, in place of one that failed earlier, say nothing new.
        iteration.failures = {k: e for k, e in failures.items() if k not in iteration.replacements}
        if self._policy == "skip":
            iteration.stage = 0
        following = self.resolve(iteration)
        if not following:
            iteration.stage = stage.number - 1
        return following

    def resolve(self, iteration: Iteration) -> str:
        """Act on the failed samples of a stage."""
        first = iteration.failures[min(iteration.failures)]
        policy = self._policy
        if policy == "raise":
            raise first
        if policy == "skip" and (iteration.stage > 0 or not self._plan.readers):
            raise self._hopeless(
                iteration,
                first,
                'on_bad_sample="skip" can only make up for samples of a reader, before an operator '
                'that takes whole batches; use "replace" here.',
            )
        if policy == "skip" or not iteration.redraws:
            failures = sorted(iteration.failures.items())
            found = [report(error, iteration.number, k, policy) for k, error in failures]
            iteration.bad_samples += tuple(found)
            self.bad_samples += found
        if policy == "replace":
            return self._replace(iteration, first)
        self._redraw(iteration, first)
        return AGAIN

    def _replace(self, iteration: Iteration, first: BaseException) -> str:
        """Record the replacements of failed samples; see `Iteration.replacements`."""
        found = find_replacements(
            iteration.size, iteration.replacements.keys() | iteration.failures.keys()
        )
        iteration.failures.clear()
        if found is None:
            self._substitute(iteration, first)
            return RESTART
        iteration.replacements = found
        # Operators that see the whole batch may have put what is replaced now into other rows.
        earlier = self._plan.stages[: iteration.stage]
        return RESTART if any(mixes_samples(stage) for stage in earlier) else ""

    def _substitute(self, iteration: Iteration, first: BaseException) -> None:
        """If all samples are bad, try those before them in the data in place of the first one."""
        readers = self._plan.readers
        sizes = [int(self._readers[id(n)].meta()["epoch_size"]) for n in readers]
        if iteration.redraws >= max(sizes, default=0):
            raise self._hopeless(
                iteration,
                first,
                f"All {iteration.size} samples of iteration {iteration.number} are bad; there is "
                "none to replace them by.",
            )
        iteration.redraws += 1
        for node in readers:
            entries = iteration.entries[id(node)]
            entries[0] = self._readers[id(node)].before(entries[0])
        iteration.replacements = dict.fromkeys(range(1, iteration.size), 0)

    def _redraw(self, iteration: Iteration, first: BaseException) -> None:
        failed = sorted(iteration.failures)
        if iteration.draw_numbers is None:
            iteration.draw_numbers = list(range(iteration.size))
        for number, index in enumerate(failed, iteration.size + iteration.skipped):
            iteration.draw_numbers[index] = number
        iteration.skipped += len(failed)
        self._check_patience(iteration, first)
        for node in self._plan.readers:
            entries = self._readers[id(node)].draw(len(failed), refill=True)
            for index, entry in zip(failed, entries, strict=True):
                iteration.entries[id(node)][index] = entry
        iteration.failures.clear()
        iteration.queue = failed[::-1]

    def _check_patience(self, iteration: Iteration, first: BaseException) -> None:
        """Give up where sample after sample fails.

        Whole classes of a data set may be unreadable, so as long as files are to blame all of them
        are tried. An operator that has not worked on a single sample is to blame itself, and must
        not eat up the whole data set.
        """
        failures = iteration.failures
        if len(failures) < iteration.redrawn:
            iteration.redraws = 0  # some of those drawn last are good
        iteration.redraws += len(failures)
        iteration.redrawn = len(failures)
        # Once through all of them; with padding to the end, and then back.
        metas = [self._readers[id(node)].meta() for node in self._plan.readers]
        patience = max(int(m["epoch_size"]) * (1 + bool(m["pad_last_batch"])) for m in metas)
        if (
            len(failures) == iteration.size
            and not self._statistics.samples
            and not all(isinstance(e, BadSampleError) for e in failures.values())
        ):
            patience = 4 * iteration.size + 64
        if iteration.redraws > patience + iteration.size:
            raise self._hopeless(
                iteration,
                first,
                f"{iteration.redraws} bad samples were skipped one after the other for iteration "
                f"{iteration.number}, which is too many to go on.",
            )

    def _hopeless(self, iteration: Iteration, error: BaseException, what: str) -> NoGoodSampleError:
        """The error, with file and cause of the first bad sample; `error` is a later one's."""
        index = min(iteration.failures, default=0)
        now = report(error, iteration.number, index, self._policy)
        found = next(iter(iteration.bad_samples), now)
        source = found.source or f"sample {found.index}"
        at = f" (in operator `{found.operator}`)" if found.operator else ""
        raised = NoGoodSampleError(f"{what} The first bad one is {source}{at}: {found.reason}")
        raised.__cause__ = error
        return raised
