"""Mistakes that new users make, each a small program for Headrace and for DALI."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

IMAGES = [np.zeros((20, 30, 3), np.uint8) for _ in range(4)]


class Library:
    """The modules of one of the two libraries, by the names that programs give them."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        """A data set of four images in the folder ``images``; the third file is no image."""

    def _module(self, path: str = "") -> Any:
        return importlib.import_module(f"{self.name}{path}")

    fn = cached_property(lambda self: self._module(".fn"))
    types = cached_property(lambda self: self._module(".types"))
    torch = cached_property(lambda self: self._module(".plugin.pytorch"))
    ndd = cached_property(lambda self: self._module(".experimental.dynamic"))
    pipeline_def = cached_property(lambda self: self._module().pipeline_def)
    Pipeline = cached_property(lambda self: self._module().Pipeline)

    def images(self, **options: Any) -> Any:
        return self.fn.external_source(source=lambda: IMAGES, **{"layout": "HWC", **options})

    def files(self, folder: str = "images", **options: Any) -> Any:
        return self.fn.readers.file(file_root=str(self.folder / folder), **options)

    def made(self, graph: Callable[[], Any], **options: Any) -> Any:
        """A pipeline of what `graph` returns."""
        arguments = {"batch_size": 4, "num_threads": 2, "device_id": None, **options}
        return self.pipeline_def(**arguments)(lambda: graph())()

    def run(self, graph: Callable[[], Any], times: int = 1, **options: Any) -> None:
        pipe = self.made(graph, **options)
        pipe.build()
        for _ in range(times):
            pipe.run()

    def loop(self, graph: Callable[[], Any], output_map: Any = ("x",), **options: Any) -> None:
        for _ in self.torch.DALIGenericIterator(self.made(graph), list(output_map), **options):
            break


# -- while a pipeline is defined ---------------------------------------------------------------


def misspelt_operator(lib: Library) -> None:
    lib.made(lambda: lib.fn.resze(lib.images(), size=[8, 8]))


def misspelt_argument(lib: Library) -> None:
    lib.made(lambda: lib.fn.rotate(lib.images(), angel=10.0))


def arguments_by_position(lib: Library) -> None:
    lib.made(lambda: lib.fn.resize(lib.images(), 10, 10))


def list_for_random_values(lib: Library) -> None:
    lib.run(lambda: lib.fn.rotate(lib.images(), angle=[-10.0, 10.0]))


def image_for_a_number(lib: Library) -> None:
    lib.run(lambda: lib.fn.rotate(lib.images(), angle=lib.images()))


def text_for_interpolation(lib: Library) -> None:
    lib.made(lambda: lib.fn.resize(lib.images(), size=[8, 8], interp_type="linear"))


def misspelt_element_type(lib: Library) -> None:
    lib.made(lambda: lib.fn.cast(lib.images(), dtype="flot32"))


def range_of_one_number(lib: Library) -> None:
    lib.run(lambda: lib.fn.random.uniform(range=10.0))


def condition_on_data(lib: Library) -> None:
    def graph() -> Any:
        images = lib.images()
        if lib.fn.random.coin_flip():
            images = lib.fn.flip(images)
        return images

    lib.made(graph)


def loop_over_a_batch(lib: Library) -> None:
    lib.made(lambda: tuple(lib.fn.flip(image) for image in lib.images()))


def numpy_on_data(lib: Library) -> None:
    lib.made(lambda: np.mean(lib.images()))


def flipped_by_numpy(lib: Library) -> None:
    lib.made(lambda: np.flip(lib.images(), 0))


def root_by_numpy(lib: Library) -> None:
    lib.made(lambda: np.sqrt(lib.images()))


def flipped_by_pytorch(lib: Library) -> None:
    import torch

    lib.made(lambda: torch.flip(lib.images(), [0]))


def one_output_unpacked(lib: Library) -> None:
    def graph() -> Any:
        image, label = lib.fn.decoders.image(lib.files()[0])
        return image, label

    lib.made(graph)


def operator_outside_of_a_definition(lib: Library) -> None:
    np.asarray(lib.fn.resize(IMAGES[0], size=[8, 8]))


def resized_by_opencv(lib: Library) -> None:
    import cv2

    lib.made(lambda: cv2.resize(lib.images(), (8, 8)))


def tensor_of_pytorch(lib: Library) -> None:
    import torch

    lib.made(lambda: torch.from_numpy(lib.images()))


def method_of_an_array(lib: Library) -> None:
    lib.made(lambda: lib.images().mean())


def type_by_a_method(lib: Library) -> None:
    lib.made(lambda: lib.images().astype(np.float32))


def shape_by_index(lib: Library) -> None:
    lib.made(lambda: lib.images().shape[0])


def number_of_data(lib: Library) -> None:
    lib.made(lambda: lib.fn.rotate(lib.images(), angle=float(lib.fn.random.uniform())))


def repeated_by_data(lib: Library) -> None:
    def graph() -> Any:
        images = lib.images()
        for _ in range(lib.fn.random.uniform(range=[1, 3])):
            images = lib.fn.flip(images)
        return images

    lib.made(graph)


def path_for_data(lib: Library) -> None:
    lib.made(lambda: lib.fn.decoders.image("cat.jpg"))


def variable_of_one_branch(lib: Library) -> None:
    @lib.pipeline_def(batch_size=4, num_threads=2, device_id=None, enable_conditionals=True)
    def train() -> Any:
        if lib.fn.random.coin_flip():
            images = lib.images()
        return images

    train()


def misspelt_plugin(lib: Library) -> None:
    lib._module(".plugin.torch")


def misspelt_class(lib: Library) -> None:
    lib._module().Pipelin  # noqa: B018


def text_returned(lib: Library) -> None:
    lib.made(lambda: (lib.images(), "label")).build()


def nothing_returned(lib: Library) -> None:
    lib.made(lambda: None).build()


def edge_of_another_pipeline(lib: Library) -> None:
    edges: list[Any] = []
    lib.made(lambda: edges.append(lib.images()) or edges[0])
    lib.made(lambda: lib.fn.flip(edges[0])).build()


def misspelt_device(lib: Library) -> None:
    lib.made(lambda: lib.fn.resize(lib.images(), size=[8, 8], device="cuda"))


def definition_that_is_run(lib: Library) -> None:
    @lib.pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def train() -> Any:
        return lib.images()

    train.run()


def archives_that_are_not_there(lib: Library) -> None:
    paths = [str(lib.folder / "train-*.tar")]
    lib.made(lambda: tuple(lib.fn.readers.webdataset(paths=paths, ext=["jpg", "cls"]))).build()


def annotations_that_are_not_there(lib: Library) -> None:
    files = {"file_root": str(lib.folder), "annotations_file": str(lib.folder / "coco.json")}
    lib.made(lambda: tuple(lib.fn.readers.coco(**files))).build()


def names_for_labels(lib: Library) -> None:
    lib.made(lambda: lib.fn.readers.file(files=["a.jpg"], labels=["cat"])[1])


def no_data_set(lib: Library) -> None:
    lib.made(lambda: lib.fn.readers.file()[0]).build()


def folder_that_is_not_there(lib: Library) -> None:
    lib.made(lambda: lib.files("imges")[0]).build()


def folder_without_classes(lib: Library) -> None:
    lib.made(lambda: lib.files("images/a")[0]).build()


def shard_beyond_the_last(lib: Library) -> None:
    lib.made(lambda: lib.files(num_shards=2, shard_id=2)[0]).build()


# -- settings of a pipeline ---------------------------------------------------------------------


def misspelt_setting(lib: Library) -> None:
    lib.pipeline_def(batch_size=4, num_thread=2, device_id=None)(lambda: lib.images())()


def misspelt_setting_at_the_call(lib: Library) -> None:
    @lib.pipeline_def(num_threads=2, device_id=None)
    def train() -> Any:
        return lib.images()

    train(batch_sise=4)


def misspelt_setting_of_a_class(lib: Library) -> None:
    lib.Pipeline(batch_size=4, num_thread=2, device_id=None)


def no_threads(lib: Library) -> None:
    lib.run(lib.images, num_threads=0)


def batch_size_as_float(lib: Library) -> None:
    lib.run(lib.images, batch_size=4.0)


def no_batch_size(lib: Library) -> None:
    lib.run(lib.images, batch_size=None)


# -- data of one's own ---------------------------------------------------------------------------


def source_at_its_end_returns_none(lib: Library) -> None:
    batches = iter([IMAGES, None])
    lib.run(lambda: lib.fn.external_source(source=lambda: next(batches)), times=2)


def second_epoch_of_a_generator(lib: Library) -> None:
    def batches() -> Any:
        yield IMAGES

    pipe = lib.made(lambda: lib.fn.external_source(source=batches()))
    loader = lib.torch.DALIGenericIterator(pipe, ["x"], auto_reset=True)
    for _ in range(2):
        list(loader)


def more_samples_than_the_batch_size(lib: Library) -> None:
    lib.run(lambda: lib.fn.external_source(source=lambda: IMAGES * 2))


def image_for_a_batch(lib: Library) -> None:
    lib.run(lambda: lib.fn.external_source(source=lambda: IMAGES[0], layout="HWC"))


def paths_from_a_source(lib: Library) -> None:
    lib.run(lambda: lib.fn.external_source(source=lambda: ["cat.jpg"] * 4))


def source_that_raises(lib: Library) -> None:
    def batches() -> Any:
        raise KeyError("label")

    lib.run(lambda: lib.fn.external_source(source=batches))


def sources_of_different_batch_sizes(lib: Library) -> None:
    lib.run(lambda: (lib.images(), lib.fn.external_source(source=lambda: IMAGES[:3])))


def layout_of_another_rank(lib: Library) -> None:
    lib.run(lambda: lib.images(layout="NHWC"))


def lists_of_different_lengths(lib: Library) -> None:
    lib.run(lambda: lib.fn.external_source(source=lambda: [[[1, 2], [3]]] * 4))


def number_beyond_its_type(lib: Library) -> None:
    lib.run(lambda: lib.fn.external_source(source=lambda: [[1], [2**40], [3], [4]]))


def run_at_the_end(lib: Library) -> None:
    lib.run(lambda: lib.fn.external_source(source=iter([IMAGES])), times=2)


def source_that_was_not_fed(lib: Library) -> None:
    lib.run(lambda: lib.fn.external_source(name="images"))


def feeding_an_unknown_name(lib: Library) -> None:
    pipe = lib.made(lambda: lib.fn.external_source(name="images"))
    pipe.build()
    pipe.feed_input("image", IMAGES)


# -- while a pipeline runs ----------------------------------------------------------------------


def corrupt_file(lib: Library) -> None:
    lib.run(lambda: lib.fn.decoders.image(lib.files()[0]))


def file_that_is_gone(lib: Library) -> None:
    lib.run(lambda: lib.fn.readers.file(files=[str(lib.folder / "9.jpg")] * 4)[0])


def nothing_but_corrupt_files(lib: Library) -> None:
    files = [str(lib.folder / "images/a/2.jpg")]
    graph = lambda: lib.fn.decoders.image(lib.fn.readers.file(files=files)[0])  # noqa: E731
    lib.run(graph, batch_size=1, on_bad_sample="skip")


def function_without_a_result(lib: Library) -> None:
    lib.run(lambda: lib.fn.python_function(lib.images(), function=lambda image: None))


def size_in_two_ways(lib: Library) -> None:
    lib.run(lambda: lib.fn.resize(lib.images(), size=[8, 8], resize_x=9))


def window_of_even_length(lib: Library) -> None:
    lib.run(lambda: lib.fn.gaussian_blur(lib.images(), window_size=4))


def axis_that_is_not_there(lib: Library) -> None:
    lib.run(lambda: lib.fn.slice(lib.images(), 0, 5, axis_names="X"))


def layout_with_an_axis_for_the_batch(lib: Library) -> None:
    lib.run(lambda: lib.fn.crop_mirror_normalize(lib.images(), output_layout="NCHW"))


def images_of_different_sizes_stacked(lib: Library) -> None:
    lib.run(lambda: lib.fn.stack(lib.images(), lib.fn.crop(lib.images(), crop=(4, 4))))


def types_mixed(lib: Library) -> None:
    floats = lambda: lib.fn.cast(lib.images(), dtype=lib.types.FLOAT)  # noqa: E731
    lib.run(lambda: lib.fn.cat(lib.images(), floats()))


def sizes_mixed(lib: Library) -> None:
    lib.run(lambda: lib.images() + lib.fn.crop(lib.images(), crop=(4, 4)))


def decoded_twice(lib: Library) -> None:
    lib.run(lambda: lib.fn.decoders.image(lib.images()))


def channels_first(lib: Library) -> None:
    channels_first = [np.zeros((3, 20, 30), np.uint8)] * 4
    source = {"source": lambda: channels_first, "layout": "XYZ"}
    lib.run(lambda: lib.fn.resize(lib.fn.external_source(**source), size=[8, 8]))


def crop_larger_than_the_image(lib: Library) -> None:
    lib.run(lambda: lib.fn.crop(lib.images(), crop=(33, 4)))


def means_of_other_channels(lib: Library) -> None:
    lib.run(lambda: lib.fn.crop_mirror_normalize(lib.images(), mean=[1.0, 2.0], std=[1.0, 1.0]))


def images_of_different_sizes_as_an_array(lib: Library) -> None:
    ragged = [np.zeros((2 + k, 3), np.uint8) for k in range(4)]
    pipe = lib.made(lambda: lib.fn.external_source(source=lambda: ragged))
    pipe.build()
    pipe.run()[0].as_array()


def batch_as_if_an_array(lib: Library) -> None:
    pipe = lib.made(lib.images)
    pipe.build()
    pipe.run()[0].mean()


def checkpoint_without_the_setting(lib: Library) -> None:
    pipe = lib.made(lib.images)
    pipe.build()
    pipe.checkpoint()


# -- iterators -----------------------------------------------------------------------------------


def images_of_different_sizes_for_pytorch(lib: Library) -> None:
    ragged = [np.zeros((2 + k, 3), np.uint8) for k in range(4)]
    lib.loop(lambda: lib.fn.external_source(source=lambda: ragged))


def next_at_the_end(lib: Library) -> None:
    pipe = lib.made(lambda: lib.fn.external_source(source=iter([IMAGES])))
    loader = lib.torch.DALIGenericIterator(pipe, ["x"])
    for _ in range(2):
        next(loader)


def definition_in_place_of_a_pipeline(lib: Library) -> None:
    @lib.pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def train() -> Any:
        return lib.images()

    lib.torch.DALIGenericIterator(train, ["x"])


def misspelt_reader(lib: Library) -> None:
    lib.loop(lambda: lib.files(name="Reader")[0], reader_name="Raeder")


def misspelt_argument_of_an_iterator(lib: Library) -> None:
    lib.loop(lambda: lib.files(name="Reader")[0], reader_nam="Reader")


def names_for_other_outputs(lib: Library) -> None:
    lib.loop(lib.images, ["image", "label"])


def loop_over_a_pipeline(lib: Library) -> None:
    for _ in lib.made(lib.images):
        break


def length_that_is_not_known(lib: Library) -> None:
    len(lib.torch.DALIGenericIterator(lib.made(lib.images), ["x"]))


def name_of_a_batch_of_several(lib: Library) -> None:
    next(lib.torch.DALIGenericIterator(lib.made(lib.images), ["x"]))["x"]


def one_name_twice(lib: Library) -> None:
    lib.loop(lambda: (lib.images(), lib.images()), ["x", "x"])


def run_beside_an_iterator(lib: Library) -> None:
    pipe = lib.made(lib.images)
    lib.torch.DALIGenericIterator(pipe, ["x"])
    pipe.run()


# -- dynamic mode, operators of one's own ------------------------------------------------------


def loop_over_a_reader(lib: Library) -> None:
    for _ in lib.ndd.readers.File(file_root=str(lib.folder / "images")):
        pass


def misspelt_argument_of_a_call(lib: Library) -> None:
    lib.ndd.resize(lib.ndd.tensor(IMAGES[0], layout="HWC"), sizee=[8, 8])


def epoch_of_another_batch_size(lib: Library) -> None:
    reader = lib.ndd.readers.File(file_root=str(lib.folder / "images"))
    for size in (2, 4):
        list(reader.next_epoch(batch_size=size))


def operator_without_xp(lib: Library) -> None:
    operators = lib._module(".operators")

    @operators.operator("mistakes.invert", inputs=operators.Input("image"), hidden=True)
    def invert(image: Any) -> Any:
        """Invert an image."""
        return 255 - image

    lib.run(lambda: lib.fn.mistakes.invert(lib.images()))


MISTAKES: dict[str, Callable[[Library], None]] = {
    name: value
    for name, value in list(vars().items())
    if callable(value) and getattr(value, "__annotations__", {}).get("lib") == "Library"
}
