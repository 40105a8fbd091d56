"""Every overload of the operator list agrees with the CPU: shapes, strides, dtypes, functional, in place, out=.

A new entry in the list is tested without another line here. When an operator needs to be told what valid arguments are,
that goes into opgen/testing/domains.
"""

from __future__ import annotations

import pytest
from tested_elsewhere import TESTED_ELSEWHERE

from opgen.project import find_root
from opgen.testing import check_overload
from opgen.testing.listing import Listed, read_listed

LIST = find_root() / "yaml" / "musa_functions.yaml"
OWN = [listed.op for listed in read_listed(LIST) if "::" in listed.op]
LISTED = [listed for listed in read_listed(LIST) if listed.op not in {*TESTED_ELSEWHERE, *OWN}]


@pytest.mark.parametrize("listed", LISTED, ids=lambda listed: listed.op)
def test_overload_agrees_with_cpu(listed: Listed, device: str) -> None:
    check_overload(listed.op, device=device, fallback=listed.fallback or _family(listed.op, device) == "cpu_fallback")


def test_registered_overloads_that_the_list_does_not_name_agree_too(device: str) -> None:
    """Functional and in-place forms that follow from a structured out= entry are registered without being listed."""
    named = {f"aten::{listed.op}" if "::" not in listed.op else listed.op for listed in read_listed(LIST)}
    failures = []
    for op in sorted(_registered() - named):
        try:
            check_overload(op, device=device)
        except (AssertionError, LookupError) as error:
            failures.append(f"{op}: {error}")
    assert not failures, "\n\n".join(failures)


def test_every_listed_overload_is_registered() -> None:
    certain = [listed.op for listed in read_listed(LIST) if listed.certain]
    named = {f"aten::{op}" if "::" not in op else op for op in certain}
    assert sorted(named - _registered()) == []


@pytest.mark.parametrize("op", OWN)
def test_own_operators_are_tested_by_name(op: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (find_root() / "tests" / "ops").glob("test_*.py")]
    assert any(f".{op.replace('::', '.')}(" in text or f'check_overload("{op}"' in text for text in texts)


@pytest.mark.parametrize("op", sorted(TESTED_ELSEWHERE))
def test_overloads_tested_elsewhere_really_are(op: str) -> None:
    path, spelling, reason = TESTED_ELSEWHERE[op]
    assert reason
    assert spelling in (find_root() / path).read_text(encoding="utf-8")


def _family(op: str, device: str) -> str | None:
    """Where the build under test has the overload's kernel from; None on devices that have no such table."""
    import torch

    module = getattr(torch, torch.device(device).type)
    return module.op_table().get(op, {}).get("family") if hasattr(module, "op_table") else None


def _registered() -> set[str]:
    """Every overload that has a kernel of its own for the device; the boxed fallback for all others is none."""
    import torch

    return {
        name
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith(("aten::", "musa::")) and torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1")
    }
