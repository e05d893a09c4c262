"""Docstrings made from declarations."""

from __future__ import annotations

from headrace.operators.support.argument_types import (
    BoolArg,
    FloatArg,
    IntArg,
    InterpTypeArg,
    StringArg,
)
from headrace.operators.support.docs import devices_with_code, docstring_for, layouts_of
from headrace.operators.support.operator import Operator, SampleOperator
from headrace.operators.support.schema import REQUIRED, Arg, Input, OpSchema
from headrace.types import DALIDataType, DALIInterpType

DOC = "Blur an image.\n\nMore of it."
DATA = (Input(),)
IMAGE = (Input("image", "What to blur.", layouts=("HWC",), dtypes=(DALIDataType.UINT8,)),)


class WithCode(SampleOperator):
    def cpu(self, c, data):
        return data


def schema(cls=WithCode, inputs=DATA, args=(), doc=DOC, **traits) -> OpSchema:
    return OpSchema(
        name="blur",
        cls=cls,
        doc=doc,
        inputs=inputs,
        args={a.name: a for a in args},
        **traits,
    )


def test_whole_docstring():
    text = docstring_for(
        schema(
            inputs=IMAGE,
            args=(
                Arg(
                    "sigma", FloatArg, REQUIRED, "Width of the window, in pixels.", per_sample=True
                ),
                Arg("window", IntArg, 3, "Size of the window.", per_sample=True, per_frame=True),
            ),
            output_docs=("The blurred image.",),
        )
    )
    assert text == (
        "Blur an image.\n"
        "\n"
        "More of it.\n"
        "\n"
        "Runs on: cpu (to come: gpu).\n"
        "\n"
        "Parameters\n"
        "----------\n"
        "image : DataNode or array_like, layout HWC, of UINT8\n"
        "    What to blur.\n"
        "sigma : float, one for each sample allowed\n"
        "    Width of the window, in pixels.\n"
        "window : int, one for each sample or frame allowed, default 3\n"
        "    Size of the window.\n"
        'device : {"cpu", "gpu"}, optional\n'
        "    Where to run; by default where the inputs are.\n"
        "name : str, optional\n"
        "    Name of the operator in errors, checkpoints and readers; unique in its pipeline.\n"
        "\n"
        "Returns\n"
        "-------\n"
        "DataNode\n"
        "    The blurred image."
    )


def test_marks_of_arguments():
    text = docstring_for(
        schema(
            args=(
                Arg("filter", InterpTypeArg, DALIInterpType.INTERP_NN, "Filter."),
                Arg("mode", StringArg, "a", "Mode.", choices=("a", "b")),
                Arg("old", BoolArg, False, "Old.", deprecated="mode"),
                Arg("hint", IntArg, None, "Size.", hint=True),
                Arg("later", BoolArg, False, "Later.", unsupported="it needs a GPU."),
            )
        )
    )
    assert "filter : DALIInterpType, default types.INTERP_NN\n" in text
    assert 'mode : {"a", "b"}, default "a"\n' in text
    assert "Deprecated; use `mode`." in text
    assert "it is taken and not needed" in text
    assert "Only the default is taken yet: it needs a GPU.\n" in text


def test_sequences_are_listed_where_frames_are_taken():
    declared = Input(layouts=("HWC", "CHW"))
    assert layouts_of(declared, schema(frames=True)) == ("HWC", "CHW", "FHWC", "FCHW")
    assert layouts_of(declared, schema()) == ("HWC", "CHW")
    assert layouts_of(Input(), schema(frames=True)) == ()


def test_device_without_code_is_to_come():
    assert devices_with_code(schema()) == ("cpu",)
    assert devices_with_code(schema(Operator)) == ()
    assert "Runs on: no device yet (to come: cpu, gpu)." in docstring_for(schema(Operator))


def test_long_lines_are_wrapped_and_lists_are_kept():
    doc = "word " * 40 + "\n\n- one\n- two"
    lines = docstring_for(schema(args=(Arg("x", IntArg, None, doc),))).splitlines()
    assert max(map(len, lines)) <= 92
    assert "    - one" in lines
    assert "    - two" in lines


def test_class_says_where_arguments_go():
    assert "when the instance is called" in docstring_for(schema(), "ops")
    assert "when the instance is called" not in docstring_for(schema(), "fn")


def test_sections_of_the_declaration_come_last_and_notes_are_joined():
    doc = DOC + "\n\nExamples\n--------\n>>> fn.blur(x)\n\nNotes\n-----\nIt is slow."
    text = docstring_for(schema(doc=doc, random=True))
    assert text.startswith(DOC + "\n\nRuns on")
    assert text.endswith("Examples\n--------\n>>> fn.blur(x)")
    assert "DataNode\n\nNotes\n-----\nIt is slow.\n\nThe random numbers" in text
    assert text.count("Notes") == 1
