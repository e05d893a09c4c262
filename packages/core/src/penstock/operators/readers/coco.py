"""`readers.coco`: images and their objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import ArgumentValueError, MisusedArgumentError
from penstock.operators.readers.base import Reader, reader
from penstock.operators.readers.coco_annotations import (
    boxes_of,
    polygons_of,
    ragged,
    read_annotations,
)
from penstock.operators.readers.coco_masks import MaskColumn
from penstock.operators.readers.index import Column, FileIndex, Index
from penstock.operators.support.argument_types import (
    BoolArg,
    FloatArg,
    PathArg,
    StringListArg,
)
from penstock.operators.support.schema import Arg

_SAVED = "annotations in DALI's own binary files are not read or written: give `annotations_file`"


def _asks_for(args: Any, name: str, old: str) -> bool:
    return bool(args.get(name) or args.get(old))


def _count_outputs(args: dict[str, Any]) -> int:
    polygons = _asks_for(args, "polygon_masks", "masks")
    masks = bool(args.get("pixelwise_masks"))
    return 3 + 2 * polygons + masks + _asks_for(args, "image_ids", "save_img_ids")


@reader(
    "readers.coco",
    old_names=("coco_reader",),
    class_name="COCO",
    args=(
        Arg(
            "file_root",
            PathArg,
            None,
            "Directory that the names of images are relative to.",
        ),
        Arg("annotations_file", PathArg, "", "The annotations, JSON in COCO's format; needed."),
        Arg(
            "images",
            StringListArg,
            None,
            "Names of the images to read, in this order; those that the annotations do not list "
            "are left out. If not given, all of them, in the order of their ids.",
        ),
        Arg("ltrb", BoolArg, False, "Boxes are left, top, right, bottom: not x, y, width, height."),
        Arg("ratio", BoolArg, False, "Boxes and vertices are shares of the extents of images."),
        Arg(
            "size_threshold",
            FloatArg,
            0.1,
            "Objects whose box is less wide or high, in pixels, are left out.",
        ),
        Arg("skip_empty", BoolArg, False, "Leave out images without objects."),
        Arg("include_iscrowd", BoolArg, True, "Whether objects that are crowds are read, too."),
        Arg(
            "avoid_class_remapping",
            BoolArg,
            False,
            "Labels are ids of categories, and not numbers of these in the file, from 1.",
        ),
        Arg("image_ids", BoolArg, False, "Whether there is an output for ids of images."),
        Arg("polygon_masks", BoolArg, False, "Whether there are outputs for polygons."),
        Arg(
            "pixelwise_masks",
            BoolArg,
            False,
            "Whether there is an output with masks of pixels; excludes `polygon_masks`.",
        ),
        Arg("preprocessed_annotations", PathArg, "", "A directory.", unsupported=_SAVED),
        Arg("save_preprocessed_annotations", BoolArg, False, "Save.", unsupported=_SAVED),
        Arg("save_preprocessed_annotations_dir", PathArg, "", "Where.", unsupported=_SAVED),
        Arg("meta_files_path", PathArg, None, "A directory.", unsupported=_SAVED),
        Arg("dump_meta_files", BoolArg, None, "Save.", unsupported=_SAVED),
        Arg("dump_meta_files_path", PathArg, None, "Where.", unsupported=_SAVED),
        Arg(
            "masks",
            BoolArg,
            False,
            "The old form of `polygon_masks`, with numbers of coordinates, of which each vertex "
            "has two, in the place of numbers of vertices.",
            deprecated="polygon_masks",
        ),
        Arg("save_img_ids", BoolArg, None, "The old name.", deprecated="image_ids"),
    ),
    num_outputs=_count_outputs,
    output_docs=(
        "Content of the image file, 1-D, uint8.",
        "Boxes, float32, shape (objects, 4), in pixels or shares.",
        "Labels, int32, shape (objects,).",
        "With `polygon_masks`: object, first vertex, end of polygons, int32, shape (polygons, 3).",
        "With `polygon_masks`: vertices, float32, shape (vertices, 2).",
        "With `pixelwise_masks`: labels (the greatest one, or 0), int32, HWC, one channel.",
        "With `image_ids`: id of the image, int32, shape (1,).",
    ),
)
class CocoReader(Reader):
    """Reads images with the boxes, labels and polygons of their objects, annotated as COCO is.

    Examples
    --------
    >>> images, boxes, labels = fn.readers.coco(
    ...     file_root="train2017",
    ...     annotations_file="instances_train2017.json",
    ...     ltrb=True,
    ...     ratio=True,
    ... )
    """

    def list_entries(self) -> Index:
        args = self.args
        if not args.annotations_file:
            raise ArgumentValueError("`annotations_file` must be provided; it is empty.")
        if args.file_root is None:
            raise ArgumentValueError(
                "`file_root` is not given: it is the directory that the names of images in "
                "`annotations_file` are relative to."
            )
        if args.masks and args.polygon_masks:
            raise MisusedArgumentError(
                "`masks` is the old form of `polygon_masks`; give only `polygon_masks`."
            )
        if args.pixelwise_masks and (args.masks or args.polygon_masks):
            raise MisusedArgumentError(
                "`pixelwise_masks` and `polygon_masks` are mutually exclusive; give one of them."
            )
        images, categories = read_annotations(args.annotations_file)
        if args.images:
            known = {image.name: image for image in images}
            images = [known[name] for name in args.images if name in known]
        threshold = np.float32(args.size_threshold)
        names, ids, boxes, labels, polygons, vertices = [], [], [], [], [], []
        masks = MaskColumn()
        for image in images:
            objects = [o for o in image.objects if args.include_iscrowd or not o.get("iscrowd")]
            own = boxes_of(image, objects)
            kept = np.flatnonzero((own[:, 2:] >= threshold).all(axis=1))
            own = own[kept]
            objects = [objects[k] for k in kept.tolist()]
            if args.skip_empty and not objects:
                continue
            extents = np.array([image.width, image.height], np.float32)
            if args.ltrb:
                own[:, 2:] += own[:, :2]
            if args.ratio:
                own /= np.tile(extents, 2)
            names.append(image.name)
            ids.append(image.id)
            boxes.append(own)
            kinds = [o["category_id"] for o in objects]
            if not args.avoid_class_remapping:
                kinds = [categories.get(kind, 0) for kind in kinds]
            labels.append(np.array(kinds, np.int32))
            if args.pixelwise_masks:
                masks.add(image, objects, labels[-1])
            if args.polygon_masks or args.masks:
                rows, points = polygons_of(objects)
                if args.masks:
                    rows[:, 1:] *= 2
                polygons.append(rows)
                vertices.append(points / extents if args.ratio else points)
        if not names:
            raise ArgumentValueError(
                f"No files found: `annotations_file`={args.annotations_file!r} lists no image that "
                "`images` and `skip_empty` leave."
            )
        columns: list[Column] = [ragged(boxes), ragged(labels)]
        if polygons:
            columns += [ragged(polygons), ragged(vertices)]
        if args.pixelwise_masks:
            columns.append(masks)
        if args.image_ids or args.save_img_ids:
            columns.append(np.array(ids, np.int32)[:, np.newaxis])
        return FileIndex(names, root=args.file_root, columns=columns)
