# ruff: noqa: E501  (the goldens have the lines that are printed)
"""`opgen diff`: each kind of difference between two releases, found, told, and with the edit to make."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click
from expecttest import TestCase
from release_cases import Releases

from opgen.releases.catalogue import Catalogue
from opgen.releases.changes import Comparison, Urgency, differing
from opgen.releases.show import as_json, as_markdown, as_text

GLOW_PLAIN = """
- func: glow(Tensor self, int k=1) -> Tensor
  dispatch:
    CPU, CUDA: glow
- func: glow.out(Tensor self, int k=1, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA: glow_out
"""
GLOW = """
- func: glow(Tensor self, int k=1) -> Tensor
  structured_delegate: glow.out
- func: glow.out(Tensor self, int k=1, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: glow_out
    CUDA: glow_cuda_out
"""
GLOW_INPLACE = """
- func: glow_(Tensor(a!) self, int k=1) -> Tensor(a!)
  variants: method
  structured_delegate: glow.out
"""
FADE = """
- func: fade(Tensor self) -> Tensor
  dispatch:
    CPU, CUDA: fade
"""
OWN = {"mudnn/Ops.cpp": "namespace at::musa { Tensor MyFade(const Tensor& self) { return self; } }"}
HEADER = """
using fade_fn = void (*)(TensorIteratorBase& iter, const Scalar& k);
DECLARE_DISPATCH(fade_fn, fade_stub)
"""
REGISTERED = {"ported/Fade.cu": "namespace at::native {\nREGISTER_DISPATCH(fade_stub, &fade_kernel)\n}"}


def plain(comparison: Comparison) -> str:
    return click.unstyle(as_text(comparison))


class TestDiff(TestCase):
    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.releases = Releases(Path(folder.name))

    def old(self, functions: str, header: str = "") -> Catalogue:
        return self.releases.catalogue("2.9.1", functions, header)

    def new(self, functions: str, header: str = "") -> Catalogue:
        return self.releases.catalogue("2.15.0", functions, header)

    def compare(self, entries: str, *releases: Catalogue, **options) -> Comparison:
        return self.releases.compare(entries, *releases, **options)

    def text(self, entries: str, *releases: Catalogue, **options) -> str:
        """What is printed, without the first line and the counts."""
        lines = plain(self.compare(entries, *releases, **options)).splitlines()
        return "\n".join(lines[2:-2])

    def test_nothing_changed_is_said_in_two_lines(self):
        comparison = self.compare("- func: fade\n  dispatch: {PrivateUse1: fade}\n", self.old(FADE), self.new(FADE))
        self.assertExpectedInline(
            plain(comparison),
            """\
torch 2.9.1 -> 2.15.0

1 entry: 0 to edit, 0 to look at; overloads with a CUDA kernel: 1""",
        )

    def test_an_operator_that_is_gone_gets_a_torch_line(self):
        found = self.text(
            "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n", self.old(FADE + GLOW), self.new(GLOW), kernels=OWN
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:1:9: fade: operator gone: torch 2.15.0 has no such operator
      was:  fade(Tensor self) -> Tensor
      edit: limit the entry: `torch: "<2.15"`

coverage denominator (1)
  ops.yaml:1:9: fade: CUDA kernel gone: no such operator any more""",
        )

    def test_releases_between_tell_when_it_went(self):
        middle = [
            self.releases.catalogue(v, FADE + GLOW if v < "2.12" else GLOW) for v in ("2.11.0", "2.12.1", "2.13.0")
        ]
        comparison = self.compare(
            "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n", self.old(FADE + GLOW), *middle, self.new(GLOW)
        )
        assert comparison.between == ("2.11.0", "2.12.1", "2.13.0")
        assert '`torch: "<2.12"`' in str(comparison.findings[0].edit)

    def test_backwards_the_limit_is_a_lower_one(self):
        comparison = self.compare(
            "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n", self.new(FADE + GLOW), self.old(GLOW)
        )
        assert '`torch: ">=2.15"`' in str(comparison.findings[0].edit)

    def test_an_operator_under_a_new_name_is_recognized(self):
        renamed = FADE.replace("func: fade", "func: fade_away")
        found = self.text(
            "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n", self.old(FADE), self.new(renamed), kernels=OWN
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:1:9: fade: operator gone: torch 2.15.0 has no such operator
      from: fade(Tensor self) -> Tensor
            ^^^^
      to:   fade_away(Tensor self) -> Tensor
            ^^^^^^^^^
      edit: limit the entry: `torch: "<2.15"`, and add one for its successor: `- func: fade_away` with `torch: ">=2.15"`

coverage denominator (2)
  fade_away: CUDA kernel new: a new operator
      is:  fade_away(Tensor self) -> Tensor
      edit: add an entry: `opgen new fade_away`
  ops.yaml:1:9: fade: CUDA kernel gone: no such operator any more""",
        )

    def test_entries_limited_by_torch_are_compared_where_they_exist(self):
        entries = """
        - func: fade
          torch: "<2.15"
          dispatch: {PrivateUse1: MyFade}
        """
        assert not self.compare(entries, self.old(FADE + GLOW), self.new(GLOW)).counts()[Urgency.EDIT]
        # With the operator still there, the reader is told that the entry leaves it out.
        self.assertExpectedInline(
            self.text(entries, self.old(FADE), self.new(FADE)),
            """\
to look at (1)
  ops.yaml:2:9: fade: operator new: its entry is limited to `<2.15`, but torch 2.15.0 has the operator
      edit: add an entry for that release, or leave it to upstream's kernel or the CPU""",
        )

    def test_an_entry_for_an_operator_that_only_the_later_release_has(self):
        found = self.text(
            "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n", self.old(GLOW), self.new(FADE + GLOW), kernels=OWN
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:1:9: fade: operator new: torch 2.9.1 has no such operator
      edit: limit the entry: `torch: ">=2.15"`

coverage denominator (1)
  ops.yaml:1:9: fade: CUDA kernel new: a new operator
      is:  fade(Tensor self) -> Tensor
      edit: listed already""",
        )

    def test_a_name_that_neither_release_has(self):
        found = self.text("- func: fate\n  dispatch: {PrivateUse1: MyFade}\n", self.old(FADE), self.new(FADE))
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:1:9: fate: operator gone: neither torch 2.9.1 nor 2.15.0 has such an operator
      edit: remove the entry, or correct its name""",
        )

    def test_a_changed_signature_of_our_own_kernel_is_marked(self):
        wider = FADE.replace("(Tensor self)", "(Tensor self, bool slowly=False)")
        found = self.text(
            "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n", self.old(FADE), self.new(wider), kernels=OWN
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:1:9: fade: schema changed: MyFade needs another signature
      from: fade(Tensor self) -> Tensor
      to:   fade(Tensor self, bool slowly=False) -> Tensor
                            ^^^^^^^^^^^^^^^^^^^
      edit: an entry and a kernel for each of `torch: "<2.15"` and `torch: ">=2.15"`, or one kernel whose difference has a name in the compat header""",
        )

    def test_a_schema_that_changes_no_signature_is_only_to_look_at(self):
        found = self.text(
            "- func: glow\n- func: glow.out\n  dispatch: {PrivateUse1: MyGlow}\n",
            self.old(GLOW),
            self.new(GLOW.replace("int k=1", "int k=2")),
        )
        self.assertExpectedInline(
            found,
            """\
to look at (2)
  ops.yaml:1:9: glow: schema changed: no kernel of ours takes its arguments
      from: glow(Tensor self, int k=1) -> Tensor
                                    ^
      to:   glow(Tensor self, int k=2) -> Tensor
                                    ^
  ops.yaml:2:9: glow.out: schema changed: the C++ signature of MyGlow stays
      from: glow.out(Tensor self, int k=1, *, Tensor(a!) out) -> Tensor(a!)
                                        ^
      to:   glow.out(Tensor self, int k=2, *, Tensor(a!) out) -> Tensor(a!)
                                        ^""",
        )

    def test_a_structured_kernel_is_judged_by_its_implementation_signature(self):
        comparison = self.compare(
            "- func: glow\n- func: glow.out\n  dispatch: {PrivateUse1: MyGlow}\n",
            self.old(GLOW),
            self.new(GLOW.replace("int k=1", "float k=1")),
        )
        assert [(f.subject, f.urgency) for f in comparison.findings] == [
            ("glow.out", Urgency.EDIT),
            ("glow", Urgency.REVIEW),
        ]

    def test_a_quoted_schema_must_follow(self):
        found = self.text(
            "- func: fade(Tensor self) -> Tensor\n  dispatch: {PrivateUse1: fade}\n",
            self.old(FADE),
            self.new(FADE.replace("(Tensor self)", "(Tensor input)")),
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:1:9: fade: schema changed: the entry quotes the schema of the older release
      from: fade(Tensor self) -> Tensor
                        ^^^^
      to:   fade(Tensor input) -> Tensor
                        ^^^^^
      edit: write only the name, or the new schema in an entry of its own with `torch: ">=2.15"`""",
        )

    def test_a_symint_kernel_follows_what_others_do_not_see(self):
        entries = "- func: fade\n  dispatch: {PrivateUse1: MyFade_symint}\n"
        old = self.old(FADE.replace("(Tensor self)", "(Tensor self, SymInt k, int n)"))
        new = self.new(FADE.replace("(Tensor self)", "(Tensor self, SymInt k, SymInt n)"))
        assert self.compare(entries, old, new).counts()[Urgency.EDIT] == 1
        assert self.compare(entries.replace("_symint", ""), old, new).counts()[Urgency.EDIT] == 0

    def test_a_reused_kernel_with_another_name(self):
        found = self.text(
            "- func: fade\n  dispatch: {PrivateUse1: fade}\n",
            self.old(FADE),
            self.new(FADE.replace("CUDA: fade", "CUDA: fade_kernel")),
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:2:27: fade: kernel renamed: the entry reuses a kernel of upstream's that has another name now
      from: fade
            ^^^^
      to:   fade_kernel
            ^^^^^^^^^^^
      edit: two entries: `PrivateUse1: fade` with `torch: "<2.15"`, `PrivateUse1: fade_kernel` with `torch: ">=2.15"`""",
        )

    def test_a_reused_kernel_that_only_cuda_has_now(self):
        found = self.text(
            "- func: fade\n  dispatch: {PrivateUse1: fade}\n",
            self.old(FADE),
            self.new(FADE.replace("CPU, CUDA: fade", "CUDA: fade")),
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:2:27: fade: kernel gone: upstream's fade is in no wheel without CUDA any more
      was:  fade
      edit: write a kernel for `torch: ">=2.15"`, and limit this entry: `torch: "<2.15"`""",
        )

    def test_our_own_kernel_may_be_called_as_upstreams_was(self):
        own = {"mudnn/Ops.cpp": "namespace at::musa { Tensor fade(const Tensor& self) { return self; } }"}
        renamed = self.new(FADE.replace("CUDA: fade", "CUDA: fade_kernel"))
        assert not self.compare(
            "- func: fade\n  dispatch: {PrivateUse1: fade}\n", self.old(FADE), renamed, kernels=own
        ).findings

    def test_structured_now_with_the_out_overload_listed(self):
        found = self.text(
            "- func: glow\n  dispatch: {PrivateUse1: MyGlow}\n- func: glow.out\n  dispatch: {PrivateUse1: MyGlowOut}\n",
            self.old(GLOW_PLAIN),
            self.new(GLOW),
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:3:9: glow.out: structured now: belongs to the structured group of glow.out now: MyGlowOut would have to be an implementation class
      from: at::Tensor & K(const at::Tensor & self, int64_t k, at::Tensor & out)
            ^^^^^^^^^^^^
      to:   void K(const at::Tensor & self, int64_t k, const at::Tensor & out)
            ^^^^                                       ^^^^^^
      edit: keep the plain function: `structured: false` (means nothing where it was plain); or turn MyGlowOut into TORCH_IMPL_FUNC(MyGlowOut) for `torch: ">=2.15"`

to look at (1)
  ops.yaml:1:9: glow: structured now: belongs to the structured group of glow.out now
      edit: its kernel stays a plain function; upstream's meta function could be reused where torch is >=2.15""",
        )

    def test_structured_now_without_the_out_overload(self):
        found = self.text("- func: glow\n  dispatch: {PrivateUse1: MyGlow}\n", self.old(GLOW_PLAIN), self.new(GLOW))
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:1:9: glow: structured now: belongs to the structured group of glow.out now, which is not listed
      edit: list `- func: glow.out`, with a kernel or `structured: false`, for `torch: ">=2.15"`""",
        )

    def test_structured_no_longer(self):
        found = self.text(
            "- func: glow\n- func: glow.out\n  dispatch: {PrivateUse1: MyGlow}\n", self.old(GLOW), self.new(GLOW_PLAIN)
        )
        self.assertExpectedInline(
            found,
            """\
to edit (2)
  ops.yaml:1:9: glow: structured no longer: its group is not structured any more: nothing takes upstream's implementation
      is:  at::Tensor K(const at::Tensor & self, int64_t k)
      edit: limit this entry: `torch: "<2.15"`; for `torch: ">=2.15"` name a plain function
  ops.yaml:2:9: glow.out: structured no longer: its group is not structured any more: nothing takes its implementation class
      is:  at::Tensor & K(const at::Tensor & self, int64_t k, at::Tensor & out)
      edit: limit this entry: `torch: "<2.15"`; for `torch: ">=2.15"` name a plain function""",
        )

    def test_a_group_with_a_new_member(self):
        found = self.text("- func: glow\n- func: glow.out\n", self.old(GLOW), self.new(GLOW + GLOW_INPLACE))
        self.assertExpectedInline(
            found,
            """\
to look at (1)
  ops.yaml:2:9: glow.out: group changed: its group has more members, which are not listed
      from: glow.out, glow
      to:   glow.out, glow, glow_
                          ^^^^^^^
      edit: add `- func: glow_`: they follow glow.out without a kernel

coverage denominator (1)
  glow_: CUDA kernel new: a new operator
      is:  glow_(Tensor(a!) self, int k=1) -> Tensor(a!)
      edit: add an entry: `opgen new glow_`""",
        )

    def test_precomputed_arguments_reach_the_implementation(self):
        precomputed = GLOW.replace("structured: True", "structured: True\n  precomputed:\n  - k -> int wrapped")
        found = self.text(
            "- func: glow\n- func: glow.out\n  dispatch: {PrivateUse1: MyGlow}\n", self.old(GLOW), self.new(precomputed)
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:2:9: glow.out: meta changed: upstream's `precomputed` changed what the implementation is given
      from: void MyGlow(const at::Tensor & self, int64_t k, const at::Tensor & out)
                                                         ^
      to:   void MyGlow(const at::Tensor & self, int64_t wrapped, const at::Tensor & out)
                                                         ^^^^^^^
      edit: give TORCH_IMPL_FUNC(MyGlow) the new parameters where torch is >=2.15""",
        )
        ours = "- func: glow\n- func: glow.out\n  precomputed: none\n  dispatch: {PrivateUse1: MyGlow}\n"
        assert not self.compare(ours, self.old(GLOW), self.new(precomputed)).counts()[Urgency.EDIT]

    def test_another_base_and_another_implementation(self):
        based = GLOW.replace("structured: True", "structured: True\n  structured_inherits: TensorIteratorBase")
        found = self.text(
            "- func: glow\n- func: glow.out\n", self.old(GLOW), self.new(based.replace("glow_cuda_out", "glow_gpu_out"))
        )
        self.assertExpectedInline(
            found,
            """\
to look at (2)
  ops.yaml:2:9: glow.out: meta changed: upstream's meta class has another base
      from: none
            ^^^^
      to:   TensorIteratorBase
            ^^^^^^^^^^^^^^^^^^
  ops.yaml:2:9: glow.out: meta changed: a Legacy entry runs another implementation of upstream's
      from: glow_cuda_out
            ^^^^^^^^^^^^^
      to:   glow_gpu_out
            ^^^^^^^^^^^^
      edit: look which DispatchStubs that one reaches; `opgen check` knows those of the old one""",
        )

    def test_autogen_comes_and_goes(self):
        made = FADE.replace("  dispatch", "  autogen: fade.out\n  dispatch").replace(
            "CPU, CUDA", "CompositeExplicitAutograd"
        )
        written = made.replace("  autogen: fade.out\n", "") + (
            "- func: fade.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  dispatch:\n    CPU, CUDA: fade_out\n"
        )
        entries = "- func: fade\n  autogen: fade.out\n  dispatch: {PrivateUse1: MyFade}\n- func: fade.out\n  dispatch: {PrivateUse1: MyOut}\n"
        self.assertExpectedInline(
            self.text(entries, self.old(made), self.new(written), kernels=OWN),
            """\
to edit (1)
  ops.yaml:2:12: fade: autogen changed: fade.out is not generated from it any more
      edit: remove it from `autogen` where torch is not <2.15

to look at (1)
  ops.yaml:4:9: fade.out: autogen changed: upstream has a definition of its own where torchgen made one
      edit: look whether its kernel still does what that one does

coverage denominator (1)
  ops.yaml:4:9: fade.out: CUDA kernel new: had no CUDA kernel in torch 2.9.1
      edit: listed already""",
        )
        back = self.text(
            "- func: fade.out\n  dispatch: {PrivateUse1: MyOut}\n", self.old(written), self.new(made), kernels=OWN
        )
        self.assertExpectedInline(
            back,
            """\
to look at (1)
  ops.yaml:1:9: fade.out: autogen changed: torchgen makes it from fade now
      edit: the entry could go: its base overload serves it

coverage denominator (1)
  ops.yaml:1:9: fade.out: CUDA kernel gone: has no CUDA kernel in torch 2.15.0""",
        )

    def test_composite_kernels_come_and_go(self):
        entries = "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n"
        implicit = "- func: fade(Tensor self) -> Tensor\n"
        explicit = FADE.replace("CPU, CUDA: fade", "CompositeExplicitAutograd: fade_composite")
        now_implicit = self.text(entries, self.old(explicit), self.new(implicit), kernels=OWN)
        self.assertExpectedInline(
            now_implicit,
            """\
to look at (1)
  ops.yaml:1:9: fade: composite changed: made of other operators now, its gradient included
      from: CompositeExplicitAutograd
            ^^^^^^^^^^^^^^^^^^^^^^^^^
      to:   CompositeImplicitAutograd
            ^^^^^^^^^^^^^^^^^^^^^^^^^
      edit: remove the entry for these releases, or check its gradient: only upstream's CompositeImplicitAutograd kernel has one""",
        )
        no_longer = self.text(entries, self.old(implicit), self.new(FADE), kernels=OWN)
        self.assertExpectedInline(
            no_longer,
            """\
to look at (1)
  ops.yaml:1:9: fade: composite changed: made of other operators no longer: PyTorch has a derivative for it
      from: CompositeImplicitAutograd
            ^^^^^^^^^^^^^^^^^^^^^^^^^
      to:   none
            ^^^^
      edit: look whether a kernel of ours for Autograd is still needed

coverage denominator (1)
  ops.yaml:1:9: fade: CUDA kernel new: had no CUDA kernel in torch 2.9.1
      edit: listed already""",
        )
        now_explicit = self.text(entries, self.old(FADE), self.new(explicit), kernels=OWN)
        self.assertExpectedInline(
            now_explicit,
            """\
to look at (1)
  ops.yaml:1:9: fade: composite changed: upstream's kernel serves every device now
      from: none
            ^^^^
      to:   CompositeExplicitAutograd
            ^^^^^^^^^^^^^^^^^^^^^^^^^
      edit: an entry is needed only where its kernel is faster than upstream's

coverage denominator (1)
  ops.yaml:1:9: fade: CUDA kernel gone: has no CUDA kernel in torch 2.15.0""",
        )

    def test_dispatch_keys_that_matter_to_a_device(self):
        more = FADE + "    SparseCUDA: fade_sparse\n    MPS: fade_mps\n"
        found = self.text(
            "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n", self.old(FADE), self.new(more), kernels=OWN
        )
        self.assertExpectedInline(
            found,
            """\
to look at (1)
  ops.yaml:1:9: fade: dispatch changed: upstream has kernels for SparseCUDA now
      edit: could be registered for SparsePrivateUse1, too""",
        )

    def test_stubs_that_are_gone_moved_or_retyped(self):
        entries = "- func: fade\n  dispatch: {PrivateUse1: fade}\n"
        # A stub that no source of ours registers does not matter.
        assert not self.compare(entries, self.old(FADE, HEADER), self.new(FADE)).findings
        gone = self.text(entries, self.old(FADE, HEADER), self.new(FADE), kernels=REGISTERED)
        self.assertExpectedInline(
            gone,
            """\
to edit (1)
  kernels/ported/Fade.cu:2:1: fade_stub: stub gone: no header of torch 2.15.0 declares it
      was:  fade_stub: void (TensorIteratorBase&, const Scalar&) in <ATen/native/Some.h>
      edit: register it only where torch is <2.15""",
        )
        retyped = self.text(
            entries,
            self.old(FADE, HEADER),
            self.new(FADE, HEADER.replace("const Scalar&", "double")),
            kernels=REGISTERED,
        )
        self.assertExpectedInline(
            retyped,
            """\
to edit (1)
  kernels/ported/Fade.cu:2:1: fade_stub: stub type changed: its kernels must have another type
      from: void (TensorIteratorBase&, const Scalar&)
                                       ^^^^^^^^^^^^^
      to:   void (TensorIteratorBase&, double)
                                       ^^^^^^
      edit: give the kernel the new type where torch is >=2.15: name the difference in the compat header""",
        )
        # A parameter's name and the place of spaces are not part of the type.
        same = self.new(FADE, HEADER.replace("Base& iter, const Scalar& k", "Base &it, const Scalar &"))
        assert not self.compare(entries, self.old(FADE, HEADER), same, kernels=REGISTERED).findings

    def test_a_stub_in_another_header(self):
        moved = self.releases.catalogue("2.15.0", FADE, HEADER, "Other.h")
        found = self.text(
            "- func: fade\n  dispatch: {PrivateUse1: fade}\n", self.old(FADE, HEADER), moved, kernels=REGISTERED
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  kernels/ported/Fade.cu:2:1: fade_stub: stub moved: another header declares it
      from: ATen/native/Some.h
                        ^^^^
      to:   ATen/native/Other.h
                        ^^^^^
      edit: include <ATen/native/Other.h> where __has_include finds it, else <ATen/native/Some.h>""",
        )

    def test_legacy_entries_that_relied_on_a_stub_are_named(self):
        header = HEADER.replace("fade_stub", "lerp_kernel_scalar_weight")
        lerp = "- func: lerp.Scalar_out(Tensor self, Tensor end, Scalar weight, *, Tensor(a!) out) -> Tensor(a!)\n"
        lerp += "  structured: True\n  dispatch:\n    CPU, CUDA: lerp_Scalar\n"
        lerp += "- func: lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor\n"
        lerp += "  structured_delegate: lerp.Scalar_out\n"
        registered = {"ported/Lerp.cu": REGISTERED["ported/Fade.cu"].replace("fade_stub", "lerp_kernel_scalar_weight")}
        comparison = self.compare(
            "- func: lerp.Scalar_out\n", self.old(lerp, header), self.new(lerp), kernels=registered
        )
        assert "Legacy entries that relied on it: lerp.Scalar_out" in str(comparison.findings[0].edit)

    def test_a_reused_kernel_that_is_an_implementation_class_now(self):
        structured = GLOW.replace("CPU: glow_out\n    CUDA: glow_cuda_out", "CPU, CUDA: glow_out")
        found = self.text(
            "- func: glow.out\n  dispatch: {PrivateUse1: glow_out}\n", self.old(GLOW_PLAIN), self.new(structured)
        )
        self.assertExpectedInline(
            found,
            """\
to edit (1)
  ops.yaml:2:27: glow.out: structured now: belongs to the structured group of glow.out now: upstream's glow_out is no plain function any more
      edit: for `torch: ">=2.15"` an entry without `dispatch` (upstream's implementation), or with your kernel""",
        )

    def test_a_group_that_another_overload_leads(self):
        comparison = self.compare(
            "- func: glow\n- func: glow.out\n", self.old(GLOW), self.new(GLOW.replace("glow.out", "glow.result"))
        )
        edits = {f.subject: str(f.edit) for f in comparison.findings if f.urgency is Urgency.EDIT}
        assert "`- func: glow.result`" in edits["glow"]
        assert "`- func: glow.result`" in edits["glow.out"]

    def test_the_denominator_moves(self):
        comparison = self.compare(
            "- func: glow.out\n- func: glow\n",
            self.old(FADE + GLOW_PLAIN),
            self.new(
                GLOW_PLAIN
                + """
- func: shine(Tensor self) -> Tensor
  dispatch:
    CUDA: shine
- func: cudnn_shine(Tensor self) -> Tensor
  dispatch:
    CUDA: cudnn_shine
- func: miopen_shine(Tensor self) -> Tensor
  dispatch:
    CUDA: miopen_shine
"""
            ),
            vendor_only={"cudnn_shine": "cuDNN", "miopen_glow": "MIOpen"},
        )
        assert comparison.denominators == (3, 4)
        self.assertExpectedInline(
            plain(comparison),
            """\
torch 2.9.1 -> 2.15.0

coverage denominator (3)
  miopen_shine: CUDA kernel new: a new operator
      is:  miopen_shine(Tensor self) -> Tensor
      edit: bound to MIOpen by its name: leave it out of the denominator (opgen/data/vendor_only.tsv)?
  shine: CUDA kernel new: a new operator
      is:  shine(Tensor self) -> Tensor
      edit: add an entry: `opgen new shine`
  fade: CUDA kernel gone: no such operator any more

2 entries: 0 to edit, 0 to look at; overloads with a CUDA kernel: 3 -> 4""",
        )

    def test_the_worst_comes_first(self):
        comparison = self.compare(
            "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n- func: glow\n- func: glow.out\n",
            self.old(FADE + GLOW),
            self.new(
                GLOW.replace("int k=1", "int k=2")
                + "\n- func: shine(Tensor self) -> Tensor\n  dispatch:\n    CUDA: shine\n"
            ),
        )
        assert [f.urgency for f in comparison.findings] == sorted(
            (f.urgency for f in comparison.findings), key=list(Urgency).index
        )
        assert {f.urgency for f in comparison.findings} == set(Urgency)

    def test_json_says_all_that_the_text_says(self):
        wider = FADE.replace("(Tensor self)", "(Tensor self, bool slowly=False)")
        comparison = self.compare(
            "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n", self.old(FADE), self.new(wider), kernels=OWN
        )
        document = json.loads(as_json(comparison))
        assert document["counts"] == {"edit": 1, "review": 0, "news": 0}
        self.assertExpectedInline(
            json.dumps(document["findings"], indent=1),
            """\
[
 {
  "urgency": "edit",
  "change": "schema changed",
  "subject": "fade",
  "path": "ops.yaml",
  "line": 1,
  "column": 9,
  "message": "MyFade needs another signature",
  "edit": "an entry and a kernel for each of `torch: \\"<2.15\\"` and `torch: \\">=2.15\\"`, or one kernel whose difference has a name in the compat header",
  "from": "fade(Tensor self) -> Tensor",
  "to": "fade(Tensor self, bool slowly=False) -> Tensor"
 }
]""",
        )

    def test_markdown_strikes_out_and_escapes(self):
        wider = FADE.replace("(Tensor self)", "(Tensor(a) self)").replace("-> Tensor", "-> Tensor(a)")
        comparison = self.compare(
            "- func: fade\n  dispatch: {PrivateUse1: MyFade}\n", self.old(FADE), self.new(wider), kernels=OWN
        )
        self.assertExpectedInline(
            as_markdown(comparison),
            """\
## torch 2.9.1 -> 2.15.0

1 entry: 0 to edit, 1 to look at; overloads with a CUDA kernel: 1

### To look at (1)

| operator | change | what | edit | where |
|---|---|---|---|---|
| <code>fade</code> | schema changed | the C++ signature of MyFade stays<br><code>fade(Tensor self) -&gt; Tensor</code><br><code>fade(Tensor<ins>(a)</ins> self) -&gt; Tensor<ins>(a)</ins></code> |  | ops.yaml:1 |
""",
        )


def test_what_differs_is_told_by_word():
    before, after = "f(int a, int b)", "f(int a, SymInt b, bool c)"
    old, new = differing(before, after)
    assert [before[a:b] for a, b in old] == ["int"]
    assert [after[a:b] for a, b in new] == ["SymInt", ", bool c"]
    assert differing("same", "same") == ([], [])


def test_a_catalogue_survives_json(tmp_path):
    catalogue = Releases(tmp_path).catalogue("2.9.1", GLOW + FADE, HEADER)
    assert Catalogue.from_json(json.loads(json.dumps(catalogue.as_json()))) == catalogue
