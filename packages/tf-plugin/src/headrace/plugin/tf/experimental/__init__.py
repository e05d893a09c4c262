"""Datasets of pipelines that have other datasets as inputs."""

from __future__ import annotations

from headrace.plugin.tf.inputs import DALIDatasetWithInputs, Input

__all__ = ["DALIDatasetWithInputs", "Input"]


def __dir__() -> list[str]:
    return [*__all__]
