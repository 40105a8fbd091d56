"""igamma and igammac (kernels/ported/IncompleteGamma.cuh) against 50-digit arithmetic.

The CPU is no reference away from where `opgen test` looks: its float32 Q(1e-6, 1) is 10 % off, its P(1e8, x) six
deviations below the middle 30 %. At the ends of the domain it is one.
"""

from __future__ import annotations

import functools
import itertools
import math
import random

import mpmath
import pytest
import torch

FUNCTIONS = {"P": torch.special.gammainc, "Q": torch.special.gammaincc}
DTYPES = {torch.float64: 1e-13, torch.float32: 2e-6}


def reference(a: float, x: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """P and Q of positive arguments, each to 40 digits or more unless it is below 1e-300."""
    with mpmath.workdps(55):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        log_factor = a * mpmath.log(x) - x - mpmath.loggamma(a + 1)
        if log_factor < -800:
            return (mpmath.mpf(x > a), mpmath.mpf(x < a))
        factor = mpmath.exp(log_factor)
        if x > a + 8 * mpmath.sqrt(a) + 8:  # DLMF 8.9.2, from the far end
            fraction = mpmath.mpf(0)
            for n in range(400, 0, -1):
                fraction = n * (n - a) / (x + 2 * n + 1 - a - fraction)
            upper = factor * a / (x + 1 - a - fraction)
            return 1 - upper, upper
        # DLMF 8.7.1, in integers of which the last 200 bits are behind the point: 13,000 terms in the middle of 1e6
        one = term = total = 1 << 200
        numerator, denominator = int(x * one), int(a * one)
        while term:
            denominator += one
            term = term * numerator // denominator
            total += term
        lower = factor * mpmath.mpf(total) / one
        return lower, 1 - lower


def around(a: float, random_state: random.Random) -> list[float]:
    """Places that differ in how the functions are computed: the middle, the tails, far out, near zero."""
    deviation = math.sqrt(a)
    return [
        a + random_state.gauss(0, 1) * deviation,
        a + random_state.uniform(-30, 30) * deviation,
        a * 10 ** random_state.uniform(-1, 1),
        10 ** random_state.uniform(-8, 2.5),
        a,
    ]


@functools.cache
def sweep(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, dict[str, list[mpmath.mpf]]]:
    """a, x and the values there; the arguments are numbers of the dtype."""
    random_state = random.Random(8)
    parameters = [10 ** random_state.uniform(-6, 2.5) for _ in range(150)]
    parameters += [10 ** random_state.uniform(2.5, 6) for _ in range(25)]
    pairs = [(a, x) for a in parameters for x in around(a, random_state) if x > 0]
    # the seams between the ways of computing
    seams = [0.5, 0.75, 0.7500001, 1.0, 1.0000001, 1.1, 1.1000001, 2.0, 11.999999, 12.0, 12.000001]
    pairs += itertools.product(seams, seams)
    pairs += [(a, a * ratio) for a in (12.0, 40.0, 600.0) for ratio in (0.29, 0.31, 0.7, 0.71, 1.4, 1.42, 2.3, 2.4)]
    a, x = torch.tensor(pairs, dtype=torch.float64).to(dtype).unbind(1)
    values = [reference(*pair) for pair in zip(a.tolist(), x.tolist(), strict=True)]
    return a, x, {"P": [lower for lower, _ in values], "Q": [upper for _, upper in values]}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_have_nearly_all_digits_of_the_dtype(name: str, dtype: torch.dtype, device: str) -> None:
    a, x, expected = sweep(dtype)
    actual = FUNCTIONS[name](a.to(device), x.to(device)).tolist()
    smallest = 10 * torch.finfo(dtype).tiny  # below it digits are lost
    wrong = [
        f"{name}({one_a!r}, {one_x!r}) = {got!r}, not {mpmath.nstr(value, 17)}"
        for one_a, one_x, got, value in zip(a.tolist(), x.tolist(), actual, expected[name], strict=True)
        if not abs(got - value) <= (DTYPES[dtype] * value if value > smallest else smallest)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("a", [1e7, 1e8, 1e12, 1e30])
def test_parameters_however_large_are_computed(a: float, dtype: torch.dtype, device: str) -> None:
    parameter = torch.tensor([a], dtype=dtype, device=device)
    a = float(parameter)
    middle = 1 / (3 * math.sqrt(2 * math.pi * a))  # Q(a, a) = 1/2 - this, to the order of its cube (DLMF 8.11.12)
    assert float(torch.igammac(parameter, parameter)) == pytest.approx(0.5 - middle, rel=DTYPES[dtype], abs=middle**3)
    assert float(torch.igamma(parameter, parameter)) == pytest.approx(0.5 + middle, rel=DTYPES[dtype], abs=middle**3)
    assert float(torch.igamma(parameter, parameter / 2)) == 0
    assert float(torch.igammac(parameter, parameter * 2)) == 0
    largest = torch.full_like(parameter, torch.finfo(dtype).max)
    assert float(torch.igamma(largest, parameter)) == 0
    assert float(torch.igamma(parameter, largest)) == 1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_six_deviations_below_the_middle_no_series_is_cut_off(dtype: torch.dtype, device: str) -> None:
    a, x = 100030000.0, 99970000.0
    lower = torch.igamma(*(torch.tensor([number], dtype=dtype, device=device) for number in (a, x)))
    exact, _ = reference(*(float(torch.tensor(number, dtype=dtype)) for number in (a, x)))
    assert float(lower) == pytest.approx(float(exact), rel=DTYPES[dtype])


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_ends_of_the_domain_are_the_cpus(name: str, dtype: torch.dtype, device: str) -> None:
    ends = [0.0, -0.0, 1.0, 30.0, -1.0, math.inf, -math.inf, math.nan]
    pairs = [(a, x) for a, x in itertools.product(ends, ends) if not (1 <= a <= 30 and 1 <= x <= 30)]
    a, x = torch.tensor(pairs, dtype=dtype).unbind(1)
    actual = FUNCTIONS[name](a.to(device), x.to(device)).cpu()
    torch.testing.assert_close(actual, FUNCTIONS[name](a, x), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_lie_between_zero_and_one(name: str, dtype: torch.dtype, device: str) -> None:
    # subnormal parameters, for which P is 1 but for rounding, among them
    a = torch.logspace(math.log10(torch.finfo(dtype).tiny), 6, 300, dtype=torch.float64).to(dtype)
    a = torch.cat([a, torch.finfo(dtype).smallest_normal * torch.tensor([0.5, 1e-5], dtype=dtype)]).unsqueeze(1)
    x = torch.logspace(-30, 6, 150, dtype=torch.float64).to(dtype)
    values = FUNCTIONS[name](a.to(device), x.to(device))
    assert bool(((values >= 0) & (values <= 1)).all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_narrow_dtypes_compute_in_float(name: str, dtype: torch.dtype, device: str) -> None:
    a = torch.linspace(0.01, 40, 60, device=device).to(dtype).unsqueeze(1)
    x = torch.linspace(0.01, 40, 70, device=device).to(dtype)
    function = FUNCTIONS[name]
    assert torch.equal(function(a, x), function(a.float(), x.float()).to(dtype))
