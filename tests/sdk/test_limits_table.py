"""The limits of muDNN and muRAND as data: a readable table, tests of each row, a current page."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("limits_table", ROOT / "sdk" / "limits_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


table = _load()
LIMITS = table.read_limits(table.LIMITS.read_text(encoding="utf-8"))


def test_every_row_is_read() -> None:
    text = table.LIMITS.read_text(encoding="utf-8")
    names = re.findall(r"^MU(?:DNN|RAND)_(?:LIMIT|DEFAULT)\((\w+),", text, re.MULTILINE)
    assert [limit.name for limit in LIMITS] == names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_row_has_a_source_and_a_form(limit: object) -> None:
    assert limit.source  # type: ignore[attr-defined]
    assert limit.condition  # type: ignore[attr-defined]
    assert re.fullmatch(r"ALL|BELOW\(\d, \d\)", limit.architectures)  # type: ignore[attr-defined]
    assert re.fullmatch(r"(Status::(?!SUCCESS)|Effect::(?!NONE)|MURAND_STATUS_(?!SUCCESS))\w+|", limit.outcome)  # type: ignore[attr-defined]


def test_every_limit_has_a_case_in_the_toolkit() -> None:
    sources = ("mudnn_limits_test.cpp", "murand_test.mu")
    text = "".join((ROOT / "tests" / "sdk" / name).read_text(encoding="utf-8") for name in sources)
    cases = set(re.findall(r"^TEST(?:_WITH_ENV)?\(limit_(\w+)", text, re.MULTILINE))
    assert [limit.name for limit in LIMITS if limit.name not in cases] == []


def test_every_limit_has_a_test_of_op_code() -> None:
    text = (ROOT / table.OP_TESTS).read_text(encoding="utf-8")
    tests = set(re.findall(r"^def test_(\w+)", text, re.MULTILINE))
    assert [limit.name for limit in LIMITS if limit.name not in tests] == []


def test_page_is_current() -> None:
    assert table.PAGE.read_text(encoding="utf-8") == table.page(LIMITS), "run sdk/limits_table.py > docs/limits.md"
