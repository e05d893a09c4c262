"""TensorFlow datasets: announced here, to come in a later version."""

from __future__ import annotations

from penstock.errors import PluginNotReleasedError

raise PluginNotReleasedError(
    "`penstock.plugin.tf` (TensorFlow datasets) is to come in a later version of "
    "penstock-tf; this version only reserves its place. "
    "Until then, wrap `Pipeline.run()` in `tf.data.Dataset.from_generator`."
)
