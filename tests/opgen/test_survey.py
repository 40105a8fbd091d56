"""A survey runs on after a fault, and says of what kind each fault is."""

from __future__ import annotations

import contextlib

import torch

from opgen.testing.case import Case
from opgen.testing.examine import Ending
from opgen.testing.problem import Category
from opgen.testing.survey import survey

aten = torch.ops.aten


def swapped(self, other, alpha=1):
    return aten.sub(other, self, alpha=alpha)


def ignores_alpha(self, other, alpha=1):
    return aten.add(self, other)


def test_survey_counts_and_goes_on_after_a_fault() -> None:
    found = survey("sub.Tensor", torch.float32, count=40, device="cpu", reference=swapped)
    assert found.dtype == "float32" and found.total == 40
    assert 3 < found.endings[Ending.FAILED] < 40 and found.endings[Ending.AGREED]
    assert found.categories[Category.VALUE] <= found.endings[Ending.FAILED]
    finding = found.findings[Category.VALUE]
    assert "wrong values" in finding.problem.text and "torch.ops.aten.sub.Tensor" in finding.script


def test_survey_of_a_right_operator_has_no_findings_and_names_what_it_was_compared_with() -> None:
    assert survey("exp", torch.float64, device="cpu").findings == {}
    assert survey("exp", torch.float64, count=2, device="cpu").compared_with == "cpu"
    assert survey("uniform_", torch.float32, count=2, device="cpu").compared_with == "law"
    assert survey("sub.Tensor", torch.float64, count=2, device="cpu", reference=swapped).compared_with == "swapped"


def test_survey_shrinks_its_findings_where_asked() -> None:
    short, long = (
        survey("add.Tensor", torch.int64, count=40, device="cpu", reference=ignores_alpha, shrink=shrink).findings
        for shrink in (True, False)
    )
    assert len(short[Category.VALUE].case) <= len(long[Category.VALUE].case)
    assert len(short[Category.VALUE].case) < 120, short[Category.VALUE].case


def test_survey_is_told_of_every_case_before_it_runs_and_watches_the_call_alone() -> None:
    told: list[Case] = []
    entered: list[int] = []

    @contextlib.contextmanager
    def watch():
        entered.append(len(told))
        yield

    survey("neg", torch.float32, count=7, device="cpu", before=told.append, watch=watch)
    assert entered == [1, 2, 3, 4, 5, 6, 7]


def test_survey_with_one_seed_sees_the_same_cases_and_with_another_one_others() -> None:
    def seen(seed: int) -> list[str]:
        told: list[Case] = []
        survey("neg", torch.float32, count=9, seed=seed, device="cpu", before=told.append)
        return [repr(case) for case in told]

    assert seen(1) == seen(1) != seen(2)
