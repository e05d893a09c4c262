"""A program of mistakes, one a line: type checkers find each of them, and nothing else.

The same program with `nvidia.dali` in the place of `headrace` shows what its stubs tell.
"""

from __future__ import annotations

import headrace.experimental.dynamic as ndd
from headrace import fn, math, ops, types
from headrace.data_node import DataNode
from headrace.pipeline import Pipeline, experimental, pipeline_def


@pipeline_def(num_thread=2)  # wrong: misspelt argument of the decorator
def misspelt_setting():
    return fn.random.uniform()


@pipeline_def(batch_size="4")  # wrong: type of an argument of the decorator
def setting_of_another_type():
    return fn.random.uniform()


@experimental.pipeline_def(num_thread=2)  # wrong: misspelt argument of the experimental decorator
def misspelt_again():
    return fn.random.uniform()


@pipeline_def  # wrong: a definition that returns a list
def list_of_outputs() -> list[DataNode]:
    return fn.readers.file(file_root="photographs")


@pipeline_def(batch_size=4, num_threads=2)
def definition(root: str, size: int = 3):
    encoded, labels = fn.readers.file(file_root=root)
    return fn.resize(fn.decoders.image(encoded), size=size), labels


@pipeline_def
def without_arguments():
    return fn.random.uniform()


def calls_of_definitions():
    definition()  # wrong: missing argument of a definition
    definition("photographs", sise=3)  # wrong: misspelt argument of a definition
    definition("photographs", size="3")  # wrong: type of an argument of a definition
    definition("photographs", 3, 4)  # wrong: too many arguments of a definition
    definition("photographs", batch_size="4")  # wrong: type of an argument of the pipeline
    without_arguments(batch_sise=4)  # wrong: misspelt argument of the pipeline
    definition("photographs").rum()  # wrong: misspelt method of the pipeline
    Pipeline(4, 2, 0, prefetch_depth=2)  # wrong: misspelt argument of Pipeline
    Pipeline(batch_size="4", num_threads=2, device_id=0)  # wrong: type of an argument of Pipeline


def calls_of_operators():
    number = fn.random.uniform()
    fn.rotate(number, angel=3.0)  # wrong: misspelt argument of an operator
    fn.rotate(number)  # wrong: missing argument of an operator
    fn.rotate(number, angle="3")  # wrong: type of an argument of an operator
    fn.rotate(angle=3.0)  # wrong: missing input
    fn.resize(number, size=3, interp_type="linear")  # wrong: a name for an enumeration
    fn.resize(number, 10, 10)  # wrong: arguments by position
    fn.resize([number, number], sise=10)  # wrong: misspelt argument with a list of inputs
    fn.resize([number, number], size="10")  # wrong: type of an argument with a list of inputs
    fn.rezise(number, size=10)  # wrong: misspelt operator
    fn.decoders.imaga(number)  # wrong: misspelt operator of a module
    fn.cast(number, dtype=[types.UINT8])  # wrong: a list of element types
    fn.readers.file(file_rot="photographs")  # wrong: misspelt argument of a reader
    fn.external_source(lambda: 1, num_output=2)  # wrong: misspelt argument of a source
    fn.external_source(lambda: 1, dtype=types.RGB)  # wrong: another enumeration
    ops.Rotate(angel=3.0)  # wrong: misspelt argument of a class
    ops.Rotate(angle=3.0)(number, filvalue=1)  # wrong: misspelt argument of an instance's call
    ops.Rotate(angle=3.0)()  # wrong: missing input of an instance's call


def calculations():
    number = fn.random.uniform()
    _ = list(fn.rotate(number, angle=3.0))  # wrong: one output taken for several
    fn.resize(number, size=3, save_attrs=True).gpu()  # wrong: two outputs taken for one
    fn.external_source(lambda: 1, num_outputs=2).gpu()  # wrong: a list of outputs taken for one
    number + "1"  # wrong: text in a calculation
    float(number)  # wrong: the value of a node
    number.gpuu()  # wrong: misspelt method of a node
    math.sqroot(number)  # wrong: misspelt function
    math.sqrt(number, number)  # wrong: too many operands


def dynamic_mode():
    image = ndd.tensor([[[1]]], layout="HWC")
    ndd.resize(image, sise=10)  # wrong: misspelt argument of a dynamic function
    ndd.rotate(image)  # wrong: missing argument of a dynamic function
    ndd.rotate(image, angle="3")  # wrong: type of an argument of a dynamic function
    ndd.rezise(image, size=10)  # wrong: misspelt dynamic function
    ndd.readers.File(file_rot="photographs")  # wrong: misspelt argument of a dynamic reader
    ndd.tensor([1], layuot="A")  # wrong: misspelt argument of a tensor
