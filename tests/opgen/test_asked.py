"""What cannot be asked of a check is answered with what can be: never by taking something else, never by chance."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

from opgen.testing import check_overload
from opgen.testing.build import OMIT, Build
from opgen.testing.case import Case, TensorSpec
from opgen.testing.gradients import check_gradients
from opgen.testing.overload import Argument
from opgen.testing.rules import boolean_tensor, constant, one_of, values
from opgen.testing.source import SeededSource
from opgen.testing.strategies import make_case
from opgen.testing.subject import load_subject
from opgen.testing.survey import survey, survey_gradients


def refuse(*arguments: Any, **keywords: Any) -> Any:
    raise TypeError("three is no number of mine")


@pytest.mark.parametrize(
    ("name", "asked", "error", "said"),
    [
        ("neg", {"arguments": {"slef": values(0, 1)}}, LookupError, r"no argument 'slef'; did you mean 'self'\?"),
        ("add.Tensor", {"arguments": {"x": values(0, 1)}}, LookupError, r"it has self, other, alpha"),
        ("neg.out", {"arguments": {"out": values(0, 1)}}, LookupError, "follows from the results"),
        ("neg", {"arguments": {"self": 3}}, TypeError, r"is 3, and has to be a function.*constant\(3\)"),
        ("neg", {"arguments": {"self": lambda: 3}}, TypeError, r"cannot be called with \(build, argument\)"),
        ("add.Tensor", {"arguments": {"alpha": constant}}, TypeError, r"cannot be called with|gives a function"),
        ("add.Tensor", {"arguments": {"alpha": values}}, TypeError, r"are called first: values\(0, 1\)"),
        ("neg", {"arguments": [values(0, 1)]}, TypeError, "maps names of arguments to rules"),
        ("neg", {"reference": "neg"}, TypeError, "has to be a function of the same arguments"),
        ("neg", {"count": 0}, ValueError, "`count` is 0"),
        ("neg", {"count": -3}, ValueError, "it is 1 or more"),
        ("neg", {"count": 2.5}, TypeError, "`count` is a number of cases"),
        ("neg", {"dtypes": []}, ValueError, "`dtypes` is empty.*float32"),
        ("neg", {"dtypes": ["floot"]}, LookupError, r"no dtype 'floot'; did you mean 'float"),
        ("neg", {"dtypes": ["nonsense"]}, LookupError, r"\(float32, float64,"),
        ("neg", {"dtypes": "float32"}, TypeError, "is a list of dtypes"),
        ("neg", {"dtypes": torch.float32}, TypeError, "is a list of dtypes"),
        ("neg", {"dtypes": [float]}, TypeError, "is no dtype; there are float32"),
    ],
)
def test_what_cannot_be_asked_says_what_can(name: str, asked: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        check_overload(name, device="cpu", **asked)


@pytest.mark.parametrize(
    "ask",
    [
        functools.partial(survey, "neg", torch.float32),
        functools.partial(survey_gradients, "neg", torch.float32),
        functools.partial(check_gradients, "neg"),
    ],
    ids=["survey", "survey_gradients", "check_gradients"],
)
def test_no_cases_is_no_answer_anywhere(ask: Any) -> None:
    with pytest.raises(ValueError, match="`count` is 0"):
        ask(device="cpu", count=0)


@pytest.mark.parametrize("variable", ["TEST_EXAMPLES", "TEST_SEED"])
def test_a_number_in_the_environment_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "many")
    with pytest.raises(ValueError, match=f"{variable} is 'many' in the environment"):
        check_overload("neg", device="cpu")


def test_a_dtype_may_be_named() -> None:
    assert check_overload("neg", device="cpu", dtypes=["float64", "torch.int32"], count=4).total == 4


def test_a_reference_that_refuses_everything_is_shown_with_its_exception() -> None:
    with pytest.raises(AssertionError, match=r"torch\.float32 by TypeError: three is no number of mine"):
        check_overload("neg", reference=refuse, device="cpu")


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (None, "accepts what the CPU refuses with TypeError: floating numbers only"),
        (ValueError("no"), "raises ValueError: no, the CPU raises TypeError"),
        (TypeError("not I"), None),
        (NotImplementedError("\"floats\" not implemented for 'Int'"), None),
    ],
    ids=["accepts", "another exception", "the same exception", "by name"],
)
def test_a_dtype_that_the_operator_refuses_has_to_be_refused(error: Exception | None, found: Any, request: Any) -> None:
    name = f"opgen_asked_{''.join(filter(str.isalpha, request.node.callspec.id))}"
    library = torch.library.Library(name, "DEF")
    library.define("floats(Tensor x) -> Tensor")

    def on_cpu(x: torch.Tensor) -> torch.Tensor:
        if not x.dtype.is_floating_point:
            raise TypeError("floating numbers only")
        return x * 2

    def on_device(x: torch.Tensor) -> torch.Tensor:
        if not x.dtype.is_floating_point and error is not None:
            raise error
        return x * 2

    library.impl("floats", on_cpu, "CPU")
    library.impl("floats", on_device, "PrivateUse1")
    if found is None:
        check_overload(f"{name}::floats", count=10)
    else:
        with pytest.raises(AssertionError, match=found):
            check_overload(f"{name}::floats", count=10)


def test_a_dtype_that_only_the_cpus_kernel_lacks_binds_no_device() -> None:
    """`sub` of bools is refused before any kernel, on the meta device, too; float8 merely has no kernel."""
    from opgen.testing.case import Case, TensorSpec
    from opgen.testing.examine import Ending, examine
    from opgen.testing.subject import load_subject

    def ending(name: str, dtype: torch.dtype) -> Ending:
        subject = load_subject(name, device="cpu")
        names = [argument.name for argument in subject.op.inputs if argument.tensor]
        tensors = {name: TensorSpec.of(torch.ones(2).to(dtype)) for name in names}
        return examine(Case(subject.op, tensors), subject, refused=True).ending

    assert ending("sub.Tensor", torch.bool) is Ending.REFUSED
    assert ending("sin", torch.float8_e5m2) is Ending.DISCARDED


class _WrongSecond(torch.autograd.Function):
    """x ** 3, whose first derivative is right and whose second is not."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = context.saved_tensors
        return gradient * 3 * x.detach() ** 2 + 0 * x


def test_second_derivatives_are_held_against_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    from opgen.testing import gradients
    from opgen.testing.case import Case, TensorSpec

    subject = gradients.gradient_subject("square", device="cpu")
    case = Case(subject.op, {"self": TensorSpec.of(torch.tensor([0.5, 2.0], dtype=torch.float64))})
    wrong, right = _WrongSecond.apply, lambda x: x**3
    said = [gradients._checks_out(case, subject, "cpu", call, order) for call in (wrong, right) for order in (1, 2)]
    assert said[0] is said[2] is said[3] is None
    assert str(said[1]).startswith("has second derivatives that differences contradict")

    assert check_gradients("square", device="cpu", count=10).second_differences > 0

    def contradicted(case: Any, subject: Any, device: str, call: Any, order: int = 1) -> str | None:
        return "has second derivatives" if order == 2 and call is subject.op.call else None

    monkeypatch.setattr(gradients, "_checks_out", contradicted)
    with pytest.raises(AssertionError, match="has second derivatives"):
        check_gradients("square", device="cpu", count=10, reference=lambda x: x * x)


# ---- a caller's rule counts more than the table of domains


def drawn(name: str, count: int = 12, **rules: Any) -> list[Case]:
    subject = load_subject(name, device="cpu", arguments=rules)
    sources = (SeededSource(seed) for seed in range(count))
    return [make_case(subject.op, subject.domain, subject.reference, source, (torch.float32,)) for source in sources]


# in each of these the table makes all arguments at once, since they depend on each other
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        *(("gather", "index"), ("gather", "self"), ("native_batch_norm", "weight"), ("topk", "k"), ("unfold", "size")),
        *(("native_dropout", "p"), ("multinomial", "num_samples"), ("_foreach_add.List", "other")),
        *(("arange.start_step", "step"), ("convolution", "stride"), ("bernoulli_.float", "p")),
    ],
)
def test_a_rule_for_an_argument_that_the_table_makes_beside_others_is_heard(name: str, argument: str) -> None:
    here = object()
    seen: list[Any] = []

    def rule(build: Build, argument: Argument) -> Any:
        seen.append(build.made.get(argument.name))
        return here

    assert all(case.arguments[argument] is here for case in drawn(name, **{argument: rule}))
    unasked = [case.arguments.get(argument) for case in drawn(name)]
    assert list(map(repr, seen)) == list(map(repr, unasked)), "the rule sees what there would be without it"
    assert not any(argument in case.arguments for case in drawn(name, **{argument: lambda build, argument: OMIT}))


def test_values_are_drawn_for_tensors_of_the_shape_that_the_table_gives_them() -> None:
    for case, other in zip(drawn("scatter_add", src=values(5, 6)), drawn("scatter_add"), strict=True):
        mine, before = case.arguments["src"], other.arguments["src"]
        assert (mine.shape, mine.dtype) == (before.shape, before.dtype)
        assert bool(((mine.value >= 5) & (mine.value <= 6)).all())
    for case, other in zip(drawn("_foreach_add.List", other=boolean_tensor), drawn("_foreach_add.List"), strict=True):
        mine, before = case.arguments["other"], other.arguments["other"]
        assert [(spec.dtype, spec.shape) for spec in mine] == [(torch.bool, spec.shape) for spec in before]
    for case in drawn("_foreach_add.ScalarList", scalars=values(2, 3)):
        numbers = case.arguments["scalars"]
        assert len(numbers) == len(case.arguments["self"]) and set(numbers) <= {2, 3}


def test_values_of_a_number_lie_between_their_bounds() -> None:
    for low, high in ((0.25, 0.75), (-0.5, -0.25), (0.0, 1.0)):
        found = {case.arguments["p"] for case in drawn("native_dropout", 40, p=values(low, high))}
        assert len(found) > 3 and all(low <= p <= high for p in found)
    with pytest.raises(ValueError, match=r"topk: no whole number for 'k' lies in \[0.25, 0.75\]"):
        drawn("topk", k=values(0.25, 0.75))


def test_a_rule_decides_what_is_compared() -> None:
    def first(self: torch.Tensor, k: int, *rest: Any, **more: Any) -> Any:
        return torch.ops.aten.topk(self, 1, *rest, **more)

    # wrong for every k but one
    assert check_overload("topk", device="cpu", reference=first, arguments={"k": one_of(1)}, count=30).acceptance > 0.8
    with pytest.raises(AssertionError, match="wrong shape"):
        check_overload("topk", device="cpu", reference=first, count=30)


def test_a_rule_that_leaves_nothing_to_compare_fails() -> None:
    with pytest.raises(AssertionError, match="in 0% of the cases only"):
        check_overload(
            "gather",
            device="cpu",
            arguments={"index": constant(TensorSpec.of(torch.full((2, 2, 2, 2, 2, 2), 9)))},
            dtypes=[torch.float32],
        )
