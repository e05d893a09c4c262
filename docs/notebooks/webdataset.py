# %% [markdown]
# # WebDataset: labels from text and JSON
#
# A shard is a tar file; members with the same name before the first dot are one sample. Two shards to read:

# %%
import io
import json
import tarfile

import cv2
from skimage import data

PHOTOS = [data.astronaut(), data.chelsea(), data.coffee(), data.rocket()]
TEXTS = ["a portrait", "a cat", "a cup of coffee", "a rocket at night"]

for shard in range(2):
    with tarfile.open(f"train-{shard:04}.tar", "w") as tar:
        for k, (photo, text) in enumerate(zip(PHOTOS, TEXTS, strict=True)):
            jpeg = cv2.imencode(".jpg", cv2.resize(photo, (200, 150))[..., ::-1])[1].tobytes()
            about = {"text": text, "score": k / 4, "box": [10 * k, 5, 100, 80]}
            for suffix, content in (
                ("jpg", jpeg),
                ("cls", str(k).encode()),
                ("json", json.dumps(about).encode()),
            ):
                member = tarfile.TarInfo(f"{shard}{k:05}.{suffix}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))

# %% [markdown]
# ## Components are bytes
#
# `ext` names what a sample has; each component is an output of bytes. Images go to a decoder, numbers and fields of JSON become tensors, and what is left,
# texts and objects, travels beside them as side data.

# %%
import headrace
from headrace import fn, pipeline_def, types


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=2)
def training():
    jpegs, classes, about = fn.readers.webdataset(
        paths=["train-0000.tar", "train-0001.tar"],
        ext=["jpg", "cls", "json"],
        random_shuffle=True,
        initial_fill=8,
        name="reader",
    )
    images = fn.resize(fn.decoders.image(jpegs), size=(150, 200))
    label = fn.decoders.json(classes, dtype=types.INT64)
    score = fn.decoders.json(about, field="score", dtype=types.FLOAT)
    box = fn.decoders.json(about, field="box", dtype=types.FLOAT, ndim=1)
    text = fn.decoders.json(about, field="text")
    return images, label, score, box, text


pipe = training()
images, label, score, box, text = pipe.run()
headrace.show(images, labels=[str(v) for v in label.as_array()])
label.as_array(), score.as_array(), box.as_array()

# %% [markdown]
# ## Texts
#
# Side data comes out of pipelines and iterators as objects of Python. `fn.decoders.text` makes them of files of plain text;
# [side data](../side-data.md) says how they travel.

# %%
text.tolist()

# %% [markdown]
# ## An index
#
# Without `index_paths` shards are scanned when the pipeline is built. For large ones write an index once, and give it:
# `fn.readers.webdataset(paths=[...], index_paths=[...])`. Several ranks share the samples by `num_shards=` and `shard_id=`; components that a sample
# may lack are given by `missing_component_behavior=`: `"empty"`, `"skip"` or `"error"`.

# %%
from headrace.plugin.pytorch import DALIGenericIterator


@pipeline_def(batch_size=3, num_threads=2, device_id=None)
def half(rank):
    jpegs, classes = fn.readers.webdataset(
        paths=["train-0000.tar", "train-0001.tar"],
        ext=["jpg", "cls"],
        num_shards=2,
        shard_id=rank,
        name="reader",
    )
    images = fn.resize(fn.decoders.image(jpegs), size=(64, 64))
    return images, fn.decoders.json(classes, dtype=types.INT64)


for (batch,) in DALIGenericIterator(half(1), ["image", "label"], reader_name="reader"):
    print(batch["image"].shape, batch["label"].tolist())
