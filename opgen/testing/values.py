"""What the CPU refuses because of a value: an index that does not exist, a probability over 1.

The values lie in device memory, where an operator cannot look without waiting for the device. A card's kernel that
meets one stops (a device-side assertion, or a fault in the library); that shows at a later call, as RuntimeError, and
sticks: the process has lost its device. So on a card, and wherever work runs later, such a case is not run at all. The
stand-in with blocking launches reports it from the call itself and goes on. There the call has to fail, with
RuntimeError, or with the CPU's type where the kernel is one that knows it.
"""

from __future__ import annotations

import os
import re
from functools import cache

from opgen.testing.case import Case
from opgen.testing.chips import computes_on_host
from opgen.testing.problem import Category, Problem

# Texts of the CPU's kernels. Checks of shapes, dtypes and arguments say other things, and stay equal on every device.
_ABOUT_VALUES = re.compile(
    r"index -?\d+ is out of bounds for dimension"
    r"|out of range: tried to access index"
    r"|index out of range in self"
    r"|INDICES element is out of DATA bounds"
    r"|Target -?\d+ is out of bounds"
    r"|ZeroDivisionError"
    r"|all elements of input should be between 0 and 1"
    r"|Expected p_in >= 0 && p_in <= 1"
    r"|Expected Tensor with single nonzero value"
    r"|probability tensor contains"
    r"|invalid multinomial distribution"
)


def is_about_values(error: Exception, case: Case | None = None) -> bool:
    """True where the CPU looked at the elements of a tensor to refuse the call.

    An operator that is given the text of its complaint (``_assert_async.msg``) says nothing else.
    """
    if not isinstance(error, (RuntimeError, IndexError)):
        return False
    given = {value for value in case.arguments.values() if isinstance(value, str)} if case else set()
    return _ABOUT_VALUES.search(str(error)) is not None or str(error).partition("\n")[0] in given


def compare_value_refusals(expected: Exception, actual: Exception | None) -> list[Problem]:
    """The CPU refused a value: the device must fail as well."""
    if actual is None:
        return [Problem(Category.ACCEPTED, f"accepts a value that the CPU refuses: {expected}")]
    if not isinstance(actual, (RuntimeError, type(expected))):
        return [Problem(Category.ERROR_TYPE, f"raises {type(actual).__name__} for a value: {actual}")]
    return []


@cache
def survives_faults(device: str) -> bool:
    """Whether a kernel that stops fails the call that started it, and leaves the device as it was.

    So does the CPU, and the stand-in on the host with blocking launches. On a card, and on a GPU in its place (target
    cuda), a device-side assertion ends the process's use of the device, with blocking launches too.
    """
    on_cpu = device.partition(":")[0] == "cpu"
    return on_cpu or (computes_on_host(device) and os.environ.get("MUSA_LAUNCH_BLOCKING") != "0")
