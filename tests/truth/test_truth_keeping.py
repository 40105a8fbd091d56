"""No run makes the kept records say less: neither one that fails, nor one that looks at less."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from opgen.cli import main, opgen
from opgen.coverage.matrix import Overload, State
from opgen.diagnostics import OpgenError
from opgen.truth.campaign import Run, Settings, campaign
from opgen.truth.failing import BENCH, PROCESS, Failure, of_load
from opgen.truth.keeping import merged_with
from opgen.truth.plan import Planned
from opgen.truth.record import DtypeResult, Record, Verdict
from opgen.truth.store import Store

OPERATORS = str(Path(__file__).with_name("operators.py"))
STRICT = DtypeResult(Verdict.STRICT, cases=20, agreed=20)
FAILED = DtypeResult(Verdict.FAILED, cases=20, agreed=19, failed=1, reason="wrong value")


def record(asked: int = 20, seed: int = 0, complete: bool = True, **dtypes: DtypeResult) -> Record:
    fields = ("neg", "2.13.0", "host", "abc", seed, "cpu", "digest", 1.0)
    return Record(*fields, dtypes=dtypes, asked=asked, complete=complete, calls=("neg",))


FULL = record(float32=STRICT, int64=STRICT)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (record(asked=2, float32=FAILED, int64=FAILED), "it has 2 cases of each dtype"),
        (record(asked=1, complete=False, float32=STRICT), "it has 1 case of each dtype"),
        (record(asked=500, complete=False, float32=STRICT), "it has more cases and not all the dtypes"),
        (record(seed=3, complete=False, float32=FAILED), "it has another seed and not all the dtypes"),
        (record(), "it could compare nothing"),
    ],
    ids=["cases", "cases and dtypes", "more cases, fewer dtypes", "another seed, fewer dtypes", "nothing"],
)
def test_what_says_less_is_shown_and_not_kept(now: Record, why: str) -> None:
    kept, unkept = merged_with(FULL, now, lambda op, calls: "other")
    assert kept is now and str(unkept).startswith(why)


@pytest.mark.parametrize("now", [record(float32=FAILED), record(seed=3, int64=STRICT), record(asked=21, bool=STRICT)])
def test_what_says_as_much_takes_the_place_and_so_does_anything_where_nothing_holds(now: Record) -> None:
    assert merged_with(FULL, now, lambda op, calls: "other") == (now, None)
    narrow = record(asked=1, complete=False, float32=STRICT)
    assert merged_with(None, narrow, lambda op, calls: "other") == (narrow, None)


def test_some_dtypes_of_the_same_run_are_merged_with_all_that_either_called() -> None:
    now = replace(record(complete=False, float32=FAILED, bool=STRICT), calls=("copy_", "neg"))
    merged, why = merged_with(FULL, now, lambda op, calls: f"{op} {calls}")
    assert why is None and merged.complete and merged.dtypes == {"float32": FAILED, "int64": STRICT, "bool": STRICT}
    assert merged.calls == ("copy_", "neg") and merged.digest == "neg ('copy_', 'neg')"


@pytest.mark.parametrize(
    ("found", "verdict", "why"),
    [
        (FULL, Verdict.STRICT, None),
        (record(asked=19, float32=STRICT), Verdict.UNTESTED, "only 19 cases were run of each dtype"),
        (record(complete=False, float32=STRICT), Verdict.UNTESTED, "only float32 was run"),
        (record(asked=1, complete=False, float32=FAILED), Verdict.FAILED, "wrong value"),
    ],
    ids=["all", "few cases", "few dtypes", "a fault"],
)
def test_a_narrow_look_counts_for_no_overload_as_strict_and_a_fault_counts(
    found: Record, verdict: Verdict, why: str | None
) -> None:
    row = Overload("neg", State.NATIVE, None, "mudnn", None, found)
    assert (row.verdict, row.reason) == (verdict, why)


# ---- a campaign whose processes say what the test says

DIGESTS = SimpleNamespace(
    torch="2.13.0",
    target="host",
    of=lambda op, calls=(): "digest",
    freeze=lambda: DIGESTS,
)


def ran(store: Store, answer: dict[str, Any], **settings: Any) -> Run:
    whole = {
        "op": "neg",
        "reference": "cpu",
        "reason": None,
        "failure": None,
        "dtypes": {},
        "calls": [],
        "seconds": 0.0,
    }
    (found,) = campaign(
        [Planned("neg", False, False)],
        Settings(**settings),
        cast(Any, DIGESTS),
        Path("/"),
        store,
        store.load_all(),
        fresh=True,
        run=lambda tasks, jobs: iter([{**whole, **answer} for _ in tasks]),
    )
    return found


@pytest.mark.parametrize("failure", [Failure(PROCESS, "before the first case: it died"), Failure(BENCH, "a fault")])
@pytest.mark.parametrize("dtypes", [{}, {"float32": asdict(STRICT)}], ids=["nothing", "half"])
def test_what_could_not_be_run_changes_no_record(tmp_path: Path, failure: Failure, dtypes: dict[str, Any]) -> None:
    store = Store(tmp_path)
    found = ran(store, {"failure": asdict(failure), "dtypes": dtypes})
    assert found.failure == failure and not list(tmp_path.iterdir())
    store.save(FULL)
    before = store.load("neg")
    assert ran(store, {"failure": asdict(failure), "dtypes": dtypes}).failure == failure
    assert store.load("neg") == before


def test_a_run_keeps_what_it_found_where_that_says_as_much(tmp_path: Path) -> None:
    store = Store(tmp_path)
    answer = {"dtypes": {"float32": {**asdict(STRICT), "verdict": "STRICT"}}}
    assert ran(store, answer, cases=2).unkept is None and getattr(store.load("neg"), "asked", None) == 2
    store.save(FULL)
    assert ran(store, answer, cases=2).unkept and store.load("neg") == FULL
    assert ran(store, answer, dtypes=("float32",)).unkept is None
    assert set(getattr(store.load("neg"), "dtypes", ())) == {"float32", "int64"}


def test_a_file_that_does_not_load_ends_the_run(tmp_path: Path) -> None:
    failure = {"kind": "load", "message": "cannot load it: ValueError: no", "path": "mine.py", "line": 3}
    with pytest.raises(OpgenError, match="cannot load it: ValueError: no") as error:
        ran(Store(tmp_path), {"failure": failure})
    assert str(error.value.location) == "mine.py:3" and not list(tmp_path.iterdir())


# ---- the verbs

BROKEN = {
    "statement": ("import torch\n\ndef f():\n    return torch.nonsense\n\nf()\n", 4, "AttributeError: .*nonsense"),
    "elsewhere": ("import json\njson.loads('no')\n", 2, r"JSONDecodeError: .*raised at .*decoder\.py:\d+"),
    "syntax": ("x = 1\ndef f(:\n", 2, "SyntaxError: invalid syntax"),
    "exit": ("import sys\nsys.exit(0)\n", 2, "it ends its process with status 0"),
    "gone": ("import os\nos._exit(0)\n", 0, "cannot load it: ended its process with status 0"),
    "crash": ("import os\nos.abort()\n", 0, "cannot load it: crashed with SIGABRT"),
}


@pytest.mark.parametrize("kind", ["statement", "elsewhere", "syntax", "exit"])
def test_a_failed_load_names_the_statement_and_the_exception(tmp_path: Path, kind: str) -> None:
    import re
    import runpy

    text, line, said = BROKEN[kind]
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(BaseException) as error:  # whatever it raises
        runpy.run_path(str(path))
    failure = of_load(str(path), error.value)
    assert (failure.path, failure.line) == (str(path), line) and re.search(said, failure.message), failure


@pytest.mark.parametrize(("verb", "kind"), [("truth", "statement"), ("test", "crash"), ("truth", "gone")])
def test_a_file_that_does_not_load_is_told_by_each_verb_and_keeps_every_record(
    verb: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import re

    text, line, said = BROKEN[kind]
    path = tmp_path / "broken.py"
    path.write_text(text)
    monkeypatch.setattr(Store, "of", lambda root, target, torch: Store(tmp_path / "store"))
    rest = ["--fresh"] if verb == "truth" else ["--no-judge"]
    with pytest.raises(SystemExit) as stopped:
        main([verb, "neg", "--no-build", "--jobs", "1", "--load", str(path), *rest])
    shown = capfd.readouterr().err
    place = f"{path}:{line}" if line else str(path)
    assert stopped.value.code == 1 and f"{place}: error: cannot load it: " in shown and re.search(said, shown), shown
    assert not (tmp_path / "store").exists()


def test_records_of_loaded_operators_are_kept_beside_the_matrix_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "of", lambda root, target, torch: Store(tmp_path))
    words = ["truth", "truthtest::right", "neg", "truthtest::nowhere", "--load", OPERATORS]
    command = [*words, "--no-build", "--jobs", "1", "--cases", "2", "--dtype", "float32", "--format", "json"]
    result = CliRunner().invoke(opgen, command)
    document = json.loads(result.stdout)
    assert result.exit_code == 1 and list(document["failures"]) == ["truthtest::nowhere"]
    assert list(document["unkept"]) == ["neg"] and sorted(path.stem for path in tmp_path.iterdir()) == [
        "truthtest--right"
    ]
    kept = Store(tmp_path).load("truthtest::right")
    assert kept is not None and kept.loaded == (OPERATORS,)
