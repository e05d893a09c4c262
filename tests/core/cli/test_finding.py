import pytest

from headrace import Pipeline
from headrace.cli.finding import CommandError, find, values
from tests.support.scripts import imports_forgotten

SCRIPT = """
from headrace import Pipeline, fn, pipeline_def

@pipeline_def(batch_size=2, num_threads=1)
def small(size=4):
    return fn.random.uniform(shape=size)

@pipeline_def(batch_size=2, num_threads=1)
def needs(root):
    return fn.readers.file(file_root=root)

made = small()
number = 3

if __name__ == "__main__":
    raise AssertionError("it is not the program")
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    path = tmp_path / "a_script.py"
    path.write_text(SCRIPT)
    with imports_forgotten(monkeypatch):
        yield path


def test_a_function_makes_pipelines(script):
    found = find(f"{script}:small")
    pipe = found.make(batch_size=5, size=3)
    assert isinstance(pipe, Pipeline)
    assert pipe.max_batch_size == 5
    assert pipe.run()[0].as_array().shape == (5, 3)


def test_a_pipeline_is_taken_as_it_is(script):
    found = find(f"{script}:made")
    assert found.make() is found.value
    with pytest.raises(CommandError, match="has made already, so that batch_size cannot be set"):
        found.make(batch_size=3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("smal", 'There is no `smal` in a_script.py. Did you mean "small"'),
        ("zzz", "It has: small, needs, made."),
        ("number", "`number` in a_script.py is a int"),
        ("", "Say which pipeline of a_script.py is meant: a_script.py:NAME. It has: small, needs"),
    ],
)
def test_errors_name_what_there_is(script, name, message):
    with pytest.raises(CommandError) as error:
        find(f"{script}:{name}" if name else str(script))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_missing_is_named(script):
    with pytest.raises(CommandError, match=r"needs root: add --set root=\.\.\."):
        find(f"{script}:needs").make()


def test_scripts_that_are_none(tmp_path, script):
    with pytest.raises(CommandError, match="There is no file"):
        find(str(tmp_path / "none.py:x"))
    (tmp_path / "text.txt").write_text("x")
    with pytest.raises(CommandError, match="is no Python script"):
        find(str(tmp_path / "text.txt:x"))
    (tmp_path / "broken_script.py").write_text("raise ValueError('broken on purpose')")
    with pytest.raises(CommandError, match="cannot be run: ValueError: broken on purpose"):
        find(str(tmp_path / "broken_script.py:x"))


def test_the_only_one_needs_no_name(tmp_path, script):
    path = tmp_path / "single_script.py"
    path.write_text("from headrace import Pipeline\npipe = Pipeline(2, 1)\n")
    assert find(str(path)).name == "pipe"


def test_values_are_literals_or_text():
    assert values(["a=8", "b=text", "c=[1, 2]", "d=None", "e=x=y"]) == {
        "a": 8,
        "b": "text",
        "c": [1, 2],
        "d": None,
        "e": "x=y",
    }
    for wrong in ("a", "=3", "1a=3"):
        with pytest.raises(CommandError, match="is no setting"):
            values([wrong])
