"""What two right kernels may differ in: rounding that is magnified, the last number before infinity, free choices.

A difference is planted in the reference, as in test_testing.py.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from opgen.testing import check_overload
from opgen.testing.build import Domain
from opgen.testing.case import Case, TensorSpec
from opgen.testing.compare import compare_values, tolerance
from opgen.testing.conditioning import excused
from opgen.testing.domains import domain_of
from opgen.testing.examine import Ending, examine
from opgen.testing.gradients import Compared, examine_gradients, gradient_subject
from opgen.testing.overload import load_overload
from opgen.testing.subject import Subject

aten = torch.ops.aten


def case_of(name: str, **arguments) -> Case:
    tensors = {key: TensorSpec.of(v) if isinstance(v, Tensor) else v for key, v in arguments.items()}
    return Case(load_overload(name), tensors)


def ending(case: Case, reference, domain: Domain | None = None) -> Ending:
    return examine(case, Subject(case.op, domain or Domain(), reference, "cpu", False)).ending


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_a_function_that_magnifies_rounding_may_differ_by_as_much(dtype: torch.dtype) -> None:
    # exp(b log a) turns an ulp of b into |b log a| = 14 of them
    case = case_of(
        "pow.Tensor_Tensor", self=torch.full((8,), 3 + 4j, dtype=dtype), exponent=torch.full((8,), 6 + 6j, dtype=dtype)
    )
    off = 2 * tolerance(dtype)[0]
    assert ending(case, lambda a, b: aten.pow(a, b) * (1 + off)) is Ending.AGREED
    assert ending(case, lambda a, b: aten.pow(a, b) * (1 + 100 * off)) is Ending.FAILED


def test_a_function_that_passes_rounding_on_may_not() -> None:
    case = case_of("mul.Tensor", self=torch.rand(8) + 1, other=torch.rand(8) + 1)
    off = 12 * tolerance(torch.float32)[0]
    assert ending(case, lambda a, b: aten.mul(a, b) * (1 + off)) is Ending.FAILED


@pytest.mark.parametrize("name", ["floor", "round", "sign"])
def test_a_jump_excuses_nothing(name: str) -> None:
    case = case_of(name, self=torch.tensor([1.0, 2.5, 0.0, -3.0]))
    right = getattr(torch, name)
    assert ending(case, lambda x: right(x) - 1) is Ending.FAILED


def test_neither_does_a_nan_nor_another_shape_nor_an_integer() -> None:
    case = case_of("log", self=torch.tensor([2.0]))
    right = [torch.tensor([2.0]).log()]
    for got in (torch.tensor([math.nan]), torch.tensor([math.inf]), right[0].expand(2), torch.tensor([1])):
        assert not excused(case, lambda moved: [moved.arguments["self"].value.log()], right, [got])
    assert not excused(case_of("neg", self=torch.tensor([2])), lambda moved: right, right, right)


def test_moved_tensors_keep_their_layout_and_their_names() -> None:
    spec = TensorSpec(torch.arange(1.0, 7.0), (2, 2), (1, 3), 1)
    case = Case(load_overload("add.Tensor"), {"self": spec, "other": spec})
    moved: list[Case] = []
    excused(case, lambda one: moved.append(one), [torch.ones(2, 2)], [torch.zeros(2, 2)])
    (first, *_) = moved
    assert first.arguments["self"] is first.arguments["other"] is not spec
    assert (first.arguments["self"].strides, first.arguments["self"].offset) == ((1, 3), 1)
    off = (first.arguments["self"].base - spec.base).abs() / spec.base
    assert 0 < off.max() <= 2 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_the_largest_number_may_round_up_to_infinity(dtype: torch.dtype) -> None:
    most = torch.finfo(dtype).max
    largest, infinite = torch.tensor([most, -most], dtype=dtype), torch.tensor([math.inf, -math.inf], dtype=dtype)
    assert not compare_values(largest, infinite)
    assert compare_values(largest, -infinite)
    assert compare_values(largest / 2, infinite)
    assert compare_values(infinite, largest)


@pytest.mark.parametrize("largest", [True, False])
def test_the_order_of_an_unsorted_topk_is_free(largest: bool) -> None:
    def backwards(self, k, dim=-1, largest=True, sorted=True):
        values, indices = aten.topk(self, k, dim, largest, True)
        return (values.flip(dim), indices.flip(dim)) if self.dim() else (values, indices)

    def case(sorted: bool) -> Case:
        x = torch.tensor([[3.0, math.nan, 1.0, 2.0], [5.0, 5.0, -1.0, 0.0]])
        return case_of("topk", self=x, k=3, dim=1, largest=largest, sorted=sorted)

    assert ending(case(False), backwards, domain_of(case(False).op)) is Ending.AGREED
    assert ending(case(True), backwards, domain_of(case(True).op)) is Ending.FAILED

    def wrong(self, k, dim=-1, largest=True, sorted=True):
        return tuple(part.clone() for part in aten.topk(self, k, dim, not largest, sorted))

    assert ending(case(False), wrong, domain_of(case(False).op)) is Ending.FAILED


def test_unsorted_topk_and_its_out_form_pass_whatever_the_order() -> None:
    def backwards(self, k, dim=-1, largest=True, sorted=True):
        values, indices = aten.topk(self, k, dim, largest, sorted)
        return (values.flip(dim), indices.flip(dim)) if self.dim() and not sorted else (values, indices)

    check_overload("topk", reference=backwards, device="cpu", count=60)


def test_which_of_several_equal_elements_has_the_gradient_is_open() -> None:
    def last_of_equals(self, k, dim=-1, largest=True, sorted=True):
        values, indices = aten.topk(self.flip(dim), k, dim, largest, sorted)
        return values, self.size(dim) - 1 - indices

    subject = replace(gradient_subject("topk", "cpu"), reference=last_of_equals)
    equal = case_of("topk", self=torch.ones(4), k=1)
    compared = Compared()
    assert not examine_gradients(equal, subject, compared) and not compared.cases
    assert (
        not examine_gradients(case_of("topk", self=torch.arange(4.0), k=1), subject, compared) and compared.cases == 1
    )


def test_gradients_through_a_dtype_that_was_asked_for_are_as_good_as_that_dtype() -> None:
    def rounded_twice(self, *, dtype=None):
        return aten.prod(self * (1 + 3e-8), dtype=dtype)

    x = torch.tensor([1.88, 0.83, -0.16, 1.68], dtype=torch.float64)
    subject = replace(gradient_subject("prod", "cpu"), reference=rounded_twice)
    assert not examine_gradients(case_of("prod", self=x, dtype=torch.float32), subject, Compared())
    assert examine_gradients(case_of("prod", self=x), subject, Compared())


def test_derivatives_of_a_normalization_over_close_numbers_may_differ_as_the_cpus_own_do() -> None:
    def magnified(input, weight, bias, training, momentum, eps):
        return aten._native_batch_norm_legit.no_stats(
            input + torch.tensor([0.0, 2e-16, 0.0, -2e-16]).view(2, 1, 2).double(),
            weight,
            bias,
            training,
            momentum,
            eps,
        )

    x = torch.tensor([1.8712433301141278, 1.8697712224453773] * 2, dtype=torch.float64).view(2, 1, 2)
    one = torch.ones(1, dtype=torch.float64)
    name = "_native_batch_norm_legit.no_stats"
    case = case_of(name, input=x, weight=one, bias=one, training=True, momentum=0.1, eps=0.001)
    subject = gradient_subject(name, "cpu")
    compared = Compared()
    assert not examine_gradients(case, replace(subject, reference=magnified), compared) and compared.second == 1

    def wrong(input, weight, bias, training, momentum, eps):
        return aten._native_batch_norm_legit.no_stats(input, weight * (1 + 1e-9), bias, training, momentum, eps)

    assert examine_gradients(case, replace(subject, reference=wrong), Compared())
