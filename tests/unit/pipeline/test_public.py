"""The names that a library user needs, and the example of how to use them."""

import doctest

import pytest

import pipeline
from pipeline import public


def test_the_example_of_the_package_decides_what_it_says() -> None:
    result = doctest.testmod(pipeline)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_every_name_that_is_exported_is_there_and_no_other() -> None:
    assert pipeline.__all__ == public.__all__
    assert all(getattr(pipeline, name) is getattr(public, name) for name in pipeline.__all__)
    with pytest.raises(AttributeError, match="no attribute 'undecided'"):
        _ = pipeline.undecided
