"""Squirrel drivers as sources: announced here, to come in a later version."""

from __future__ import annotations

from penstock.errors import PluginNotReleasedError

raise PluginNotReleasedError(
    "`penstock.plugin.squirrel` (Squirrel drivers as sources) is to come in a later version of "
    "penstock-squirrel; this version only reserves its place. "
    "Until then, give the driver's iterator to `fn.external_source`."
)
