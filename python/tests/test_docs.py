"""The examples in docstrings and in README, and that each public name has docs."""

import doctest
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
import warpfold as wf

README = Path(__file__).parents[2] / "README.md"


def docs():
    """The docstrings of the package, its functions and classes, and the methods of these."""
    yield "warpfold", wf.__doc__
    for name in wf.__all__:
        item = getattr(wf, name)
        yield name, item.__doc__
        for method, value in vars(item).items() if inspect.isclass(item) else ():
            if not method.startswith("_"):
                yield f"{name}.{method}", value.__doc__


def run(text, name):
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert doctest.DocTestRunner().run(test).failed == 0
    return len(test.examples)


@pytest.mark.parametrize("name, text", list(docs()), ids=[name for name, _ in docs()])
def test_docs_exist_and_their_examples_are_right(name, text):
    threads = wf.get_num_threads()
    assert text and len(text.splitlines()[0]) > 10
    examples = run(text, name)
    # Each function and class has an example; a method may be in that of its class.
    assert examples > 0 or "." in name
    wf.set_num_threads(threads)


def test_the_example_of_the_readme():
    example = README.read_text().split("```python\n")[1].split("```")[0]
    assert run(example, "README.md") >= 5


def test_all_names_are_listed():
    # Other tests may have imported modules of the package, such as warpfold.dask.
    public = {name for name in dir(wf) if not name.startswith("_") and not inspect.ismodule(getattr(wf, name))}
    assert public == set(wf.__all__)
    for name in wf.__all__:
        if not inspect.isclass(getattr(wf, name)):
            inspect.signature(getattr(wf, name))


def test_info_without_a_driver():
    script = "import warpfold as wf; print(wf.info())"
    environment = os.environ | {"WARPFOLD_LIBCUDA": "none"}
    command = [sys.executable, "-c", script]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    info = eval(printed)
    assert info["driver"] is None and info["devices"] == [] and "WARPFOLD_LIBCUDA=none" in info["why"]
    assert info["version"] and info["threads"] >= 1
