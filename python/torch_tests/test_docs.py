"""The examples in docstrings."""

import doctest

import pytest
import warpfold.torch


@pytest.mark.parametrize("name", ["", *warpfold.torch.__all__])
def test_examples(name):
    item = getattr(warpfold.torch, name) if name else warpfold.torch
    test = doctest.DocTestParser().get_doctest(item.__doc__, {}, name, None, None)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
