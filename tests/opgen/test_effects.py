"""What a call does beside its results is compared, too: each check finds the fault it is for."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace

import pytest
import torch

from opgen.testing.build import Domain
from opgen.testing.case import Case, SeededGenerator, TensorSpec, make_live
from opgen.testing.domains import domain_of
from opgen.testing.effects import compare_runs, trips_to_cpu
from opgen.testing.examine import Ending, examine
from opgen.testing.gradients import Compared, check_gradients, examine_gradients, gradient_subject
from opgen.testing.laws import check as check_law
from opgen.testing.overload import load_overload
from opgen.testing.problem import Category
from opgen.testing.run import Outcome, _computes, run
from opgen.testing.source import SeededSource
from opgen.testing.strategies import make_case
from opgen.testing.subject import load_subject

aten = torch.ops.aten


def categories(name: str, wrong, dtype: torch.dtype = torch.float32, count: int = 60) -> Counter[Category]:
    """What is found when ``wrong`` plays the device's operator."""
    subject = load_subject(name, device="cpu")
    broken = replace(subject, op=replace(subject.op, call=wrong))
    found: Counter[Category] = Counter()
    for seed in range(count):
        case = make_case(subject.op, subject.domain, subject.reference, SeededSource(seed), (dtype,))
        examined = examine(Case(broken.op, case.arguments), broken)
        found.update({problem.category for problem in examined.problems})
        assert examine(case, subject).ending is not Ending.FAILED
    return found


def test_missing_and_superfluous_warnings_are_found() -> None:
    def quiet(self, out):
        return out.resize_(self.shape).copy_(aten.exp(self)) if torch.can_cast(self.dtype, out.dtype) else 1 / 0

    def loud(self):
        warnings.warn("careful", stacklevel=1)
        return aten.exp(self)

    assert categories("exp.out", quiet)[Category.WARNING]
    assert categories("exp", loud)[Category.WARNING]


def test_warnings_that_a_process_gives_once_are_heard_every_time() -> None:
    assert not categories("copy_", aten.copy_.default, torch.int64)

    def silent(self, src, non_blocking=False):
        return aten.copy_(self, src.real if src.is_complex() and not self.is_complex() else src)

    assert categories("copy_", silent, torch.int64, count=200)[Category.WARNING]


def test_version_counter_that_stands_still_is_found() -> None:
    def behind(self):
        self.detach().numpy()[...] = self.exp().numpy()
        return self

    assert categories("exp_", behind)[Category.VERSION]


def test_result_that_differs_from_call_to_call_is_found() -> None:
    calls = iter(range(10**6))
    found = categories("exp", lambda self: aten.exp(self) * (1 + 1e-7 * (next(calls) % 2)))
    assert found[Category.NONDETERMINISM] and not found[Category.VALUE]


def test_view_of_another_place_with_the_same_values_is_found() -> None:
    def elsewhere(self, size):
        both = torch.cat([self.reshape(-1)] * 2)
        result = aten.view(self, size)
        return both[self.numel() :].view(result.shape)

    assert categories("view", elsewhere)[Category.ALIASING]


def test_input_that_is_changed_by_a_call_that_is_refused_is_found() -> None:
    def spoils(self, mat2):
        self.zero_()
        return aten.mm(self, mat2)

    subject = load_subject("mm", device="cpu")
    broken = replace(subject, op=replace(subject.op, call=spoils))
    case = Case(broken.op, {"self": TensorSpec.of(torch.ones(2, 3)), "mat2": TensorSpec.of(torch.ones(2, 3))})
    assert [problem.category for problem in examine(case, broken).problems] == [Category.INPUT_CHANGED]


def test_conjugate_and_negative_bits_that_are_ignored_are_found() -> None:
    def blind(self, mat2):
        raw = self.conj() if self.is_conj() else self
        return aten.mm(raw, mat2)

    assert categories("mm", blind, torch.complex64)[Category.VALUE]

    def unsigned(self):
        return aten.abs(self) if not self.is_neg() else aten.abs(self) + 1

    assert categories("abs", unsigned, count=200)[Category.VALUE]


def test_device_that_moves_its_work_to_the_cpu_is_found() -> None:
    torch.empty(1, device="musa")
    library = torch.library.Library("opgen_testing_trip", "DEF")
    library.define("exp(Tensor x) -> Tensor")
    library.impl("exp", lambda x: x.exp(), "CPU")
    library.impl("exp", lambda x: x.cpu().exp().to(x.device), "PrivateUse1")
    subject = load_subject("opgen_testing_trip::exp")
    case = Case(subject.op, {"x": TensorSpec.of(torch.ones(3))})
    (problem,) = examine(case, subject).problems
    assert problem.category is Category.FALLBACK and "computes on the CPU: {'exp': 1}" in problem.text
    assert examine(case, replace(subject, fallback=True)).ending is Ending.AGREED


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda self, a=0.0, b=1.0, generator=None: aten.uniform_(self, a, b), "from different seeds"),
        (
            lambda self, a=0.0, b=1.0, generator=None: aten.uniform_(
                self, a, b, generator=generator and torch.Generator().manual_seed(generator.initial_seed())
            ),
            "does not advance its generator",
        ),
        (
            lambda self, a=0.0, b=1.0, generator=None: (
                torch.rand(1),
                aten.uniform_(self, a, b, generator=generator),
            )[1],
            "moves the default generator",
        ),
    ],
    ids=["generator ignored", "not advanced", "default generator moved"],
)
def test_generator_that_is_treated_badly_is_found(wrong, text: str) -> None:
    op = load_overload("uniform_")
    arguments = {"self": TensorSpec.of(torch.zeros(500)), "generator": SeededGenerator(3)}
    assert check_law(Case(op, arguments), domain_of(op).law, "cpu") == []
    problems = check_law(Case(replace(op, call=wrong), arguments), domain_of(op).law, "cpu")
    assert any(text in problem.text for problem in problems), problems


class _WrongSlope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2.5 * ctx.saved_tensors[0]


class _WrongCurvature(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.saved_tensors[0].detach() + 0 * ctx.saved_tensors[0]


@pytest.mark.parametrize(("wrong", "text"), [(_WrongSlope, "gradient of"), (_WrongCurvature, "second derivative of")])
def test_wrong_derivative_is_found(wrong, text: str) -> None:
    subject = gradient_subject("square", "cpu")
    broken = replace(subject, op=replace(subject.op, call=wrong.apply))
    case = Case(broken.op, {"self": TensorSpec.of(torch.tensor([1.0, 2.0]))})
    problems = examine_gradients(case, broken, Compared())
    assert any(problem.text.startswith(text) for problem in problems), problems


def test_result_that_forgets_to_ask_for_its_gradient_is_found() -> None:
    subject = gradient_subject("square", "cpu")
    broken = replace(subject, op=replace(subject.op, call=lambda self: aten.square(self).detach()))
    case = Case(broken.op, {"self": TensorSpec.of(torch.tensor([1.0, 2.0]))})
    assert any("ask for a gradient" in problem.text for problem in examine_gradients(case, broken, Compared()))


def test_gradients_are_held_against_differences_in_double() -> None:
    compared = check_gradients("tanh", "cpu", count=12)
    assert compared.cases >= 10 and compared.second >= 10 and compared.differences >= 2


def test_in_place_operators_have_gradients_too() -> None:
    assert check_gradients("mul_.Tensor", "cpu", count=12).cases >= 8


def test_complex_tensors_have_gradients_too() -> None:
    assert check_gradients("mul.Tensor", "cpu", count=12, dtypes=(torch.complex128,)).cases >= 8


def test_write_through_one_view_of_several_shows() -> None:
    def parts(self, split_size, dim=0):
        return [part.clone() for part in aten.split.Tensor(self, split_size, dim)]

    assert categories("split.Tensor", parts)[Category.ALIASING]


def test_lists_given_as_out_are_as_long_as_the_list_of_results() -> None:
    subject = load_subject("_amp_foreach_non_finite_check_and_unscale.out", device="cpu")
    assert torch.float32 in subject.dtypes()
    for seed in range(20):
        case = make_case(subject.op, subject.domain, subject.reference, SeededSource(seed), (torch.float32,))
        assert len(case.arguments["out"]) == len(case.arguments["self"])

    def loses_the_last(self, found_inf, inv_scale, out):
        rest = [tensor.clone() for tensor in out[1:]]
        aten._amp_foreach_non_finite_check_and_unscale.out(self, found_inf, inv_scale, out=[out[0], *rest])

    assert categories(subject.op.name, loses_the_last)[Category.VALUE]


@pytest.mark.parametrize(
    ("fallbacks", "on_host", "silent"),
    [
        ({}, {}, ""),
        ({"sort": 1}, {}, "fallback: {'sort': 1}"),
        ({}, {"sort": 1}, "computes on the CPU: {'sort': 1}"),
        # what the table names may go there, and whatever it calls there
        ({"unique_dim": 2}, {"sort": 1}, ""),
        ({}, {"unique_dim": 1}, ""),
        ({}, {"unique_dim": 1, "sort": 1}, "computes on the CPU: {'sort': 1}"),
        ({"unique_dim": 2, "sort": 1}, {}, "fallback: {'sort': 1}"),
    ],
)
def test_only_what_the_table_names_may_go_through_the_cpu(fallbacks, on_host, silent) -> None:
    live = make_live(Case(load_overload("neg")), "cpu")
    problems = trips_to_cpu(Outcome(live, [], None, fallbacks, on_host), Domain(through_cpu=frozenset({"unique_dim"})))
    assert [silent in problem.text for problem in problems] == [True] * bool(silent)


@pytest.mark.parametrize("name", ["unbind.int", "split.Tensor", "view", "new_empty", "empty_like", "clone"])
def test_views_and_new_tensors_are_no_work_of_the_host(name: str) -> None:
    assert not _computes(name)


@pytest.mark.parametrize("name", ["add.Tensor", "zero_", "sort", "_foreach_add.List"])
def test_computing_is_work_of_the_host(name: str) -> None:
    assert _computes(name)


@pytest.mark.parametrize(
    "name", ["scatter_add", "index_add", "embedding_dense_backward", "upsample_bilinear2d_backward"]
)
def test_sums_by_atomic_additions_may_differ_by_rounding_on_a_device_with_threads(name: str) -> None:
    domain = domain_of(load_overload(name))
    case = Case(load_overload("neg"), {"self": TensorSpec.of(torch.ones(9))})
    first = run(case, "cpu", aten.neg.default)
    rounding = replace(first, results=[first.results[0] * (1 + 1e-6)])
    wrong = replace(first, results=[first.results[0] * 2])
    assert not compare_runs(case, first, rounding, domain, ordered=False)
    assert compare_runs(case, first, rounding, domain, ordered=True)
    assert compare_runs(case, first, wrong, domain, ordered=False)
    assert compare_runs(case, first, rounding, Domain(), ordered=False)
