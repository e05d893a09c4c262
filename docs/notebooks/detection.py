# %% [markdown]
# # Detection: COCO boxes that move with their images
#
# `readers.coco` reads images, boxes and labels. Each operator that moves pixels has one that moves boxes, with the same arguments. A small data
# set in COCO's form first, shapes on a photograph:

# %%
import json
from pathlib import Path

import cv2
import numpy as np
from skimage import data

rng = np.random.default_rng(0)
Path("images").mkdir(exist_ok=True)
coco = {
    "images": [],
    "annotations": [],
    "categories": [{"id": 1, "name": "disc"}, {"id": 2, "name": "box"}],
}
for k in range(8):
    image = np.ascontiguousarray(cv2.resize(data.coffee(), (320, 240))[..., ::-1])
    for _ in range(2):
        x, y, w, h = (int(v) for v in rng.integers([10, 10, 50, 50], [190, 110, 110, 110]))
        kind = int(rng.integers(1, 3))
        if kind == 1:
            cv2.ellipse(
                image, (x + w // 2, y + h // 2), (w // 2, h // 2), 0, 0, 360, (60, 200, 60), -1
            )
        else:
            cv2.rectangle(image, (x, y), (x + w, y + h), (200, 80, 40), -1)
        coco["annotations"].append(
            {
                "id": len(coco["annotations"]),
                "image_id": k,
                "category_id": kind,
                "bbox": [x, y, w, h],
            }
            | {"area": w * h, "iscrowd": 0}
        )
    cv2.imwrite(f"images/{k}.jpg", image)
    coco["images"].append({"id": k, "file_name": f"{k}.jpg", "width": 320, "height": 240})
_ = Path("instances.json").write_text(json.dumps(coco))
# %% [markdown]
# ## The pipeline
#
# `random_bbox_crop` draws a window that keeps boxes, as SSD does it, and returns the boxes within it. Then image and boxes are mirrored
# by the same coin. With `ltrb=True, ratio=True` boxes are left, top, right, bottom from 0 to 1, whatever the size of the image.

# %%
from headrace import fn, pipeline_def, types


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=3)
def training():
    jpegs, boxes, labels = fn.readers.coco(
        file_root="images",
        annotations_file="instances.json",
        ltrb=True,
        ratio=True,
        random_shuffle=True,
        name="reader",
    )
    anchor, shape, boxes, labels = fn.random_bbox_crop(
        boxes,
        labels,
        bbox_layout="xyXY",
        thresholds=[0.1, 0.3, 0.5],
        scaling=[0.5, 1.0],
        aspect_ratio=[0.7, 1.4],
        total_num_attempts=100,
    )
    images = fn.decoders.image_slice(jpegs, anchor, shape)
    images = fn.resize(images, size=(200, 200))
    coin = fn.random.coin_flip()
    images = fn.flip(images, horizontal=coin)
    boxes = fn.bb_flip(boxes, ltrb=True, horizontal=coin)
    return images, boxes, labels


pipe = training()
images, boxes, labels = pipe.run()
boxes.shape()

# %% [markdown]
# ## Look: do the boxes still fit?

# %%
import headrace

drawn = []
for k in range(4):
    image = images.at(k).copy()
    for box, label in zip(boxes.at(k), labels.at(k).ravel(), strict=True):
        left, top, right, bottom = (int(v * 200) for v in box)
        color = (255, 0, 0) if label == 1 else (255, 255, 0)
        cv2.rectangle(image, (left, top), (right, bottom), color, 3)
    drawn.append(image)
headrace.show(drawn)

# %% [markdown]
# ## Batches for training
#
# Images have a different number of boxes each. `pad` makes a dense batch of them, with -1 as the label of a box that is none;
# `DALIRaggedIterator` gives lists of tensors instead.

# %%
from headrace.plugin.pytorch import DALIGenericIterator


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=3)
def dense():
    jpegs, boxes, labels = fn.readers.coco(
        file_root="images", annotations_file="instances.json", ltrb=True, ratio=True, name="reader"
    )
    images = fn.crop_mirror_normalize(
        fn.resize(fn.decoders.image(jpegs), size=(200, 200)), dtype=types.FLOAT, output_layout="CHW"
    )
    return (
        images,
        fn.pad(boxes, axes=[0], shape=[10]),
        fn.pad(labels, axes=[0], shape=[10], fill_value=-1),
    )


for (batch,) in DALIGenericIterator(dense(), ["image", "boxes", "labels"], reader_name="reader"):
    print(batch["image"].shape, batch["boxes"].shape, batch["labels"][0].ravel().tolist())

# %% [markdown]
# More: `fn.bbox_paste`, `fn.bbox_rotate`, `fn.coord_transform` for key points, and `fn.box_encoder` for the anchors of SSD.
