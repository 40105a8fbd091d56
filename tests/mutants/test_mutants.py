"""The seeded faults fit the sources they are for: `make mutants` tries them, which takes a build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mutant_set
import pytest

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = mutant_set.load(Path(__file__).parent)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_fault_fits_its_source(mutant: mutant_set.Mutant) -> None:
    start, end = mutant_set.locate(mutant, (ROOT / mutant.file).read_text(encoding="utf-8"))
    assert end - start == len(mutant.replace)
    assert mutant.instead != mutant.replace


def test_faults_are_many_and_of_every_kind() -> None:
    kinds = {mutant.kind for mutant in MUTANTS}
    wanted = {
        *("wrong axis", "ignored argument", "wrong stride", "missing cast", "forgotten resize", "wrong gradient"),
        *("off by one", "swapped operands", "in-place not in place", "silent fallback", "missing broadcast"),
        *("ignores storage offset", "wrong nan handling", "wrong rounding", "wrong reduction of empty tensors"),
        *("wrong keepdim", "non-deterministic", "input modified", "wrong dtype promotion", "wrong error type"),
        *("wrong view aliasing", "generator offset not advanced", "seed ignored", "missing warning"),
    }
    assert len(MUTANTS) >= 40 and wanted <= kinds, wanted - kinds


def test_faults_of_one_file_do_not_overlap() -> None:
    changed = dict(mutant_set.apply(MUTANTS, ROOT))
    for name, text in changed.items():
        if name.endswith((".cpp", ".cu", ".cuh")):
            assert text.count("::mutants::on(") == sum(m.file == name and not m.always for m in MUTANTS)


def test_fault_whose_source_has_changed_is_named_with_what_to_do() -> None:
    mutant = replace(MUTANTS[0], replace="text that is nowhere;", within=None)
    with pytest.raises(
        mutant_set.Stale, match=r"entry 1 .*: kernels/\S+ has 0 places with\n(.*\n)+.*as it stands there"
    ):
        mutant_set.locate(mutant, (ROOT / mutant.file).read_text(encoding="utf-8"))


def test_fault_that_fits_in_two_places_asks_for_more_text() -> None:
    with pytest.raises(mutant_set.Stale, match="too short"):
        mutant_set.locate(replace(MUTANTS[0], replace="a", within=None), "a a")


def test_malformed_entry_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("- name: one\n  kind: k\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"x.yaml, entry 1 \(one\): lacks file, overloads, replace, with"):
        mutant_set.load(tmp_path)
