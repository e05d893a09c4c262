"""`readers.coco`: images and their objects."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, MisusedArgumentError, NotYetSupportedError
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.coco_annotations import (
    CocoImage,
    boxes_of,
    polygons_of,
    ragged,
    read_annotations,
    refusing,
    whole,
)
from headrace.operators.readers.coco_columns import entries_of, read_table
from headrace.operators.readers.coco_masks import MaskColumn
from headrace.operators.readers.coco_saved import CocoEntries, load, save
from headrace.operators.readers.index import Column, FileIndex, Index, RaggedColumn
from headrace.operators.support.argument_types import BoolArg, FloatArg, PathArg, StringListArg
from headrace.operators.support.schema import Arg
from headrace.tracebacks import stack_level

_OF_ANNOTATIONS = {
    "annotations_file": "",
    "images": None,
    "ltrb": False,
    "ratio": False,
    "size_threshold": 0.1,
    "skip_empty": False,
    "include_iscrowd": True,
    "avoid_class_remapping": False,
}
"""Arguments that say what is taken of annotations, with their defaults."""


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
        Arg("file_root", PathArg, None, "Directory that the names of images are relative to."),
        Arg("annotations_file", PathArg, "", "The annotations, JSON in COCO's format."),
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
        Arg(
            "preprocessed_annotations",
            PathArg,
            "",
            "Directory with annotations that were saved before, in the place of "
            "`annotations_file` and of all arguments that say what to take of it.",
        ),
        Arg(
            "save_preprocessed_annotations",
            BoolArg,
            False,
            "Whether annotations are saved, in the binary files of DALI.",
        ),
        Arg("save_preprocessed_annotations_dir", PathArg, "", "The directory to save them to."),
        Arg(
            "meta_files_path", PathArg, None, "The old name.", deprecated="preprocessed_annotations"
        ),
        Arg(
            "dump_meta_files",
            BoolArg,
            None,
            "The old name.",
            deprecated="save_preprocessed_annotations",
        ),
        Arg(
            "dump_meta_files_path",
            PathArg,
            None,
            "The old name.",
            deprecated="save_preprocessed_annotations_dir",
        ),
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
        masks = MaskColumn()
        source, target = self._saved()
        if source:
            polygons = args.polygon_masks or args.masks
            found = load(source, ids=bool(self._wants_ids), polygons=bool(polygons))
        elif args.annotations_file:
            found = self._annotated(masks)
        else:
            raise ArgumentValueError(
                "Either `annotations_file` or `preprocessed_annotations` must be provided."
            )
        if not found.labels.values.size:
            where = f"`preprocessed_annotations`={source!r}" if source else ""
            warnings.warn(
                f"`{self.schema.name}`: there is no object of any of {len(found.names)} images in "
                f"{where or f'`annotations_file`={args.annotations_file!r}'}; boxes and labels are "
                "empty.",
                UserWarning,
                stacklevel=stack_level(),
            )
        if target:
            save(target, found)
        columns: list[Column] = [found.boxes, found.labels]
        if found.polygons is not None:
            rows, vertices = found.polygons
            if args.masks:
                rows = RaggedColumn(rows.values * np.array([1, 2, 2], np.int32), rows.ends)
            columns += [rows, vertices]
        if args.pixelwise_masks:
            columns.append(masks)
        if found.ids is not None:
            columns.append(found.ids[:, np.newaxis])
        return FileIndex(found.names, root=args.file_root, columns=columns)

    @property
    def _wants_ids(self) -> bool:
        return bool(self.args.image_ids or self.args.save_img_ids)

    def _saved(self) -> tuple[str | None, str | None]:
        """The folder to read annotations from, and the one to save them to, if any."""
        args = self.args
        source = args.preprocessed_annotations or args.meta_files_path
        saves = args.save_preprocessed_annotations or args.dump_meta_files
        target = args.save_preprocessed_annotations_dir or args.dump_meta_files_path
        if bool(saves) != bool(target):
            raise MisusedArgumentError(
                "`save_preprocessed_annotations` and `save_preprocessed_annotations_dir` should be "
                "provided together."
            )
        if source:
            for name, usual in _OF_ANNOTATIONS.items():
                if getattr(args, name) != usual:
                    raise MisusedArgumentError(
                        f'When reading data from preprocessed annotation files, "{name}" is not '
                        "supported: they are as they were saved."
                    )
        if args.pixelwise_masks and (source or target):
            raise NotYetSupportedError(
                "`pixelwise_masks` are not kept in preprocessed annotations: give "
                "`annotations_file`, without `save_preprocessed_annotations`."
            )
        return source, target

    def _annotated(self, masks: MaskColumn) -> CocoEntries:
        """Parse `annotations_file`; pixel masks go to `masks`, if wanted."""
        args, path = self.args, self.args.annotations_file
        polygons = bool(args.polygon_masks or args.masks)
        with refusing(path):
            table = None if args.pixelwise_masks else read_table(path, polygons=polygons)
        if table is not None:
            found = entries_of(table, args, ids=self._wants_ids, polygons=polygons)
            if found is not None:
                return found
        images, categories = read_annotations(path)
        if args.images:
            known = {image.name: image for image in images}
            images = [known[name] for name in args.images if name in known]
        with refusing(path):
            return self._entries(images, categories, masks)

    def _entries(
        self, images: list[CocoImage], categories: dict[Any, int], masks: MaskColumn
    ) -> CocoEntries:
        args = self.args
        threshold = np.float32(args.size_threshold)
        names, ids, boxes, labels, polygons, vertices = [], [], [], [], [], []
        for image in images:
            objects = [o for o in image.objects if args.include_iscrowd or not o.get("iscrowd")]
            own = boxes_of(image, objects)
            kept = np.flatnonzero((own[:, 2:] >= threshold).all(axis=1))
            own = own[kept]
            objects = [objects[k] for k in kept.tolist()]
            if args.skip_empty and not objects:
                continue
            if args.ltrb:
                own[:, 2:] += own[:, :2]
            extents = np.ones(2, np.float32)
            if args.ratio and objects:
                extents = np.array(image.extents()[::-1], np.float32)
                own /= np.tile(extents, 2)
            names.append(image.name)
            if self._wants_ids:
                ids.append(whole(image.id, "id", image))
            boxes.append(own)
            kinds = [whole(o.get("category_id"), "category_id", image, o) for o in objects]
            if not args.avoid_class_remapping:
                kinds = [categories.get(kind, 0) for kind in kinds]
            labels.append(np.array(kinds, np.int32))
            if args.pixelwise_masks:
                masks.add(image, objects, labels[-1])
            if args.polygon_masks or args.masks:
                rows, points = polygons_of(image, objects)
                polygons.append(rows)
                vertices.append(points / extents)
        if not names:
            raise ArgumentValueError(
                f"No files found: `annotations_file`={args.annotations_file!r} lists no image that "
                "`images` and `skip_empty` leave."
            )
        return CocoEntries(
            names,
            np.array(ids, np.int32) if self._wants_ids else None,
            ragged(boxes),
            ragged(labels),
            (ragged(polygons), ragged(vertices)) if polygons else None,
        )
