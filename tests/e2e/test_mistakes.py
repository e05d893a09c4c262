"""What new users get wrong, and what they are told: enough to put it right without a search."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import traceback
from pathlib import Path

import pytest

import headrace.errors
from tests.support.images import encoded
from tests.support.mistakes import MISTAKES, Library

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"

# By the name of the program: the builtin class of the error, what it says is wrong, the way out;
# empty where it tells none.
TOLD: dict[str, tuple[type[BaseException], list[str], list[str]]] = {
    "misspelt_operator": (AttributeError, ["'resze'"], ['Did you mean "resize"?']),
    "misspelt_argument": (KeyError, ['"angel"'], ['Did you mean "angle"?', "fill_value"]),
    "arguments_by_position": (
        ValueError,
        ["1 input", "received 3"],
        ["given by name", "fn.resize(data, size=...)"],
    ),
    "list_for_random_values": (
        TypeError,
        ["[-10.0, 10.0]"],
        ["angle=fn.random.uniform(range=[-10.0, 10.0])"],
    ),
    "image_for_a_number": (
        ValueError,
        ["`angle`", "scalar for each sample", "(20, 30, 3)"],
        ["`fn.random.*`"],
    ),
    "text_for_interpolation": (TypeError, ["'linear'"], ["types.INTERP_LINEAR"]),
    "misspelt_element_type": (TypeError, ["'flot32'"], ['"float32"']),
    "range_of_one_number": (ValueError, ["`range`"], ["it takes two"]),
    "condition_on_data": (
        TypeError,
        ["conditional context"],
        ["enable_conditionals=True", "coin_flip"],
    ),
    "loop_over_a_batch": (
        TypeError,
        ["'DataNode' object is not iterable"],
        ["done to each sample"],
    ),
    "numpy_on_data": (TypeError, ["NumPy array"], ["operators"]),
    "flipped_by_numpy": (TypeError, ["`np.flip`"], ["`fn.flip`", "NumPy array"]),
    "root_by_numpy": (TypeError, ["`np.sqrt`"], ["`math.sqrt`"]),
    "flipped_by_pytorch": (TypeError, ["not DataNode", "has no value"], ["`fn.python_function`"]),
    "one_output_unpacked": (
        TypeError,
        ["'DataNode' object is not iterable"],
        ["one output", "`num_outputs=`"],
    ),
    "operator_outside_of_a_definition": (
        TypeError,
        ["has no value"],
        ["headrace.experimental.dynamic"],
    ),
    "resized_by_opencv": (Exception, ["src is not a numpy array"], ["`fn.python_function`"]),
    "tensor_of_pytorch": (TypeError, ["got DataNode"], ["`fn.python_function`"]),
    "method_of_an_array": (AttributeError, ["'mean'", "has no value"], ["`fn.reductions.mean`"]),
    "type_by_a_method": (AttributeError, ["'astype'", "has no value"], ["`fn.cast`"]),
    "shape_by_index": (
        TypeError,
        ["'method' object is not subscriptable"],
        ["`images.shape()[0]`"],
    ),
    "number_of_data": (
        TypeError,
        ["converted to float", "has no value"],
        ["written with operators"],
    ),
    "repeated_by_data": (TypeError, ["as an integer", "has no value"], ["use operators"]),
    "path_for_data": (
        TypeError,
        ["`fn.decoders.image`", "got str"],
        ["`fn.readers.file(files=[...])`"],
    ),
    "variable_of_one_branch": (RuntimeError, ["'images'"], ["`else` branch", "before the `if`"]),
    "misspelt_plugin": (ImportError, ["'torch'"], ['Did you mean "pytorch"?']),
    "misspelt_class": (AttributeError, ["'Pipelin'"], ['Did you mean "Pipeline"?']),
    "text_returned": (
        TypeError,
        ["output 1 is a `<class 'str'>`"],
        ["Expected a `DataNode` or numbers"],
    ),
    "nothing_returned": (
        NotImplementedError,
        ["has no outputs"],
        ["return them from the definition"],
    ),
    "edge_of_another_pipeline": (
        RuntimeError,
        ["belongs to another pipeline"],
        ["definition of each"],
    ),
    "misspelt_device": (ValueError, ['"cuda"'], ['"cpu", "gpu" or "mixed"']),
    "definition_that_is_run": (TypeError, ["`train` is the definition"], ["`train(...).run()`"]),
    "archives_that_are_not_there": (ValueError, ["No file matches", "train-*.tar"], []),
    "annotations_that_are_not_there": (ValueError, ["coco.json", "does not exist"], []),
    "names_for_labels": (TypeError, ["`labels`", "'cat'"], ["expected an integer"]),
    "no_data_set": (ValueError, ["No files to read"], ["`file_root`", "`file_list`", "`files`"]),
    "folder_that_is_not_there": (
        ValueError,
        ["imges", "No such file or directory"],
        ['Did you mean "images"?'],
    ),
    "folder_without_classes": (ValueError, ["sub-directories"], ["one for each class"]),
    "shard_beyond_the_last": (ValueError, ["`shard_id` is 2"], ["less than `num_shards`"]),
    "misspelt_setting": (TypeError, ["num_thread."], ['Did you mean "num_threads"?']),
    "misspelt_setting_at_the_call": (TypeError, ["`batch_sise`"], ['Did you mean "batch_size"?']),
    "misspelt_setting_of_a_class": (TypeError, ["'num_thread'"], ['Did you mean "num_threads"?']),
    "no_threads": (ValueError, ["`num_threads` is 0"], ["at least one"]),
    "batch_size_as_float": (TypeError, ["`batch_size` is 4.0"], ["integer"]),
    "no_batch_size": (ValueError, ["batch size must be set"], ["Pipeline(batch_size=...)"]),
    "source_at_its_end_returns_none": (
        TypeError,
        ["has returned nothing"],
        ["raise StopIteration"],
    ),
    "second_epoch_of_a_generator": (
        UserWarning,
        ["empty"],
        ['cycle="raise"', "generator function"],
    ),
    "more_samples_than_the_batch_size": (
        ValueError,
        ["batch_size <= 4", "actual: 8"],
        ["a larger `batch_size`"],
    ),
    "image_for_a_batch": (ValueError, ["got 2", '"HWC"'], ["`batch=False`"]),
    "paths_from_a_source": (
        TypeError,
        ["Sample 0", "is a str"],
        ["`fn.readers.file(files=[...])`"],
    ),
    "source_that_raises": (KeyError, ["'label'"], []),
    "sources_of_different_batch_sizes": (
        ValueError,
        ["3 samples", "one of 4"],
        ["must have as many"],
    ),
    "layout_of_another_rank": (ValueError, ["4 dimensions", "got 3", '"NHWC"'], ["one sample"]),
    "lists_of_different_lengths": (
        ValueError,
        ["Sample 0", "element [0] has 2", "element [1] has 1"],
        ["samples of a batch may differ"],
    ),
    "number_beyond_its_type": (OverflowError, ["Sample 1", "1099511627776"], ["dtype=types.INT64"]),
    "run_at_the_end": (StopIteration, ["after 1 iterations"], ["`reset()`"]),
    "source_that_was_not_fed": (IndexError, ["'images'"], ["`feed_input`"]),
    "feeding_an_unknown_name": (KeyError, ['"image"'], ['Did you mean "images"?']),
    "corrupt_file": (RuntimeError, ["a/2.jpg", "no known image format"], ["on_bad_sample"]),
    "file_that_is_gone": (RuntimeError, ["9.jpg", "does not exist"], ["on_bad_sample"]),
    "nothing_but_corrupt_files": (
        RuntimeError,
        ["3 bad samples", "2.jpg", "no known image format"],
        [],
    ),
    "function_without_a_result": (TypeError, ["returned None"], ["Return it", "`num_outputs=0`"]),
    "size_in_two_ways": (RuntimeError, ["got `size` and `resize_x`"], ["exactly one way"]),
    "window_of_even_length": (ValueError, ["odd length, got: 4"], ["derives it from `sigma`"]),
    "axis_that_is_not_there": (
        ValueError,
        ["'X' is not present", '"HWC"'],
        ["`axes`", "reshape(layout=...)"],
    ),
    "layout_with_an_axis_for_the_batch": (ValueError, ['"NCHW"', '"HWC"'], ["each of these once"]),
    "images_of_different_sizes_stacked": (
        ValueError,
        ["(20, 30, 3)", "(4, 4, 3)"],
        ["`fn.resize`"],
    ),
    "types_mixed": (TypeError, ["UINT8", "FLOAT"], ["`fn.cast`"]),
    "sizes_mixed": (ValueError, ["(20, 30, 3), (4, 4, 3)"], ["must be equal or 1"]),
    "decoded_twice": (ValueError, ["flat arrays of bytes"], ["drop the decoder"]),
    "channels_first": (ValueError, ['"XYZ"'], ['"HWC"', "`fn.transpose`"]),
    "crop_larger_than_the_image": (IndexError, ["(33, 4, 3)"], ["out_of_bounds_policy"]),
    "means_of_other_channels": (
        ValueError,
        ["`mean` has 2 values", "3 channels"],
        ["one value, or one a channel"],
    ),
    "images_of_different_sizes_as_an_array": (ValueError, ["same shape"], ["`fn.pad`", "batch[i]"]),
    "batch_as_if_an_array": (AttributeError, ["'mean'"], ["`np.asarray`"]),
    "checkpoint_without_the_setting": (
        RuntimeError,
        ["made without it"],
        ["`enable_checkpointing=True`"],
    ),
    "images_of_different_sizes_for_pytorch": (ValueError, ["`fn.resize`"], ["DALIRaggedIterator"]),
    "next_at_the_end": (StopIteration, ["after 1 batches"], ["`reset()`"]),
    "definition_in_place_of_a_pipeline": (
        TypeError,
        ["`train` is the definition"],
        ["`train(...)`"],
    ),
    "misspelt_reader": (KeyError, ["Raeder"], ['Did you mean "Reader"?']),
    "misspelt_argument_of_an_iterator": (
        TypeError,
        ["'reader_nam'"],
        ['Did you mean "reader_name"?'],
    ),
    "names_for_other_outputs": (ValueError, ["2 names", "1 outputs"], ["one name for each"]),
    "loop_over_a_pipeline": (TypeError, ["not iterable"], ["`pipe.run()`", "DALIGenericIterator"]),
    "length_that_is_not_known": (TypeError, ["is unknown"], ["`reader_name`", "`size`"]),
    "name_of_a_batch_of_several": (TypeError, ["list indices"], []),
    "one_name_twice": (Exception, ["['x', 'x']"], ["should be distinct"]),
    "run_beside_an_iterator": (RuntimeError, ["ITERATOR", "BASIC"], ["`run`"]),
    "loop_over_a_reader": (TypeError, ["`ndd.readers.File`"], ["next_epoch(batch_size=32)"]),
    "misspelt_argument_of_a_call": (TypeError, ["'sizee'"], ['Did you mean "size"?']),
    "epoch_of_another_batch_size": (
        ValueError,
        ["change batch_size to 4", "2"],
        ["Make another reader"],
    ),
    "operator_without_xp": (TypeError, ["`invert(xp, image, ...)`"], ["`xp`", "`image`"]),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "images" / "a").mkdir(parents=True)
    image = encoded(20, 30).tobytes()
    for k in range(4):
        (folder / "images" / "a" / f"{k}.jpg").write_bytes(b"no jpeg" if k == 2 else image)
    return Library("headrace", folder)


@pytest.fixture(scope="module")
def told(library):
    """What a mistake raises or warns of, its text with notes, and if that says where."""

    @functools.cache
    def answer(mistake):
        kind = TOLD[mistake][0]
        if issubclass(kind, Warning):
            with pytest.warns(kind) as warned:
                MISTAKES[mistake](library)
            error, texts = warned[0].message, [str(w.message) for w in warned]
        else:
            with pytest.raises(kind) as caught:
                MISTAKES[mistake](library)
            error = caught.value
            texts = [str(error), *getattr(error, "__notes__", [])]
        # From Python 3.13 on, the question is Python's own where it refuses the argument.
        text = "\n".join(texts)
        return type(error), text.replace("'", '"'), says_where(error, text, mistake)

    return answer


def says_where(error, text, mistake):
    """If a line of the program is named, or the traceback ends there: one frame behind at most,
    which Python adds where a module has no such name.
    """
    lines, first = inspect.getsourcelines(MISTAKES[mistake])
    own = range(first, first + len(lines))
    named = [int(n) for n in re.findall(r"mistakes\.py:(\d+)", text)]
    frames = traceback.extract_tb(error.__traceback__)[-2:]
    in_program = any(Path(f.filename).name == "mistakes.py" for f in frames)
    return in_program or any(n in own for n in named)


def test_every_mistake_is_told():
    assert set(TOLD) == set(MISTAKES)
    assert len(TOLD) >= 66


@pytest.mark.parametrize("mistake", TOLD)
def test_what_users_are_told(mistake, told):
    _, wrong, way_out = TOLD[mistake]
    kind, text, _ = told(mistake)
    for fragment in [*wrong, *way_out]:
        assert fragment.replace("'", '"') in text
    by_others = kind.__module__ in ("builtins", "cv2")
    assert by_others or issubclass(kind, headrace.errors.HeadraceError)


def test_most_are_told_what_is_wrong_and_where_and_the_way_out(told):
    # What is wrong is told by all, as the test above says.
    scores = {m: 1 + told(m)[2] + bool(way_out) for m, (_, _, way_out) in TOLD.items()}
    assert min(scores.values()) >= 2, scores
    assert sum(scores.values()) / len(scores) >= 2.88, scores


def test_the_page_tells_what_is_said():
    text = PAGE.read_text()
    for mistake, (_, wrong, way_out) in TOLD.items():
        title = mistake.replace("_", " ")
        (row,) = re.findall(rf"^\| {title} \| .*$", text, re.MULTILINE)
        ours = row.split(" | ")[1]
        for fragment in [*wrong, *way_out]:
            assert fragment in ours, f"{mistake}: {fragment}"


def test_error_classes_are_public():
    pending, private = [headrace.errors.HeadraceError], []
    while pending:
        for cls in pending.pop().__subclasses__():
            pending.append(cls)
            if not cls.__module__.startswith("headrace"):
                continue
            home = sys.modules[cls.__module__]
            if cls.__name__.startswith("_") or not hasattr(home, cls.__name__):
                private.append(cls)
    assert not private
