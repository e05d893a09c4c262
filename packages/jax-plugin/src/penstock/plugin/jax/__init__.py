"""JAX and Flax iterators: announced here, to come in a later version."""

from __future__ import annotations

from penstock.errors import PluginNotReleasedError

raise PluginNotReleasedError(
    "`penstock.plugin.jax` (JAX and Flax iterators) is to come in a later version of "
    "penstock-jax; this version only reserves its place. "
    "Until then, give the arrays of `Pipeline.run()` to `jax.numpy.asarray`."
)
