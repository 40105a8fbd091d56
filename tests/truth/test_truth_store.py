"""The store: a record is whole or not there, whatever happens while it is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from opgen.coverage.matrix import Matrix, Overload, State
from opgen.coverage.report import to_json
from opgen.diagnostics import OpgenError
from opgen.truth.record import DtypeResult, Record, Verdict
from opgen.truth.store import Store, committed_records

RESULT = DtypeResult(Verdict.FAILED, cases=20, agreed=3, failed=17, families={"mudnn": 20}, reason="why", script="x")


def record(op: str, **dtypes: DtypeResult) -> Record:
    return Record(op, "2.13.0", "host", "abc", 7, "cpu", "d" * 64, 0.5, dtypes, None, 20, True, (op, "copy_"))


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "b")
    assert store.load("tril") is None and store.load_all() == {}
    records = {op: record(op, float32=RESULT) for op in ("tril", "tril_", "add.Tensor", "musa::swiglu")}
    for one in records.values():
        store.save(one)
    assert store.load_all() == records == {op: store.load(op) for op in records}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"op": "tril"}', '{"op": 3, "dtypes": 4}'])
def test_a_file_that_is_no_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "tril.json").write_text(text)
    assert Store(tmp_path).load("tril") is None
    assert Store(tmp_path).load_all() == {}


def test_a_folder_that_cannot_be_written_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OpgenError, match="cannot keep the record"):
        Store(tmp_path / "file" / "below").save(record("tril"))


def test_a_writer_that_is_killed_leaves_the_old_record_or_the_new_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(record("tril", float32=RESULT))
    program = f"""
        from pathlib import Path
        from dataclasses import replace
        from opgen.truth.store import Store
        store = Store(Path({str(tmp_path)!r}))
        one = store.load("tril")
        print("go", flush=True)
        for seed in range(10**9):
            store.save(replace(one, seed=seed))
    """
    for delay in (0.0, 0.003, 0.011, 0.02):
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, env=os.environ
        )
        assert writer.stdout is not None and writer.stdout.readline()
        time.sleep(delay)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        found = store.load("tril")
        assert found is not None and found.dtypes == {"float32": RESULT}
    assert set(store.load_all()) == {"tril"}


def test_committed_records_are_those_of_the_rows(tmp_path: Path) -> None:
    tried, untried = record("tril", float32=RESULT), Overload("triu", State.MISSING, None, None, None)
    named = Record("_to_sparse", "2.13.0", "host", "abc", 0, "cpu", "e", 0.0, reason="no arguments", asked=20)
    rows = [Overload(one.op, State.NATIVE, "unstructured", "mudnn", None, one) for one in (tried, named)]
    path = tmp_path / "coverage.json"
    path.write_text(to_json(Matrix("2.13.0", (*rows, untried), ())))
    assert committed_records(path) == {"tril": tried, "_to_sparse": named}


@pytest.mark.parametrize("document", [{}, {"torch": "2.13.0", "overloads": [{"op": "tril", "verdicts": {}}]}, []])
def test_a_coverage_json_of_before_has_no_records(tmp_path: Path, document: object) -> None:
    path = tmp_path / "coverage.json"
    path.write_text(json.dumps(document))
    assert committed_records(path) == {} == committed_records(tmp_path / "none.json")
