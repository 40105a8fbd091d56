"""MUSA_ARCH, in the spellings of users and of build scripts."""

from __future__ import annotations

import pytest

from opgen.architectures import architecture, architectures

SPELLINGS = {
    "": ("mp_31",),
    "mp_22": ("mp_22",),
    "22": ("mp_22",),
    "21;22;31": ("mp_21", "mp_22", "mp_31"),
    "mp_22, 21": ("mp_21", "mp_22"),
    "22;22": ("mp_22",),
    ";": ("mp_31",),
    "2": ("mp_31",),
    "22;20": ("mp_31",),
}


@pytest.mark.parametrize(("text", "expected"), SPELLINGS.items())
def test_each_spelling_names_its_chips_and_nonsense_the_default(text: str, expected: tuple[str, ...]) -> None:
    assert architectures({"MUSA_ARCH": text}) == expected
    assert architecture({"MUSA_ARCH": text}) == expected[-1]


def test_the_variable_not_set_means_the_default() -> None:
    assert architectures({}) == ("mp_31",)
