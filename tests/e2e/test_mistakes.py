"""What new users get wrong, and what they are told: enough to put it right without a search."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import headrace.errors
from tests.support.images import encoded
from tests.support.mistakes import MISTAKES, Library

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"

# By the name of the program: the builtin class of the error, and what the message has to say.
TOLD = {
    "misspelt_operator": (AttributeError, ["'resze'", 'Did you mean "resize"?']),
    "misspelt_argument": (KeyError, ['"angel"', 'Did you mean "angle"?', "fill_value"]),
    "arguments_by_position": (
        ValueError,
        ["1 input", "received 3", "given by name", "fn.resize(data, size=...)"],
    ),
    "list_for_random_values": (TypeError, ["angle=fn.random.uniform(range=[-10.0, 10.0])"]),
    "image_for_a_number": (ValueError, ["`angle`", "scalar for each sample", "(20, 30, 3)"]),
    "text_for_interpolation": (TypeError, ["'linear'", "types.INTERP_LINEAR"]),
    "misspelt_element_type": (TypeError, ["'flot32'", '"float32"']),
    "range_of_one_number": (ValueError, ["`range`", "it takes two"]),
    "condition_on_data": (TypeError, ["enable_conditionals=True", "coin_flip"]),
    "loop_over_a_batch": (TypeError, ["'DataNode' object is not iterable"]),
    "numpy_on_data": (TypeError, ["NumPy array", "operators"]),
    "flipped_by_numpy": (TypeError, ["`np.flip`", "`fn.flip`", "NumPy array"]),
    "root_by_numpy": (TypeError, ["`np.sqrt`", "`math.sqrt`"]),
    "flipped_by_pytorch": (TypeError, ["not DataNode", "has no value", "`fn.python_function`"]),
    "one_output_unpacked": (TypeError, ["'DataNode' object is not iterable", "one output"]),
    "operator_outside_of_a_definition": (
        TypeError,
        ["has no value", "headrace.experimental.dynamic"],
    ),
    "misspelt_plugin": (ImportError, ["'torch'", 'Did you mean "pytorch"?']),
    "misspelt_class": (AttributeError, ["'Pipelin'", 'Did you mean "Pipeline"?']),
    "text_returned": (TypeError, ["output 1 is a `<class 'str'>`"]),
    "nothing_returned": (
        NotImplementedError,
        ["has no outputs", "return them from the definition"],
    ),
    "edge_of_another_pipeline": (RuntimeError, ["belongs to another pipeline"]),
    "no_data_set": (ValueError, ["`file_root`", "`file_list`", "`files`"]),
    "folder_that_is_not_there": (ValueError, ["imges", "No such file or directory"]),
    "folder_without_classes": (ValueError, ["sub-directories", "one for each class"]),
    "shard_beyond_the_last": (ValueError, ["`shard_id` is 2", "less than `num_shards`"]),
    "misspelt_setting": (TypeError, ["num_thread.", 'Did you mean "num_threads"?']),
    "misspelt_setting_at_the_call": (TypeError, ["`batch_sise`", 'Did you mean "batch_size"?']),
    "misspelt_setting_of_a_class": (TypeError, ["'num_thread'", 'Did you mean "num_threads"?']),
    "no_threads": (ValueError, ["`num_threads` is 0", "at least one"]),
    "batch_size_as_float": (TypeError, ["`batch_size` is 4.0", "integer"]),
    "no_batch_size": (ValueError, ["Pipeline(batch_size=...)"]),
    "source_at_its_end_returns_none": (TypeError, ["has returned nothing", "raise StopIteration"]),
    "second_epoch_of_a_generator": (UserWarning, ["empty", 'cycle="raise"', "generator function"]),
    "more_samples_than_the_batch_size": (ValueError, ["batch_size <= 4", "actual: 8"]),
    "sources_of_different_batch_sizes": (ValueError, ["3 samples", "one of 4"]),
    "layout_of_another_rank": (ValueError, ["4 dimensions", "got 3", '"NHWC"', "one sample"]),
    "lists_of_different_lengths": (
        ValueError,
        ["Sample 0", "element [0] has 2", "element [1] has 1", "samples of a batch may differ"],
    ),
    "number_beyond_its_type": (OverflowError, ["Sample 1", "1099511627776", "dtype=types.INT64"]),
    "run_at_the_end": (StopIteration, ["after 1 iterations", "`reset()`"]),
    "next_at_the_end": (StopIteration, ["after 1 batches", "`reset()`"]),
    "source_that_was_not_fed": (IndexError, ["'images'", "`feed_input`"]),
    "feeding_an_unknown_name": (KeyError, ['"image"', 'Did you mean "images"?']),
    "corrupt_file": (RuntimeError, ["a/2.jpg", "no known image format", "on_bad_sample"]),
    "decoded_twice": (ValueError, ["flat arrays of bytes", "drop the decoder"]),
    "channels_first": (ValueError, ['"XYZ"', '"HWC"', "`fn.transpose`"]),
    "crop_larger_than_the_image": (IndexError, ["(33, 4, 3)", "out_of_bounds_policy"]),
    "means_of_other_channels": (ValueError, ["`mean` has 2 values", "3 channels"]),
    "images_of_different_sizes_as_an_array": (ValueError, ["same shape", "`fn.pad`", "batch[i]"]),
    "images_of_different_sizes_for_pytorch": (ValueError, ["`fn.resize`", "DALIRaggedIterator"]),
    "definition_in_place_of_a_pipeline": (TypeError, ["`train` is the definition", "`train(...)`"]),
    "misspelt_reader": (KeyError, ["Raeder", 'Did you mean "Reader"?']),
    "misspelt_argument_of_an_iterator": (
        TypeError,
        ["'reader_nam'", 'Did you mean "reader_name"?'],
    ),
    "names_for_other_outputs": (ValueError, ["2 names", "1 outputs"]),
    "loop_over_a_pipeline": (TypeError, ["not iterable", "`pipe.run()`", "DALIGenericIterator"]),
    "run_beside_an_iterator": (RuntimeError, ["ITERATOR", "BASIC", "`run`"]),
    "loop_over_a_reader": (TypeError, ["`ndd.readers.File`", "next_epoch(batch_size=32)"]),
    "misspelt_argument_of_a_call": (TypeError, ["'sizee'", 'Did you mean "size"?']),
    "epoch_of_another_batch_size": (ValueError, ["change batch_size to 4", "2"]),
    "operator_without_xp": (TypeError, ["`invert(xp, image, ...)`", "`xp`", "`image`"]),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "images" / "a").mkdir(parents=True)
    image = encoded(20, 30).tobytes()
    for k in range(4):
        (folder / "images" / "a" / f"{k}.jpg").write_bytes(b"no jpeg" if k == 2 else image)
    return Library("headrace", folder)


def test_every_mistake_is_told():
    assert set(TOLD) == set(MISTAKES)
    assert len(TOLD) >= 32


@pytest.mark.parametrize("mistake", TOLD)
def test_what_users_are_told(mistake, library):
    kind, fragments = TOLD[mistake]
    if issubclass(kind, Warning):
        with pytest.warns(kind) as warned:
            MISTAKES[mistake](library)
        text = "\n".join(str(w.message) for w in warned)
    else:
        with pytest.raises(kind) as caught:
            MISTAKES[mistake](library)
        refused_by_python = type(caught.value) in (
            *(TypeError, AttributeError, StopIteration, ModuleNotFoundError),
        )
        assert refused_by_python or isinstance(caught.value, headrace.errors.HeadraceError)
        text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    # From Python 3.13 on, the question is Python's own where it refuses the argument.
    text = text.replace("'", '"')
    for fragment in fragments:
        assert fragment.replace("'", '"') in text


def test_the_page_tells_what_is_said():
    text = PAGE.read_text()
    for mistake, (_, fragments) in TOLD.items():
        title = mistake.replace("_", " ")
        (row,) = re.findall(rf"^\| {title} \| .*$", text, re.MULTILINE)
        ours = row.split(" | ")[1]
        for fragment in fragments:
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
