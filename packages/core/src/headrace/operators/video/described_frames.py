"""The second half of readers of videos whose frames a GPU decodes: from descriptions to frames."""

from __future__ import annotations

import numpy as np

from headrace.operators.readers.video_description import wanted
from headrace.operators.support.argument_types import (
    DataTypeArg,
    FloatArg,
    ImageTypeArg,
    IntListArg,
    StringArg,
)
from headrace.operators.support.operator import BatchContext, HostBatch, SampleOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.operators.support.video.color_space import is_tagged
from headrace.operators.support.video.on_gpu import VideosToDevice
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType, DALIImageType, to_numpy_type


@operator(
    "_described_frames",
    inputs=Input("descriptions", "Files, and numbers of frames.", device="cpu"),
    args=(
        Arg("image_type", ImageTypeArg, DALIImageType.RGB, "Colours of the frames."),
        Arg("color_space", StringArg, "bt601", "Matrix of the colours."),
        Arg("dtype", DataTypeArg, DALIDataType.UINT8, "Type of the frames."),
        Arg("scale", FloatArg, 1.0, "What levels are multiplied with."),
        Arg("fill_value", IntListArg, (0,), "Colour of frames that are not there."),
    ),
    devices=("mixed",),
    hidden=True,
)
class DescribedFrames(SampleOperator):
    """Decodes frames that are described into device memory."""

    def infer(self, descriptions: Spec) -> Spec:
        from headrace.kernels.cpu.video.colors import Colors
        from headrace.operators.support.video.padding import fill_color

        args = self.args
        colors = Colors(args.image_type.name, args.scale, tagged=is_tagged(args))
        fill = fill_color(args.fill_value, colors.channels)
        self._to_device = VideosToDevice(colors, np.dtype(to_numpy_type(args.dtype)), fill)
        return Spec(args.dtype, 4, "FHWC")

    def gpu(self, c: BatchContext, descriptions: HostBatch) -> DeviceBatch:
        return self._to_device.decode(c, list(map(wanted, descriptions.rows)))
