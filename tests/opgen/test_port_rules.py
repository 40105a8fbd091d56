"""A user's own rules, what a port reports, and what it looks at only when asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from opgen.diagnostics import Location, OpgenError, Severity
from opgen.port import Options, Rules, load_mapping, port_text, read_rules, rules_of, without_defaults
from opgen.port.mapping import DEFAULT_TABLES, read_table

MAPPING = load_mapping()

# The user's manual, chapter on MUSAExtension.
MANUAL = {
    "_CU_H_": "_MU_H_",
    "_CUH": "_MUH",
    "__NVCC__": "__MUSACC__",
    "MMCV_WITH_CUDA": "MMCV_WITH_MUSA",
    "AT_DISPATCH_FLOATING_TYPES_AND_HALF": "AT_DISPATCH_FLOATING_TYPES",
    "#include <ATen/cuda/CUDAContext.h>": '#include "torch_musa/csrc/aten/musa/MUSAContext.h"',
    "#include <c10/cuda/CUDAGuard.h>": '#include "torch_musa/csrc/core/MUSAGuard.h"',
    "::cuda::": "::musa::",
    "/cuda/": "/musa/",
    ", CUDA,": ", PrivateUse1,",
    ".cuh": ".muh",
    ".is_cuda()": ".is_privateuseone()",
}


def texts(table: dict[str, str]) -> Options:
    return Options(rules=rules_of(table, Location("caller")))


def port(source: str, options: Options | None = None, *, device: bool = True) -> tuple[str, list[str]]:
    done = port_text(source, MAPPING, "k.cu", options=options, device=device)
    return done.text, [str(problem).splitlines()[0] for problem in done.problems]


@pytest.mark.parametrize(
    "source, expected",
    [
        ("#ifndef NMS_CUH\n#define NMS_CUH\n#endif\n", "#ifndef NMS_MUH\n#define NMS_MUH\n#endif\n"),
        ("#ifdef __NVCC__\n#endif\n", "#ifdef __MUSACC__\n#endif\n"),
        ("#ifdef MMCV_WITH_CUDA\n#endif\n", "#ifdef MMCV_WITH_MUSA\n#endif\n"),
        ("AT_DISPATCH_FLOATING_TYPES_AND_HALF(t, n, f);", "AT_DISPATCH_FLOATING_TYPES(t, n, f);"),
        ("#include <ATen/cuda/CUDAContext.h>\n", '#include "torch_musa/csrc/aten/musa/MUSAContext.h"\n'),
        ("#  include  <c10/cuda/CUDAGuard.h>\n", '#include "torch_musa/csrc/core/MUSAGuard.h"\n'),
        ("at::cuda::CUDAGuard g(d);", "at::musa::MUSAGuard g(d);"),
        ("REGISTER_DEVICE_IMPL(nms_impl, CUDA, nms_cuda);", "REGISTER_DEVICE_IMPL(nms_impl, PrivateUse1, nms_cuda);"),
        ('#include "nms.cuh"\n', '#include "nms.muh"\n'),
        ('#include "pytorch/cuda/nms.h"\n', '#include "pytorch/musa/nms.h"\n'),
        ("if (x.is_cuda()) {}", "if (x.is_privateuseone()) {}"),
        ("int Accumulate; int accurate;", "int Accumulate; int accurate;"),
        ('// ::cuda::\nauto s = "MMCV_WITH_CUDA";', '// ::cuda::\nauto s = "MMCV_WITH_CUDA";'),
    ],
)  # fmt: skip
def test_the_manuals_rules_do_what_it_says(source: str, expected: str) -> None:
    assert port(source, texts(MANUAL)) == (expected, [])
    assert port(expected, texts(MANUAL)) == (expected, [])


def test_the_manuals_warning_about_short_rules_is_heeded() -> None:
    assert port("Accumulate(cu_seqlens, cu);", texts({"cu": "mu"}))[0] == "Accumulate(mu_seqlens, mu);"


def test_a_users_rule_wins_over_a_table() -> None:
    own = Options(rules=Rules({"cudaMalloc": "myMalloc"}))
    assert port("cudaMalloc(&p, 1); cudaMallocHost(&p, 1);", own)[0] == "myMalloc(&p, 1); musaMallocHost(&p, 1);"


def test_a_table_for_a_whole_name_wins_over_a_rule_for_a_part_of_it() -> None:
    assert port("x.is_cuda(); nms_cuda(x);", texts({"cuda": "musa"}))[0] == "x.is_privateuseone(); nms_musa(x);"


def test_the_longest_rule_wins() -> None:
    rules = {"__CUDA_ARCH__": "X", "__CUDA_ARCH__ >= 800": "__MUSA_ARCH__ >= 220"}
    assert port("#if __CUDA_ARCH__  >=  800\n#endif\n", texts(rules)) == ("#if __MUSA_ARCH__ >= 220\n#endif\n", [])


def test_a_rule_that_keeps_a_name_silences_its_report() -> None:
    assert port("cudaMine();")[1] == ["k.cu:1:1: error: 'cudaMine' has no known MUSA counterpart"]
    assert port("cudaMine();", Options(rules=Rules({"cudaMine": "cudaMine"}))) == ("cudaMine();", [])


def test_a_rule_that_quotes_a_string_is_meant_for_strings() -> None:
    rules = texts({'Device("cuda")': 'Device("musa")'})
    assert port('at::Device("cuda"); f("cuda"); // Device("cuda")', rules)[0].count("musa") == 1


def test_nobodys_dictionary_is_changed() -> None:
    rules = dict(MANUAL)
    port("MMCV_WITH_CUDA at::cuda::x", texts(rules))
    assert rules == MANUAL


def test_without_the_tables_only_the_users_rules_count() -> None:
    done = port_text(
        "cudaMalloc(a); cudaFree(b);", without_defaults(MAPPING), options=Options(Rules({"cudaFree": "F"}))
    )
    assert done.text == "cudaMalloc(a); F(b);"
    assert list(done.unknown) == ["cudaMalloc"]


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("r.tsv", "a b\n", "r.tsv:1: error: expected two columns"),
        ("r.tsv", "# c\na\tb\na\tc\n", "r.tsv:3: error: 'a' is mapped twice"),
        ("r.json", '{"a": 1}', "r.json: error: rules are an object"),
        ("r.json", '["a"]', "r.json: error: rules are an object"),
        ("r.json", '{"a": "b",\n', "r.json:2:1: error: not JSON"),
        ("r.json", '{" ": "b"}', "r.json: error: a rule's key is empty"),
        ("r.json", '{"a": "b", "a": "c"}', 'r.json: error: "a" is mapped twice'),
        ("r.json", '{"a": "b\\nc"}', 'r.json: error: the rule for "a" would break a line'),
        ("r.json", '{"a": "\\ud800"}', 'r.json: error: the rule for "a" is no text'),
        ("r.tsv", "caf\udce9\tb\n", "r.tsv: error: cannot read the mapping table: not UTF-8"),
    ],
)
def test_faulty_rules_are_an_error_with_their_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(OpgenError) as error:
        read_rules(tmp_path / name)
    assert str(error.value).replace(f"{tmp_path}/", "").startswith(message)


def test_a_file_of_rules_may_hold_names_and_text(tmp_path: Path) -> None:
    path = tmp_path / "r.tsv"
    path.write_text("# mine\ncudaFoo\tmusaFoo\n::cuda::\t::mine::\n#include <a.h>\t#include <b.h>\n")
    options = Options(rules=read_rules(path))
    assert port("#include <a.h>\nx::cuda::cudaFoo();", options) == ("#include <b.h>\nx::mine::musaFoo();", [])


@pytest.mark.parametrize(
    "source, message",
    [
        ("#if __CUDA_ARCH__ >= 700\n#endif\n", "1:5: error: the number of __CUDA_ARCH__ cannot be ported"),
        ("#if 700 <= (__CUDA_ARCH__)\n#endif\n", "1:13: error: the number of __CUDA_ARCH__ cannot be ported"),
        ("#if __CUDA_ARCH__ / 100 == 7\n#endif\n", "1:5: error: the number of __CUDA_ARCH__ cannot be ported"),
        ("#define ARCH __CUDA_ARCH__\n", "1:14: error: the number of __CUDA_ARCH__ cannot be ported"),
        ("int arch = __CUDA_ARCH__;", "1:12: error: the number of __CUDA_ARCH__ cannot be ported"),
        ("#define CALL(name) cuda ## name\n", "1:20: error: names that 'cuda ##' makes cannot be ported"),
        ("#define CALL(name) nccl##name\n", "1:20: error: names that 'nccl ##' makes cannot be ported"),
        ("cuda\\\nFree(0);", "1:1: error: 'cudaFree' goes on in the next line"),
        ("auto b = a.cuda(); auto cuda = 1;", "1:12: error: 'cuda()' of a tensor cannot be ported"),
        ("auto b = a->cuda();", "1:13: error: 'cuda()' of a tensor cannot be ported"),
        ("__builtin_nvvm_ldg(x);", "1:1: error: '__builtin_nvvm_ldg' has no known MUSA counterpart"),
        ("#include NAME\n", "1:10: warning: what #include NAME names is not seen"),
        ("#if defined(CUDA_VERSION)\n#endif\n", "1:13: error: 'CUDA_VERSION' cannot be ported"),
        ("#include <cooperative_groups.h>\n", "1:11: error: <cooperative_groups.h> cannot be ported"),
        ("#include <cooperative_groups/reduce.h>\n", "1:11: error: <cooperative_groups/reduce.h> cannot be ported"),
        ("namespace cg = cooperative_groups;", "1:16: error: 'cooperative_groups' cannot be ported"),
        ("#include <cudnn.h>\n", "1:11: error: <cudnn.h> cannot be ported"),
        ("#include <cuda/pipeline>\n", "1:11: error: <cuda/pipeline> cannot be ported"),
        ("float f(cudaTextureObject_t t);", "1:9: error: 'cudaTextureObject_t' cannot be ported"),
        ("auto s = nvtxRangePushA(m);", "1:10: error: 'nvtxRangePushA' has no known MUSA counterpart"),
        ("f(cuStreamNovelty(s));", "1:3: error: 'cuStreamNovelty' has no known MUSA counterpart"),
        ("__global__ void k() { j<<<1, 1>>>(); }", "1:24: error: a launch from a kernel cannot be ported"),
        ('__device__ void k() { asm volatile("" : :); }', "1:23: error: 'asm' cannot be ported"),
    ],
)
def test_what_cannot_be_ported_is_reported_and_left_as_it_is(source: str, message: str) -> None:
    assert port(source) == (source, [f"k.cu:{message}"])


@pytest.mark.parametrize(
    "source, rule, expected",
    [
        ("#define CALL(name) cuda##name\n", ("cuda ##", "musa ##"), "#define CALL(name) musa ##name\n"),
        ("auto b = a.cuda();", (".cuda()", ".to(at::kPrivateUse1)"), "auto b = a.to(at::kPrivateUse1);"),
    ],
)
def test_the_rule_that_a_report_proposes_settles_it(source: str, rule: tuple[str, str], expected: str) -> None:
    hint = port_text(source, MAPPING).problems[0].hint or ""
    assert f"'{rule[0]}<TAB>{rule[1]}'" in hint
    assert port(source, texts(dict([rule]))) == (expected, [])


@pytest.mark.parametrize("device", [True, False])
@pytest.mark.parametrize(
    "source, message",
    [
        ("int x; /* cut", "1:8: error: a comment is never closed"),
        ("/*/", "1:1: error: a comment is never closed"),
        ('auto s = R"x(cut)"', "1:10: error: a raw string is never closed"),
        ("#if A\n#else\n", "1:1: error: #if is never closed"),
        ("#endif\n", "1:1: error: #endif without #if"),
        ("v\0o\0i\0d\0", "1:2: error: a NUL byte: this is no text"),
    ],
)
def test_what_is_cut_short_or_no_text_is_reported(source: str, message: str, device: bool) -> None:
    assert port(source, device=device)[1] == [f"k.cu:{message}"]


def test_the_hosts_own_assembly_is_its_own_affair() -> None:
    assert port('void f() { asm volatile("pause"); }', device=False)[1] == []
    assert port('__device__ void f() { asm volatile("x"); }', device=False)[1] != []


def test_messages_of_the_preprocessor_are_no_code() -> None:
    source = "#error CUDA_VERSION of cudaNope isn't known\n#warning cudaNope, don't\nint a;\n"
    assert port(source) == (source, [])


def test_names_that_the_source_defines_are_no_unknown_ones() -> None:
    source = (
        "#define MY_CUDA_LOOP(i) for (;;)\n"
        "struct MyCUDAThing { int cudaField; };\n"
        "void cudaHelper() { MY_CUDA_LOOP(1); }\n"
        "Tensor& getMyCUDATensor(int a);\n"
        "Tensor& t = getMyCUDATensor(1);\n"
    )
    assert port(source) == (source, [])


def test_double_precision_in_kernels_is_told_where_the_chip_lacks_it() -> None:
    source = (
        "double host(double x) { return 2.0 * x; }\n"
        "__global__ void k(float* p) { double d = p[0]; p[1] = 1.5f + 0.5; }\n"
        "template <typename T> __device__ T f(T x) { return x * 1e-3; }\n"
    )
    assert port(source) == (source, [])
    done = port_text(source, MAPPING, "k.cu", options=Options(double_precision=False))
    assert [str(p).splitlines()[0] for p in done.problems] == [
        "k.cu:2:31: warning: 'double' is double precision, which this architecture lacks",
        "k.cu:2:62: warning: the constant 0.5 is double precision, which this architecture lacks",
        "k.cu:3:56: warning: the constant 1e-3 is double precision, which this architecture lacks",
    ]
    assert {p.severity for p in done.problems} == {Severity.WARNING}


def test_strings_and_comments_are_ported_when_asked() -> None:
    source = '// cudaMalloc in at::cuda, see a.cuh\nauto s = "cuda:0 cudaFree"; /* DispatchKey::CUDA */\n'
    assert port(source)[0] == source
    assert port(source, Options(strings=True))[0] == source.replace('"cuda:0 cudaFree"', '"musa:0 musaFree"')
    assert port(source, Options(comments=True))[0] == (
        '// musaMalloc in at::musa, see a.muh\nauto s = "cuda:0 cudaFree"; /* DispatchKey::PrivateUse1 */\n'
    )


def test_a_stub_is_registered_for_the_device_in_device_sources_alone() -> None:
    source = "REGISTER_DISPATCH(s, &f)\n"
    assert port(source)[0] == "REGISTER_PRIVATEUSE1_DISPATCH(s, &f)\n"
    assert port(source, device=False)[0] == source


@pytest.mark.parametrize("path", sorted((DEFAULT_TABLES / "names").glob("*.tsv")), ids=lambda path: path.stem)
def test_every_name_of_a_family_ports_to_its_counterpart_and_stays_there(path: Path) -> None:
    table = read_table(path)
    assert table
    for old, new in table.items():
        notes = [f"k.cu:1:3: warning: '{new}' is not all that '{old}' is"] if old in MAPPING.notes else []
        if old == "__CUDA_ARCH__":  # its number is another matter
            assert port(f"#ifdef {old}\n#endif\n") == (f"#ifdef {new}\n#endif\n", [])
            continue
        assert port(f"f({old});") == (f"f({new});", notes)
        assert port(f"f({new});") == (f"f({new});", []), old


def test_what_behaves_otherwise_on_musa_is_told_until_a_rule_says_that_it_is_known() -> None:
    assert port("curandGenerateLongLong(g, p, n);")[1] == [
        "k.cu:1:1: warning: 'murandGenerateLongLong' is not all that 'curandGenerateLongLong' is"
    ]
    known = Options(rules=Rules({"curandGenerateLongLong": "murandGenerateLongLong"}))
    assert port("curandGenerateLongLong(g, p, n);", known) == ("murandGenerateLongLong(g, p, n);", [])
