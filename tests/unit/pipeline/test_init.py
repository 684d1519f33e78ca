"""The example of how to use the package."""

import doctest

import pipeline


def test_the_example_of_the_package_decides_what_it_says() -> None:
    result = doctest.testmod(pipeline)
    assert (result.failed, result.attempted > 0) == (0, True)
