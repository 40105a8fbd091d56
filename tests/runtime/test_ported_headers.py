"""PyTorch's device headers, ported by the build: a third party's kernels against them compile and are right.

tests/torch_headers/kernels.cu is in CUDA's dialect and spelt as for upstream. It is built twice: with the host's own
loops behind `gpu_kernel`, and (MUSA_PORTED_LOOPS) with the ported ones, whose kernels run thread by thread.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from torch_musa import _build
from torch_musa.utils.musa_extension import load

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "tests/torch_headers/kernels.cu"
pytestmark = pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++").split()[0]) is None, reason="no C++ compiler")

FLOATING = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


@pytest.fixture(scope="module", params=["host loops", "ported loops"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The operators' library, loaded: their namespace and its file.

    Two libraries cannot define the same operators, so each build has a namespace of its own.
    """
    ported = request.param == "ported loops"
    name = "third_party_ported" if ported else "third_party_host"
    # A compilation takes a minute: the first of the test processes makes it, the others find it made.
    folder = tmp_path_factory.getbasetemp().parent / f"{name}-{torch.__version__}"
    (folder / "src").mkdir(parents=True, exist_ok=True)
    # Unoptimized: the compiler then takes half the time, and the tests need no speed.
    flags = ["-O0", *(["-DMUSA_PORTED_LOOPS"] if ported else [])]
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        source = folder / "src/kernels.cu"
        text = SOURCE.read_text().replace("TORCH_LIBRARY(third_party,", f"TORCH_LIBRARY({name},")
        if not source.exists() or source.read_text() != text:
            source.write_text(text)
        file = load(name, source, extra_musa_cflags=flags, build_directory=folder / "build", is_python_module=False)
    return name, str(file)


@pytest.fixture(scope="module")
def ops(library: tuple[str, str]) -> object:
    return getattr(torch.ops, library[0])


def layouts(x: torch.Tensor) -> Iterator[torch.Tensor]:
    """The same kind of values as they may lie in memory; `x` is a CPU matrix of even sides."""
    yield x
    yield x.t()
    yield x[::2, 1::3]
    yield x[:, :1].expand(x.shape)
    yield x.reshape(2, -1, 2, x.shape[1] // 2).permute(3, 1, 0, 2)
    yield x[0, 0]
    yield x[:0]


def both(x: torch.Tensor) -> torch.Tensor:
    """On the device, lying as on the CPU."""
    base = x.new_empty(x.untyped_storage().size() // x.element_size())
    base.set_(x.untyped_storage(), 0, base.shape)
    return base.to("musa").as_strided(x.shape, x.stride(), x.storage_offset())


def matrix(dtype: torch.dtype) -> torch.Tensor:
    torch.manual_seed(0)
    values = torch.randn(62, 34, dtype=torch.float64) * 8
    return values.to(dtype)


def agree(got: torch.Tensor, wanted: torch.Tensor) -> None:
    assert got.dtype == wanted.dtype and got.device.type == "musa"
    torch.testing.assert_close(got.cpu(), wanted)


@pytest.mark.parametrize("dtype", [*FLOATING, torch.int32, torch.int64, torch.uint8], ids=str)
def test_gpu_kernel_is_right_however_the_operands_lie(ops, dtype):
    for x in layouts(matrix(dtype).abs() if dtype is torch.uint8 else matrix(dtype)):
        agree(ops.scaled(both(x), 2.0), x * 2)


def test_offsets_beyond_32_bits_are_reached(ops):
    """Two rows 2 GiB apart: the ported loops take them in pieces. Only the pages written to are ever there."""
    base = torch.empty(2**31 + 4096, dtype=torch.uint8, device="musa")
    x = base.as_strided((2, 300), (2**31 + 1024, 1))
    values = torch.arange(600, dtype=torch.int64).reshape(2, 300).remainder(97).to(torch.uint8)
    x.copy_(values)
    agree(ops.scaled(x, 2.0), values * 2)
    agree(
        ops.signed_difference(x, both(values.flip(0))),
        torch.maximum(values, values.flip(0)) - torch.minimum(values, values.flip(0)),
    )


def test_gpu_kernel_with_scalars_takes_broadcasts_other_dtypes_and_cpu_scalars(ops):
    x = matrix(torch.float32)
    for a in layouts(x):
        agree(
            ops.signed_difference(both(a), both(a.flip(0).contiguous() if a.dim() else a)),
            (a - (a.flip(0) if a.dim() else a)).abs(),
        )
    row, column = x[:1], matrix(torch.int64)[:, :1]
    agree(ops.signed_difference(both(row), both(column)), (row - column).abs())
    for narrow in (torch.float16, torch.bfloat16, torch.int32, torch.uint8):
        other = matrix(narrow).abs() if narrow is torch.uint8 else matrix(narrow)
        agree(ops.signed_difference(both(x), both(other)), (x - other).abs())
        agree(ops.signed_difference(both(other), both(x)), (other - x).abs())
    for scalar in (torch.tensor(1.5), torch.tensor(2, dtype=torch.int64)):
        agree(ops.signed_difference(both(x), scalar), (x - scalar).abs())
        agree(ops.signed_difference(scalar, both(x)), (scalar - x).abs())


def test_a_cpu_scalar_keeps_its_precision_in_opmath(ops):
    x = matrix(torch.float16)
    scalar = torch.tensor(1.0 + 2.0**-12, dtype=torch.float64)  # no float16 has it
    wanted = (x.float() * scalar.float()).half()
    agree(ops.opmath_product(both(x), scalar), wanted)
    agree(ops.opmath_product(scalar, both(x)), wanted)
    agree(ops.opmath_product(both(x), both(x)), (x.float() * x.float()).half())


def test_gpu_kernel_multiple_outputs_writes_them_all(ops):
    for x in layouts(matrix(torch.float32)):
        whole, rest = ops.split_parts(both(x))
        agree(whole, x.trunc())
        agree(rest, x.frac())


def test_the_math_of_c10_is_the_c_librarys(ops):
    x = matrix(torch.float64)
    agree(ops.with_sign_of(both(x), both(-x.flip(0))), torch.copysign(x, -x.flip(0)))


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_gpu_reduce_kernel_is_right_over_any_dimensions_of_any_layout(ops, dtype):
    for x in layouts(matrix(dtype) / 8):
        for dims in ([0], [-1], list(range(x.dim()))):
            if x.dim() and x.numel():
                wide = (x.double() ** 2).sum(dims, keepdim=True)
                torch.testing.assert_close(ops.square_sum(both(x), dims, True).cpu(), wide.to(dtype))


def test_gpu_reduce_kernel_splits_one_long_row_over_many_blocks(ops):
    torch.manual_seed(1)
    x = torch.rand(3, 1 << 18)
    got = ops.square_sum(x.to("musa"), [1], False).cpu()
    torch.testing.assert_close(got, (x.double() ** 2).sum(1).float(), rtol=1e-5, atol=0)


@pytest.mark.parametrize("shape", [(60_000, 24), (40_000, 1_100)], ids=str)
def test_a_long_narrow_reduction_keeps_the_precision_of_its_type(ops, shape):
    """One by one, additions of floats would lose 1e-5 here."""
    torch.manual_seed(2)
    x = torch.rand(shape)
    got = ops.square_sum(x.to("musa"), [0], False).cpu()
    torch.testing.assert_close(got, (x.double() ** 2).sum(0).float(), rtol=2e-6, atol=0)


def test_gpu_reduce_kernel_of_bools(ops):
    for x in layouts(matrix(torch.int32) > -5):
        for dim in range(x.dim() if x.numel() else 0):
            agree(ops.all_of(both(x), dim), x.all(dim))


def test_gpu_reduce_kernel_refuses_to_reduce_nothing(ops):
    with pytest.raises(RuntimeError, match="numel"):
        ops.square_sum(torch.empty(3, 0, device="musa"), [1], False)


def test_the_operations_of_shared_reduce_ops_work_on_the_device(ops):
    x = matrix(torch.float32)
    torch.testing.assert_close(ops.variance(both(x), [0]).cpu(), x.var(0))
    torch.testing.assert_close(ops.variance(both(x.t()), [0]).cpu(), x.t().var(0))
    assert torch.equal(ops.largest_at(both(x), 1).cpu(), x.argmax(1))
    assert torch.equal(ops.largest_at(both(x.t()), 0).cpu(), x.t().argmax(0))


def test_reductions_hold_where_rows_are_wider_than_a_warp(ops):
    torch.manual_seed(3)
    x = torch.randn(5, 1000)
    torch.testing.assert_close(ops.square_sum(both(x), [1], False).cpu(), (x.double() ** 2).sum(1).float())
    torch.testing.assert_close(ops.variance(both(x), [1]).cpu(), x.var(1))
    assert torch.equal(ops.largest_at(both(x), 1).cpu(), x.argmax(1))
    torch.testing.assert_close(ops.row_sums(both(x)).cpu(), x.sum(1))
    for width in (1, 31, 32, 33, 100, 1000):
        agree(ops.row_softmax(both(x[:, :width])), x[:, :width].softmax(1))


REDUCTIONS_ON_128_LANES = """
    import torch
    assert torch.musa.get_device_properties(0).warp_size == 128
    torch.ops.load_library({file!r})
    ops, x = torch.ops.{name}, torch.randn(5, 1000)
    on = x.to("musa")
    torch.testing.assert_close(ops.square_sum(on, [1], False).cpu(), (x.double() ** 2).sum(1).float())
    torch.testing.assert_close(ops.variance(on, [1]).cpu(), x.var(1))
    assert torch.equal(ops.largest_at(on, 1).cpu(), x.argmax(1))
    torch.testing.assert_close(ops.row_sums(on).cpu(), x.sum(1))
    torch.testing.assert_close(ops.row_softmax(on).cpu(), x.softmax(1))
"""
REFUSED_ON_128_LANES = """
    import torch
    torch.ops.load_library({file!r})
    ops, x = torch.ops.{name}, torch.ones(5, 100, device="musa")
    try:
        print(ops.{call}.cpu())
    except RuntimeError as error:
        print("refused:", error)
"""


@pytest.mark.needs("host")
def test_reductions_of_32_lanes_are_right_on_warps_of_128(library, run_python):
    name, file = library
    run_python(REDUCTIONS_ON_128_LANES.format(name=name, file=file), MUSA_ARCH="mp_22")


@pytest.mark.needs("host")
@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("kth_largest(x, 3)", "a ballot with lanes beyond an integer's bits"),
        ("lane_masks(x)", "a lane mask has 32 bits"),
        ("shared_total(x.flatten()[:256])", "divergent barrier"),
    ],
    ids=["ballot", "lane mask", "part of a warp"],
)
def test_what_takes_a_warp_for_32_lanes_is_refused_on_warps_of_128(library, run_python, call, why):
    name, file = library
    done = run_python(REFUSED_ON_128_LANES.format(name=name, file=file, call=call), MUSA_ARCH="mp_22")
    assert done.stdout.startswith("refused: MUSA error") and why in done.stderr


@pytest.mark.needs("warps of 32 lanes")
def test_lane_masks_name_the_lanes_up_to_the_threads_own(ops):
    wanted = [2 ** (lane + 1) - 1 for lane in range(32)] * 4
    assert ops.lane_masks(torch.empty(0, device="musa")).tolist() == wanted


def test_block_reduce_sums_what_a_block_holds(ops):
    x = matrix(torch.float32)
    torch.testing.assert_close(ops.row_sums(both(x)).cpu(), x.sum(1))


def test_kernel_loops_and_tensor_info_reach_every_element(ops):
    for x in layouts(matrix(torch.float32)):
        agree(ops.threshold(both(x), 0.25), x.clamp(min=0.25))


@pytest.mark.parametrize("fast", [False, True], ids=["plain", "fast"])
@pytest.mark.parametrize("dtype", [*FLOATING, torch.int64, torch.int32, torch.int16, torch.uint8], ids=str)
def test_atomic_additions_lose_none(ops, dtype, fast):
    torch.manual_seed(2)
    where = torch.randint(0, 37, (2000,))
    wanted = torch.bincount(where, minlength=37).to(dtype)
    assert torch.equal(ops.counts(where.to("musa"), 37, dtype, fast).cpu(), wanted)


def test_atomic_extremes(ops):
    x = matrix(torch.float32).flatten()
    assert torch.equal(ops.extremes(both(x)).cpu(), torch.stack([x.max(), x.min()]))


@pytest.mark.needs("warps of 32 lanes")
def test_block_reduce_goes_on_behind_a_barrier(ops):
    x = matrix(torch.float32).flatten()[:256]
    torch.testing.assert_close(ops.shared_total(x.to("musa")).cpu(), x.sum().expand(256))


@pytest.mark.needs("warps of 32 lanes")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64], ids=str)
def test_radix_selection_finds_the_kth_largest(ops, dtype):
    x = matrix(dtype)
    for k in (1, 5, x.shape[1]):
        wanted = x.sort(1, descending=True).values[:, k - 1]
        assert torch.equal(ops.kth_largest(both(x), k).cpu(), wanted)


def test_vector_loads_and_stores_move_whole_vectors(ops):
    x = torch.randn(1024)
    assert torch.equal(ops.negate_by_vectors(x.to("musa")).cpu(), -x)


def test_philox_draws_the_words_that_the_generator_promises(ops):
    """Philox 4x32-10 of thread i: key = seed, counter = (offset / 4, i)."""
    generator = torch.Generator("musa").manual_seed(0x123456789ABCDEF)
    like = torch.empty(0, device="musa")
    first, second = (ops.random_words(like, 300, generator).cpu() for _ in range(2))
    assert first.min() >= 0 and first.max() < 2**32 and not torch.equal(first, second)
    for drawn, offset in ((first, 0), (second, 4)):
        for thread in (0, 1, 299):
            assert drawn[thread].tolist() == philox(0x123456789ABCDEF, thread, offset // 4)
    generator.manual_seed(0x123456789ABCDEF)
    assert torch.equal(ops.random_words(like, 300, generator).cpu(), first)


def philox(seed: int, subsequence: int, offset: int) -> list[int]:
    """Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011."""
    low = 0xFFFFFFFF
    counter = [offset & low, offset >> 32, subsequence & low, subsequence >> 32]
    key = [seed & low, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & low, (a >> 32) ^ counter[3] ^ key[1], a & low]
        key = [(key[0] + 0x9E3779B9) & low, (key[1] + 0xBB67AE85) & low]
    return counter


def test_streams_guards_and_the_allocator_are_the_backends(ops):
    assert ops.on_another_stream(torch.zeros(1, device="musa"))


def test_the_build_ports_the_wheels_headers_once(tmp_path):
    """What the build's configure step runs: a second time it writes nothing."""
    command = [
        *(sys.executable, "-m", "opgen.port", str(Path(torch.__file__).parent), "--torch-headers"),
        *("--own", str(ROOT / "torch_musa/csrc/porting"), "--out", str(tmp_path / "wheel"), "--format", "json"),
    ]

    def run(folder: Path | None = None) -> dict[str, int]:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["counts"]

    first = run()
    assert first["written"] > 50 and first["failed"] == 0
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "wheel").rglob("*.muh")}
    second = run()
    assert second["written"] == 0 and second["unchanged"] == first["written"]
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "wheel").rglob("*.muh")}
    build = _build.find(str(torch.__version__))
    assert build is not None
    for path in (tmp_path / "wheel").rglob("*.muh"):
        relative = path.relative_to(tmp_path / "wheel")
        assert (build.folder / "ported/wheel" / relative).read_bytes() == path.read_bytes(), "the build's is stale"
