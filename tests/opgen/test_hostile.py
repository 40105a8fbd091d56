# ruff: noqa: E501  (the golden has lines as they are printed)
"""All that is wrong comes out in one run, in the order of the text, with exit status 1 and nothing written.

`hostile/` has one of each fault. Run with EXPECTTEST_ACCEPT=1 to accept a deliberate change, and read the result.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from expecttest import TestCase

from opgen.upstream import find_torch

ROOT = Path(__file__).resolve().parents[2]


class TestHostile(TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree(Path(__file__).parent / "hostile", self.folder / "yaml")
        (self.folder / "yaml" / "ops.yaml").rename(self.folder / "yaml" / "musa_functions.yaml")
        (self.folder / "yaml" / "kernels").rename(self.folder / "kernels")

    def run_command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if k != "OPGEN_DIAGNOSTICS"}
        return subprocess.run(
            [sys.executable, "-m", "opgen.cli", *arguments],
            cwd=self.folder,
            env={**environment, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_everything_is_said_at_once(self) -> None:
        done = self.run_command("gen")
        assert (done.returncode, done.stdout) == (1, "")
        assert not (self.folder / "generated").exists()
        self.assertExpectedInline(
            done.stderr.replace(find_torch().version, "<VERSION>"),
            """\
kernels/mudnn/A.cpp:5:1: error: kernel 'MusaCumsum' has not the signature that 'cumsum.out' requires: parameter 3 is 'ScalarType', not 'optional<ScalarType>'
    written:  TORCH_IMPL_FUNC(MusaCumsum) (const Tensor& self, int64_t dim,
              ScalarType dtype, const Tensor& result)
              ^^^^^^^^^^^^^^^^
    required: TORCH_IMPL_FUNC(MusaCumsum)(const at::Tensor & self, int64_t dim,
              ::std::optional<at::ScalarType> dtype, const at::Tensor & out)
              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
kernels/mudnn/A.cpp:8:1: error: meta function 'cumprod' has not the signature that 'cumprod.out' requires: parameter 3, 'optional<ScalarType>', is missing
    written:  TORCH_META_FUNC(cumprod)(const Tensor& self, int64_t dim)
                                                                      ^
    required: TORCH_META_FUNC(cumprod)(const at::Tensor & self, int64_t dim,
              ::std::optional<at::ScalarType> dtype)
              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
kernels/mudnn/A.cpp:12:1: error: kernel 'IsNan' has not the signature that 'isnan' requires: it returns 'bool', not 'Tensor'
    written:  bool IsNan(const Tensor& self)
              ^^^^
    required: at::Tensor IsNan(const at::Tensor & self)
              ^^^^^^^^^^
kernels/mudnn/A.cpp:13:1: error: kernel 'Relu' has a default argument
    Tensor Relu(const Tensor& self = {})
                ^^^^^^^^^^^^^^^^^^^^^^^
    leave it out: defaults are in the operator's schema
kernels/mudnn/B.cpp:2:1: error: kernel 'Relu' is defined twice
    the other definition is at kernels/mudnn/A.cpp:13
kernels/ported/Lerp2.cu:3:1: error: DispatchStub 'lerp_kernel_scalar_weight' has two kernels
    the other one is registered at kernels/ported/Lerp.cu:3
yaml/musa_functions.yaml:2:3: error: an entry must be a mapping, not a string
    write `- func: tril.out`
yaml/musa_functions.yaml:3:3: error: entry without 'func'
    name the operator: `- func: tril.out`
yaml/musa_functions.yaml:4:9: error: 'func' must be an operator name, not a list
yaml/musa_functions.yaml:5:9: error: 'not an operator' is not an operator name
    write `name`, `name.overload` or the whole schema, `name.overload(Tensor self) -> Tensor`
yaml/musa_functions.yaml:7:3: error: unknown key 'dispach'
    did you mean 'dispatch'?
yaml/musa_functions.yaml:8:9: error: duplicate entry for 'nonzero'
    the first one is at yaml/musa_functions.yaml:6:9; merge the two
yaml/musa_functions.yaml:10:9: error: PyTorch <VERSION> has no operator 'trill'
    did you mean 'tril'?
yaml/musa_functions.yaml:13:15: error: 'structured' must be true or false, not a string
yaml/musa_functions.yaml:14:17: error: unknown device_check 'nocheck'
    did you mean 'NoCheck'?
yaml/musa_functions.yaml:15:17: error: 'device_guard' must be true or false, not an integer
yaml/musa_functions.yaml:16:10: error: 'torch' must be a version specifier, not a number
    quote a version specifier: torch: ">=2.11,<2.13"
yaml/musa_functions.yaml:17:14: error: unknown dispatch key 'PrivateUse'
    did you mean 'PrivateUse1'?
yaml/musa_functions.yaml:17:49: error: 'a b' is not a kernel name
    a kernel name is a C++ identifier
yaml/musa_functions.yaml:19:13: error: 'dispatch' must be a mapping from dispatch keys to kernel names (PrivateUse1: Kernel), not a string
yaml/musa_functions.yaml:21:27: error: 'bernoulli_.float' cannot go through the CPU: it is random: the CPU has no use for the device's generator
    name a kernel and define it in namespace at::musa:
    at::Tensor & Kernel(at::Tensor & self, double p, ::std::optional<at::Generator> generator)
yaml/musa_functions.yaml:23:27: error: 'view_as_complex' cannot go through the CPU: it is a view: a copy on the CPU would not alias its input
    name a kernel and define it in namespace at::musa:
    at::Tensor Kernel(const at::Tensor & self)
yaml/musa_functions.yaml:24:36: error: the schema of 'view_as_real' is not the one of PyTorch <VERSION>: ',' instead of ')'
    written:  view_as_real(Tensor(a) self, int dim) -> Tensor(a)
                                         ^
    expected: view_as_real(Tensor(a) self) -> Tensor(a)
                                         ^
yaml/musa_functions.yaml:26:9: error: 'erfinv' belongs to the structured group of 'erfinv.out', which is not listed
    add `- func: erfinv.out`: the group's other overloads are made from it
yaml/musa_functions.yaml:27:9: error: 'add.Tensor' needs a kernel for PrivateUse1: its out overload says 'structured: false'
    add `dispatch: {PrivateUse1: Kernel}` and define
    at::Tensor Kernel(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha)
yaml/musa_functions.yaml:32:24: error: 'tril' delegates to 'tril.out', not to 'triu.out'
    write 'structured_delegate: tril.out', 'none', or leave it out
yaml/musa_functions.yaml:34:24: error: 'structured_inherits' belongs to the out overload 'tril.out'
    move it there
yaml/musa_functions.yaml:37:7: error: 'precomputed' replaces 'diagonl', which is no argument of tril.out
    did you mean 'diagonal'?
yaml/musa_functions.yaml:40:9: error: Legacy entry 'lerp.Tensor_out' needs a kernel on DispatchStub 'lerp_kernel_tensor_weight' (<ATen/native/Lerp.h>), which no source registers
    register one in namespace at::native: REGISTER_MUSA_DISPATCH(lerp_kernel_tensor_weight, &your_kernel)
    (REGISTER_DISPATCH in a .cu file), or name an implementation: dispatch: {PrivateUse1: Kernel}
yaml/musa_functions.yaml:42:17: error: 'cumsum.out' is structured: its generated class always guards the device
    remove 'device_guard', or make the overload unstructured
yaml/musa_functions.yaml:48:27: error: no source defines kernel 'NonzeroOut' for 'nonzero.out'
    did you mean 'Nonzero' (kernels/mudnn/A.cpp:3)? Otherwise
    define it in namespace at::musa:
    at::Tensor & NonzeroOut(const at::Tensor & self, at::Tensor & out)
yaml/musa_functions.yaml:50:27: error: kernel 'nonzero_static_cuda' of 'nonzero_static' is upstream's for CUDA only: the installed libtorch does not export it
    name a kernel of your own and define it in namespace at::musa:
    at::Tensor Kernel(const at::Tensor & self, int64_t size, int64_t fill_value)
yaml/musa_functions.yaml:52:9: error: unknown tag 'pointwyse'
    did you mean 'pointwise'?
yaml/musa_functions.yaml:53:12: error: 'isnan.outt' is not generated from 'isnan'
    did you mean 'isnan.out'?
yaml/musa_functions.yaml:54:39: error: 'isnan' is PyTorch's operator: its kernel for CPU is PyTorch's, too
    an entry may register for PrivateUse1, QuantizedPrivateUse1, SparsePrivateUse1, SparseCsrPrivateUse1, NestedTensorPrivateUse1, AutogradPrivateUse1
yaml/musa_functions.yaml:56:17: error: foreach operators may have tensors on several devices: no device check is possible
    remove 'device_check'
yaml/musa_functions.yaml:59:27: error: kernel name 'abs_symint' promises SymInt arguments, but the schema of 'abs' has none
    leave '_symint' out of the name
yaml/musa_functions.yaml:61:27: warning: kernel 'sum' of 'sum' serves every device already: the entry changes nothing
    remove the entry; upstream registers sum as CompositeExplicitAutograd
yaml/musa_functions.yaml:62:20: error: unknown type 'Tensr'
    musa::rope(Tensr q, int dim=one, *, float base=1e4) -> Tensor
               ^^^^^
    did you mean 'Tensor'?
yaml/musa_functions.yaml:62:37: error: argument 'dim' of type int cannot have the default 'one'
    musa::rope(Tensr q, int dim=one, *, float base=1e4) -> Tensor
                                ^^^
    write a decimal integer of 64 bits
yaml/musa_functions.yaml:64:9: error: not a schema: 'noise' is random and lacks the tag nondeterministic_seeded
    add `tags: nondeterministic_seeded`
yaml/musa_functions.yaml:66:9: error: 'musa::swish' defines a new operator and needs its whole schema
    write `- func: musa::swish(Tensor self, ...) -> Tensor`; operators of PyTorch have no namespace here
yaml/musa_functions.yaml:69:17: warning: 'device_check: NoCheck' on 'relu' changes nothing
    it is the default here: remove the key
yaml/musa_functions.yaml:70:10: warning: 'torch: >=2.9' on 'relu' excludes no supported release
    supported are 2.9.1 to 2.15.0: remove the key
41 errors, 3 warnings; nothing was written
""",
        )

    def test_every_verb_that_reads_the_list_says_the_same_of_its_entries(self) -> None:
        said = {verb: self.run_command(verb) for verb in ("check", "list", "coverage")}
        assert {verb: done.returncode for verb, done in said.items()} == dict.fromkeys(said, 1)
        assert said["list"].stderr == said["coverage"].stderr
        assert set(said["list"].stderr.splitlines()[:-1]) < set(said["check"].stderr.splitlines())

    def said_of(self, content: bytes) -> str:
        (self.folder / "yaml" / "musa_functions.yaml").write_bytes(content)
        done = self.run_command("gen")
        assert (done.returncode, done.stdout) == (1, "") and not (self.folder / "generated").exists()
        return done.stderr

    def test_faults_that_leave_nothing_to_go_on_with(self) -> None:
        bomb = b"- &a [x]\n" + b"".join(b"- &%c [*%c, *%c, *%c]\n" % (c, c - 1, c - 1, c - 1) for c in range(98, 123))
        contents = {
            "empty": b"",
            "a comment": b"# nothing\n",
            "not UTF-8": b"- func: tril\n# caf\xe9\n",
            "UTF-16": "- func: tril\n".encode("utf-16"),
            "not YAML": b"- func: [tril\n- func: triu\n",
            "a tab": b"- func: tril\n\tdispatch: {}\n",
            "a control character": b"- func: tril\x07\n",
            "a mapping": b"func: tril\n",
            "a scalar": b"tril\n",
            "two documents": b"- func: tril\n---\n- func: triu\n",
            "an alias bomb": bomb,
            "deep nesting": b"[" * 100_000,
            "a merge key": b"- &a {func: tril}\n- <<: *a\n",
        }
        said = "".join(f"# {name}\n{self.said_of(content)}" for name, content in contents.items())
        self.assertExpectedInline(
            said,
            """\
# empty
yaml/musa_functions.yaml:1:1: error: the operator list is empty
    add an entry such as `- func: tril.out`
1 error; nothing was written
# a comment
yaml/musa_functions.yaml:1:1: error: the operator list is empty
    add an entry such as `- func: tril.out`
1 error; nothing was written
# not UTF-8
yaml/musa_functions.yaml:2:6: error: not UTF-8: byte 0xe9 cannot be decoded
    save the file as UTF-8
1 error; nothing was written
# UTF-16
yaml/musa_functions.yaml:1:1: error: not UTF-8: byte 0xff cannot be decoded
    save the file as UTF-8
1 error; nothing was written
# not YAML
yaml/musa_functions.yaml:2:7: error: not valid YAML: while parsing a flow sequence did not find expected ',' or ']'
    an entry is `- func: name`, with its other keys below `func` and indented alike
1 error; nothing was written
# a tab
yaml/musa_functions.yaml:2:1: error: not valid YAML: while scanning a plain scalar found a tab character that violates indentation
    indent with spaces: YAML takes no tabs there
1 error; nothing was written
# a control character
yaml/musa_functions.yaml:1:13: error: not valid YAML: control character U+0007
    remove it; an operator list is plain text
1 error; nothing was written
# a mapping
yaml/musa_functions.yaml:1:1: error: the operator list must be a YAML list, not a mapping
    write one entry per operator: `- func: tril.out`
1 error; nothing was written
# a scalar
yaml/musa_functions.yaml:1:1: error: the operator list must be a YAML list, not a string
    write one entry per operator: `- func: tril.out`
1 error; nothing was written
# two documents
yaml/musa_functions.yaml:2:1: error: not valid YAML: expected a single document in the stream but found another document
    an entry is `- func: name`, with its other keys below `func` and indented alike
1 error; nothing was written
# an alias bomb
yaml/musa_functions.yaml:2:7: error: YAML alias '*a' in an operator list
    write the value out; aliases are refused because they can blow up without bound
1 error; nothing was written
# deep nesting
yaml/musa_functions.yaml:1:1001: error: not valid YAML: while increasing flow level exceeded maximum nesting depth
    an entry is `- func: name`, with its other keys below `func` and indented alike
1 error; nothing was written
# a merge key
yaml/musa_functions.yaml:2:7: error: YAML alias '*a' in an operator list
    write the value out; aliases are refused because they can blow up without bound
1 error; nothing was written
""",
        )
