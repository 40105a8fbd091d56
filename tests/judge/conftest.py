"""Options, selection, time limits and records of the judge.

Options themselves are in tests/conftest.py: pytest reads those of a folder below its arguments too late.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judge import case, plan
from opgen.truth.judges import Journal

# PyTorch's hint for running a test again is a command of its own repository.
os.environ.setdefault("PYTORCH_PRINT_REPRO_ON_FAILURE", "0")
# The slowest test takes a few seconds; one that takes a minute hangs.
_SECONDS = 180
_JOURNAL = pytest.StashKey[Journal]()


def pytest_configure(config: pytest.Config) -> None:
    option = config.getoption
    explicit = bool(option("keyword")) or any("::" in argument for argument in config.args)
    ops = tuple(option("--op") or ())
    plan.configure(
        plan.Plan(
            device=str(option("--device")),
            ops=ops,
            sampled=option("--judge") == "sample" and not explicit and not ops,
            samples=plan.samples_asked(),
        )
    )
    if not hasattr(config, "workerinput"):
        config.stash[_JOURNAL] = Journal(journal_file(plan.current.device))


def journal_file(device: str) -> Path:
    """build/truth/<target>-torch<version>/judge.jsonl for the device this project is about."""
    import torch

    root = Path(__file__).resolve().parents[2]
    version = torch.__version__.partition("+")[0]
    if device == "musa":
        from torch_musa import _build

        return root / "build" / "truth" / f"{_build.target()}-torch{version}" / "judge.jsonl"
    return root / "build" / "truth" / f"{device}-torch{version}" / "judge.jsonl"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    judged = [item for item in items if _is_judged(item.nodeid)]
    left = [item for item in judged if not plan.current.takes(item.name)]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]
    for item in judged:
        # the whole process ends, since nothing else stops a kernel that hangs; xdist starts another
        item.add_marker(pytest.mark.timeout(_SECONDS, method="thread"))


def _is_judged(nodeid: str) -> bool:
    return _JUDGED.search(nodeid) is not None


# tests/judge/test_op_db.py::TestOpDbPRIVATEUSE1::test_forward_nn_functional_silu_musa_float32
_JUDGED = re.compile(
    r"judge/test_(?P<judge>\w+_db)\.py::\w+::test_(?:module_|optimizer_)?(?P<kind>[a-z]+)_(?P<rest>\w+)$"
)


def crash_line(nodeid: str, reason: str) -> dict[str, Any]:
    """What can be said of a test whose process has ended: its name is all that is left."""
    parts = _JUDGED.search(nodeid)
    assert parts is not None, nodeid
    name, _, dtype = parts["rest"].partition(f"_{plan.current.device}")
    return {
        "test": nodeid,
        "judge": parts["judge"],
        "name": name,
        "kind": parts["kind"],
        "dtype": dtype.strip("_") or None,
        "outcome": "failed",
        "reason": f"the process ended, by a crash or after {_SECONDS} s: {reason}"[:600],
        "title": "",
        "ops": {},
        "subjects": [name],
    }


@pytest.fixture(autouse=True)
def published(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test finds out travels with its report: to the process that writes, whichever worker ran it."""
    item = request.node
    case.publish = lambda line: item.user_properties.append(("judge", {"test": item.nodeid, **line}))
    yield
    case.publish = case.drop


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: Any) -> None:
    if _session is None or report.when not in ("call", "???"):
        return
    for name, line in report.user_properties:
        if name == "judge":
            _session.add(line)
            return
    if report.when == "???" and _is_judged(report.nodeid):
        _session.add(crash_line(report.nodeid, str(report.longrepr)))


_session: Journal | None = None


def pytest_sessionstart(session: pytest.Session) -> None:
    global _session
    _session = session.config.stash.get(_JOURNAL, None)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _session is not None:
        everything = not (plan.current.sampled or plan.current.ops or session.config.getoption("keyword"))
        named = any("::" in argument for argument in session.config.args)
        _session.close(complete=everything and not named and session.exitstatus in (0, 1) and not _partial(session))


def _partial(session: pytest.Session) -> bool:
    """True when only some of the test modules were asked for, or the run stopped early."""
    folder = all(Path(argument).is_dir() for argument in session.config.args)
    return not folder or bool(session.shouldstop or session.shouldfail or session.config.getoption("lf", False))
