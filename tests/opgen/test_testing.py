"""The property tests' own tests: faults are found, cases are varied, reports can be run.

A fault is planted in the reference: the CPU then plays the device that is right, and the two differ all the same.
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from opgen.testing import check_overload
from opgen.testing.build import Domain
from opgen.testing.case import Case, TensorSpec
from opgen.testing.compare import tolerance
from opgen.testing.domains import _table, domain_of
from opgen.testing.examine import Ending, examine
from opgen.testing.laws import check as check_law
from opgen.testing.listing import Listed, listed_overloads
from opgen.testing.overload import functional_of, load_overload, split_name
from opgen.testing.repro import script
from opgen.testing.rules import one_of, values
from opgen.testing.source import SeededSource
from opgen.testing.strategies import accepted_dtypes, make_case
from opgen.testing.subject import Subject
from opgen.testing.tensors import lay_out

aten = torch.ops.aten


def in_place(function):
    return lambda self, *rest, **more: self.copy_(function(self, *rest, **more))


def into_out(function):
    """An out= form that resizes and casts properly around ``function``."""

    def call(*rest, out, **more):
        result = function(*rest, **more)
        if not torch.can_cast(result.dtype, out.dtype):
            raise RuntimeError("cannot cast")
        return out.resize_(result.shape).copy_(result)

    return call


def out_without_resize(*rest, out, **more):
    out.view(-1)[: out.numel()].fill_(0)
    return out


def changes_its_input(self, other, alpha=1):
    result = aten.add(self, other, alpha=alpha)
    if self.numel() and not self.is_conj() and 0 not in self.stride():
        self.view(-1)[0] = 1 if self.is_contiguous() else self.view(-1)[0]
    return result


def writes_between_elements(self, value):
    self.untyped_storage().fill_(0)
    return self.fill_(value)


def forgets_the_last(self):
    result = aten.exp.default(self).clone()
    if result.numel() > 32:
        result.view(-1)[-1] = 0
    return result


def counts_padding(
    self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    return aten.avg_pool2d(self, kernel_size, stride, padding, ceil_mode, True, divisor_override)


def forgets_running_statistics(x, weight, bias, mean, var, *rest):
    kept = [None if statistic is None else statistic.clone() for statistic in (mean, var)]
    return aten.native_batch_norm(x, weight, bias, *kept, *rest)


FAULTS = {
    "ignored alpha": ("add.Tensor", lambda self, other, alpha=1: aten.add(self, other)),
    "swapped operands": ("sub.Tensor", lambda self, other, alpha=1: aten.sub(other, self, alpha=alpha)),
    "swapped matrices": ("mm", lambda self, mat2: aten.mm(mat2.t(), self.t()).t().contiguous() * 2),
    "ignored beta": ("addmm", lambda self, a, b, beta=1, alpha=1: aten.addmm(self, a, b, alpha=alpha)),
    "wrong axis": ("cumsum", lambda self, dim, dtype=None: aten.cumsum(self, 0, dtype=dtype)),
    "negative dim": ("argmax", lambda self, dim=None, keepdim=False: aten.argmax(self, dim and abs(dim), keepdim)),
    "ignored keepdim": ("amax", lambda self, dim=(), keepdim=False: aten.amax(self, dim)),
    "ignored dtype": ("sum.dim_IntList", lambda self, dim, keepdim=False, dtype=None: aten.sum(self, dim, keepdim)),
    "ignored correction": (
        "var.correction",
        lambda self, dim=None, correction=None, keepdim=False: aten.var(self, dim, keepdim=keepdim),
    ),
    "no type promotion": ("mul.Tensor", lambda self, other: aten.mul(self, other).to(self.dtype)),
    "wrong result dtype": ("eq.Tensor", lambda self, other: aten.eq(self, other).to(torch.uint8)),
    "nan not propagated": ("maximum", lambda self, other: aten.where(self > other, self, other)),
    "truncates instead of rounding": ("round", lambda self: aten.trunc(self)),
    "off by one": ("tril", lambda self, diagonal=0: aten.tril(self, diagonal + 1)),
    "unstable order": (
        "sort.stable",
        lambda self, stable, dim=-1, descending=False: aten.sort(self, dim, True),
    ),
    "not in place": ("add_.Tensor", lambda self, other, alpha=1: aten.add(self, other, alpha=alpha)),
    "in place, wrong value": ("mul_.Tensor", in_place(lambda self, other: self * other + 1)),
    "out not resized": ("exp.out", out_without_resize),
    "out of a wrong value": ("sub.out", into_out(lambda self, other, alpha=1: aten.add(self, other, alpha=alpha))),
    "out not cast": ("neg.out", lambda self, out: aten.neg(self).to(torch.float32)),
    "input changed": ("add.Tensor", changes_its_input),
    "writes between elements": ("fill_.Scalar", writes_between_elements),
    "copy instead of view": ("as_strided", lambda *arguments: aten.as_strided(*arguments).clone()),
    "wrong offset": (
        "as_strided",
        lambda self, size, stride, offset=None: aten.as_strided(self, size, stride, 0),
    ),
    "error not raised": (
        "add_.Tensor",
        lambda self, other, alpha=1: self.copy_(aten.add(self.clone(), other, alpha=alpha)),
    ),
    "wrong strides": ("abs", lambda self: aten.abs(self).clone(memory_format=torch.contiguous_format)),
    "tail of a block": ("exp", forgets_the_last),
    "index ignored": ("gather", lambda self, dim, index, sparse_grad=False: aten.gather(self, dim, index * 0)),
    "duplicates lost": ("scatter_add", lambda self, dim, index, src: aten.scatter(self, dim, index, src)),
    "accumulate ignored": (
        "index_put",
        lambda self, indices, values, accumulate=False: aten.index_put(self, indices, values),
    ),
    "groups ignored": (
        "convolution",
        lambda *a: torch.zeros_like(aten.convolution(*a)) if a[-1] > 1 else aten.convolution(*a),
    ),
    "padding counted": ("avg_pool2d", counts_padding),
    "ignore_index counted": (
        "nll_loss_forward",
        lambda self, target, weight, reduction, ignore: aten.nll_loss_forward(self, target, weight, reduction, -100),
    ),
    "running statistics not updated": ("native_batch_norm", forgets_running_statistics),
    "wrong shape": ("cat", lambda tensors, dim=0: aten.cat(tensors, dim).unsqueeze(0)),
    "wrong eye": ("eye", lambda n, **options: torch.ones(n, n, dtype=options.get("dtype"))),
    "one result too few": ("max.dim", lambda self, dim, keepdim=False: aten.amax(self, [dim], keepdim)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found(fault: str) -> None:
    op, reference = FAULTS[fault]
    with pytest.raises(AssertionError, match="To reproduce"):
        check_overload(op, reference=reference, device="cpu", count=60, shrink=False)


def test_reference_whose_values_depend_on_the_layout_is_overruled() -> None:
    def takes_all_for_dense(self: Tensor) -> Tensor:
        return aten.exp(self) if self.is_contiguous() else aten.exp(self) + 1

    check_overload("exp", reference=takes_all_for_dense, device="cpu", count=60)


def test_silent_fallback_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"aten::exp": 0}

    def count() -> dict[str, int]:
        counts["aten::exp"] += 1
        return dict(counts)

    monkeypatch.setattr(torch.cpu, "fallback_counts", count, raising=False)
    with pytest.raises(AssertionError, match=r"goes through the CPU fallback: \{'aten::exp': 1\}"):
        check_overload("exp", device="cpu", count=5)
    check_overload("exp", device="cpu", count=5, fallback=True)


@pytest.mark.parametrize(
    ("name", "wrong", "text"),
    [
        ("uniform_", lambda self, *a, **k: self.fill_(0.5), "same numbers from different seeds"),
        ("uniform_", lambda self, *a, **k: aten.uniform_(self, 0.0, 4.0, **k), "outside its support"),
        ("normal_", lambda self, *a, **k: aten.normal_(self, 3.0, 1.0, **k), "standard errors off"),
        ("normal_", lambda self, mean=0, std=1, **k: aten.normal_(self, mean, std * 2, **k), "variance"),
        ("randperm", lambda n, **k: torch.zeros(n, dtype=torch.int64), "outside its support"),
    ],
)
def test_wrong_law_is_found(name: str, wrong, text: str) -> None:
    op = load_overload(name)
    domain = domain_of(op)
    case = make_case(op, domain, op.call, SeededSource(3), (torch.float32,))
    assert check_law(case, domain.law, "cpu") == []
    problems = check_law(Case(replace(op, call=wrong), case.arguments), domain.law, "cpu")
    assert any(text in problem.text for problem in problems), problems


def test_cases_are_varied() -> None:
    op = load_overload("add.Tensor")
    cases = [make_case(op, domain_of(op), op.call, SeededSource(seed), (torch.float32,)) for seed in range(600)]
    tensors = [spec for case in cases for _, spec in case.tensors()]
    pairs = [(case.arguments["self"], case.arguments["other"]) for case in cases]
    seen = {
        "0-d": any(spec.shape == () for spec in tensors),
        "empty": any(0 in spec.shape for spec in tensors),
        "size-1 dims with odd strides": any(1 in spec.shape and not _ordered(spec) for spec in tensors),
        "transposed": any(len(spec.shape) == 2 and spec.strides[0] == 1 < spec.strides[1] for spec in tensors),
        "sliced": any(spec.strides and spec.strides[-1] == 2 for spec in tensors),
        "expanded": any(0 in spec.strides and spec.value.numel() > 1 for spec in tensors),
        "offset": any(spec.offset for spec in tensors),
        "channels_last": any(
            spec.value.dim() == 4
            and spec.value.is_contiguous(memory_format=torch.channels_last)
            and not spec.value.is_contiguous()
            for spec in tensors
        ),
        "larger than a warp": any(max(spec.shape, default=0) > 32 for spec in tensors),
        "broadcast": any(a.shape != b.shape for a, b in pairs),
        "mixed dtypes": any(a.dtype != b.dtype for a, b in pairs),
        "CPU scalar": any(spec.on_cpu for spec in tensors),
        "CPU scalar on the left": any(a.on_cpu for a, _ in pairs),
        "negated": any(spec.negated for spec in tensors),
        "the same tensor twice": any(a is b for a, b in pairs),
        "nan": any(bool(spec.value.isnan().any()) for spec in tensors),
        "infinity": any(bool(spec.value.isinf().any()) for spec in tensors),
    }
    assert all(seen.values()), [name for name, was in seen.items() if not was]


def test_complex_cases_have_conjugated_views_and_rank_5_has_channels_last() -> None:
    op = load_overload("mul.Tensor")
    cases = [make_case(op, domain_of(op), op.call, SeededSource(seed), (torch.complex64,)) for seed in range(200)]
    assert any(spec.conjugated for case in cases for _, spec in case.tensors())
    specs = [lay_out(SeededSource(seed), torch.rand(2, 3, 2, 2, 2)) for seed in range(100)]
    assert any(not _ordered(spec) and spec.value.is_contiguous(memory_format=torch.channels_last_3d) for spec in specs)


def _ordered(spec: TensorSpec) -> bool:
    return spec.strides == torch.empty(spec.shape).stride()


def test_out_tensors_are_varied() -> None:
    op = load_overload("exp.out")
    cases = [make_case(op, domain_of(op), op.call, SeededSource(seed), (torch.float32,)) for seed in range(200)]
    outs = [(case.arguments["self"], case.arguments["out"]) for case in cases]
    assert any(out.shape == (0,) != x.shape for x, out in outs), "empty"
    assert any(out.shape == (*x.shape, 2) for x, out in outs), "wrong shape"
    assert any(out.dtype == torch.float64 for _, out in outs), "castable"
    assert any(out.dtype == torch.int64 for _, out in outs), "not castable"
    assert any(out.offset or not _ordered(out) for _, out in outs), "strided"


@pytest.mark.parametrize("seed", range(40))
def test_layouts_hold_the_values(seed: int) -> None:
    source = SeededSource(seed)
    tensor = torch.arange(48.0).reshape(2, 3, 1, 8)
    spec = lay_out(source, tensor, expand=False)
    assert torch.equal(spec.value, tensor)
    assert spec.base.is_contiguous() and spec.base.dim() == 1


def test_report_holds_a_script_that_runs() -> None:
    op = load_overload("sub.Tensor")
    arguments = {"self": TensorSpec.of(torch.tensor([[1.0, float("nan")]])), "other": TensorSpec.of(torch.ones(2, 1))}
    text = script(Case(op, arguments), "cpu")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "repro", "exec"), {})
    assert "result 0: torch.float32[2, 2] strides (2, 1)\nresult 0: tensor([[0., nan],\n" in printed.getvalue()


def test_script_keeps_the_geometry() -> None:
    spec = TensorSpec(torch.arange(7.0), (2, 2), (1, 3), 2)
    text = script(Case(load_overload("neg"), {"self": spec}), "cpu")
    assert "as_strided([2, 2], [1, 3], 2)" in text


def test_failure_shrinks_to_something_readable() -> None:
    with pytest.raises(AssertionError) as failure:
        check_overload("add.Tensor", reference=lambda self, other, alpha=1: self + other, device="cpu", count=60)
    described = str(failure.value).split("in the case\n")[1].splitlines()[0]
    assert len(described) < 160, described


def test_vacuous_check_fails() -> None:
    def picky(x: Tensor) -> Tensor:
        if x.dim() != 4:
            raise ValueError("four dims, please")
        return x.clone()

    library = torch.library.Library("opgen_testing_picky", "DEF")
    library.define("copy(Tensor x) -> Tensor")
    library.impl("copy", picky, "CPU")
    op = load_overload("opgen_testing_picky::copy")
    case = Case(op, {"x": TensorSpec.of(torch.ones(2))})
    assert examine(case, Subject(op, Domain(), op.call, "cpu", False)).ending is Ending.REFUSED
    with pytest.raises(AssertionError, match=r"::copy: results were compared in \d+% of the cases only"):
        check_overload("opgen_testing_picky::copy", device="cpu", dtypes=(torch.float32,), count=40)


def test_reference_that_refuses_everything_fails() -> None:
    def refuses(*arguments, **keywords):
        raise RuntimeError("no")

    with pytest.raises(AssertionError, match="the reference refuses every case"):
        check_overload("neg", reference=refuses, device="cpu")


def test_own_operator_in_three_lines() -> None:
    library = torch.library.Library("opgen_testing", "DEF")
    library.define("scale(Tensor x, float factor, str mode='times') -> Tensor")
    library.impl("scale", lambda x, factor, mode="times": x * factor if mode == "times" else x / factor, "CPU")
    plain = {"times": torch.mul, "by": torch.div}

    tally = check_overload(
        "opgen_testing::scale",
        reference=lambda x, factor, mode="times": plain[mode](x, factor),
        arguments={"mode": one_of("times", "by"), "factor": one_of(0.5, 2.0), "x": values(-1, 1)},
        device="cpu",
    )
    assert tally.acceptance > 0.9


def test_unknown_overload_is_named() -> None:
    with pytest.raises(LookupError, match=r"no operator overload ad\.Tensor"):
        check_overload("ad.Tensor", device="cpu")


def test_dtypes_are_those_the_cpu_takes() -> None:
    def taken(name: str) -> tuple[torch.dtype, ...]:
        op = load_overload(name)
        return accepted_dtypes(op, domain_of(op), op.call)

    assert torch.bool not in taken("sub.Tensor")
    assert torch.complex64 in taken("mul.Tensor") and torch.complex64 not in taken("maximum")
    assert not any(dtype.is_floating_point for dtype in taken("bitwise_and.Tensor"))


def test_every_name_in_the_domain_table_is_an_operator() -> None:
    known = {split_name(name)[1] for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")}
    gone = {"cholesky"}  # torch 2.14 removed it
    bases = {name.partition(".")[0] for name in _table() if "::" not in name} - gone
    assert not {name for name in bases if name not in known and f"{name}_" not in known}


def test_tolerance_grows_with_the_terms_and_integers_are_exact() -> None:
    assert tolerance(torch.int64) == (0.0, 0.0)
    assert tolerance(torch.float32, 100)[0] == pytest.approx(10 * tolerance(torch.float32)[0])


def test_functional_form_of_an_out_overload() -> None:
    assert functional_of(load_overload("add.out")).name == "aten::add.Tensor"
    assert functional_of(load_overload("max.dim_max")).name == "aten::max.dim"


def test_listing_reads_dense_entries_of_this_torch() -> None:
    text = """
- func: add.Tensor
  structured_delegate: add.out
- func: aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)
  dispatch:
    PrivateUse1, SparsePrivateUse1: AminMax
- func: only_sparse
  dispatch: {SparsePrivateUse1: OnlySparse}
- func: sparse_too
  dispatch: {SparsePrivateUse1: SparseToo}
- func: sparse_too.out
  dispatch: {PrivateUse1: Dense, SparsePrivateUse1: cpu_fallback}
- func: old_op
  torch: "<2.10"
  dispatch: {PrivateUse1: OldOp}
- func: slow
  dispatch: {PrivateUse1: cpu_fallback}
  autogen: slow.out, slow_
- func: inverse
  dispatch: {PrivateUse1: HostInverse}
- func: solve
- func: solve.out
  dispatch: {PrivateUse1: cpu_fallback}
- func: asin
  dispatch: {SparsePrivateUse1: asin_sparse}
- func: asin.out
  dispatch: {SparsePrivateUse1: asin_sparse_out}
- func: acos.out
  structured: false
  dispatch: {SparsePrivateUse1: Acos}
- func: musa::rope(Tensor q) -> Tensor
  dispatch: {PrivateUse1: Rope}
"""
    assert listed_overloads(text, "2.13.0+cpu", "TORCH_IMPL_FUNC(HostInverse)(const Tensor& self) {}") == (
        Listed("add.Tensor", False),
        Listed("aminmax", False),
        Listed("sparse_too.out", False),
        Listed("slow", True),
        Listed("slow.out", True),
        Listed("slow_", True),
        Listed("inverse", True),
        Listed("solve", True),
        Listed("solve.out", True),
        Listed("asin.out", False),
        Listed("musa::rope", False),
        Listed("sparse_too", False, certain=False),
        Listed("asin", False, certain=False),
    )
