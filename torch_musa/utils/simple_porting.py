"""CUDA source to MUSA source from Python, as a package's setup.py does it:

    from torch_musa.utils.simple_porting import SimplePorting

    SimplePorting(cuda_dir_path="mine/csrc", mapping_rule={"MINE_WITH_CUDA": "MINE_WITH_MUSA"}).run()

makes `mine/csrc_musa`. From a shell: `python -m torch_musa.utils.simple_porting --cuda-dir-path mine/csrc`. This is a
thin layer over `opgen port` (docs/port.md), which has more to offer: `--check`, `--diff`, reports.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from opgen.diagnostics import Location, OpgenError
from opgen.port import Options, Rules, Tree, TreeReport, load_mapping, read_rules, rules_of, run, without_defaults
from opgen.port.report import rules_to_write, summary

__all__ = ["SimplePorting"]

_RULES = Path(__file__).parent / "mapping"
_NOT_READ = "general.json"  # a list to choose from, by the manual


class SimplePorting:
    """Ports a folder of CUDA sources into one beside it, called `<folder>_musa`.

    Args:
        cuda_dir_path: the folder; its whole content is carried over, sources ported.
        ignore_dir_paths: folders that are left out whole, as paths from the working folder.
        mapping_rule: rules of the caller's own, which win over all others. A name stands for whole names and for parts
            of names between underscores; other keys are text. Matched in code, never in comments or strings. Not
            changed.
        drop_default_mapping: leave the default rules (the tables of `opgen port` and the JSON files in
            `torch_musa/utils/mapping`) out.
        mapping_dir_path: a folder of JSON files to read in place of `torch_musa/utils/mapping`. `general.json` is not
        read.

    Lists and rules may be given as JSON texts, too. Raises OpgenError for rules that make no sense.
    """

    def __init__(
        self,
        cuda_dir_path: str | Path | None = None,
        ignore_dir_paths: Sequence[str | Path] | str | None = None,
        mapping_rule: Mapping[str, str] | str | None = None,
        drop_default_mapping: bool = False,
        mapping_dir_path: str | Path | None = None,
    ) -> None:
        self.cuda_dir_path = Path(cuda_dir_path or "cuda")
        ignored = _parsed(ignore_dir_paths, "ignore_dir_paths") or []
        paths = isinstance(ignored, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in ignored)
        if not isinstance(ignored, (list, tuple)) or not paths:
            raise OpgenError("ignore_dir_paths is a list of folders", hint='["csrc/npu"]')
        self.ignore_dir_paths = tuple(Path(path) for path in ignored)
        own = _parsed(mapping_rule, "mapping_rule") or {}
        self._rules = rules_of(dict(own) if isinstance(own, Mapping) else own, Location("mapping_rule"))
        self._folder = Path(mapping_dir_path) if mapping_dir_path is not None else None
        self.drop_default_mapping = drop_default_mapping
        if drop_default_mapping and not self._rules and self._folder is None:
            raise OpgenError(
                "drop_default_mapping leaves no rules at all", hint="give mapping_rule or mapping_dir_path"
            )

    @property
    def musa_dir_path(self) -> Path:
        """Where the port goes."""
        whole = Path(os.path.abspath(self.cuda_dir_path))  # noqa: PTH100  # `..` has a name only where it is resolved
        return whole.with_name(f"{whole.name}_musa")

    def run(self) -> TreeReport:
        """Ports the folder and prints what could not be ported, with its places, on standard error.

        Every file is written, also one with a part that could not be ported: that part stays as it is. Nothing is
        deleted, and a file that is there and was not written by an earlier port is left alone. Raises OpgenError where
        nothing can be done (no such folder, an output folder that cannot be written).
        """
        mapping = without_defaults(load_mapping()) if self.drop_default_mapping else load_mapping()
        options = Options(rules=self._default_rules() | self._rules)
        done = run(
            Tree(
                self.cuda_dir_path,
                self.musa_dir_path,
                self.ignore_dir_paths,
                mapping,
                options,
                everything=True,
                partial=True,
            )
        )
        for problem in done.problems:
            print(problem, file=sys.stderr)
        proposals = rules_to_write(done, mapping)
        if proposals:
            print("Rules that may be missing in mapping_rule:", file=sys.stderr)
            for line in proposals:
                old, _, new = line.partition("\t")
                print(f'  "{old}": "{new}",', file=sys.stderr)
        print(f"{self.cuda_dir_path} -> {self.musa_dir_path}: {summary(done, dry=False)}", file=sys.stderr)
        return done

    def _default_rules(self) -> Rules:
        folder = self._folder if self._folder is not None else (None if self.drop_default_mapping else _RULES)
        if folder is None:
            return Rules()
        if not folder.is_dir():
            raise OpgenError("there is no such folder of rules", Location(str(folder)))
        rules = Rules()
        for path in sorted(folder.glob("*.json")):
            if path.name != _NOT_READ:
                rules = rules | read_rules(path)
        return rules


def _parsed(given: object, name: str) -> object:
    """What was given, or what the JSON text says that was given instead."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except json.JSONDecodeError as error:
        raise OpgenError(f"{name} is not JSON: {error.msg}", Location(name, error.lineno, error.colno)) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 if anything could not be ported."""
    parser = argparse.ArgumentParser(prog="python -m torch_musa.utils.simple_porting", description="Port CUDA sources.")
    parser.add_argument("--cuda-dir-path", default="cuda", help="folder to port; the port goes to FOLDER_musa")
    parser.add_argument("--ignore-dir-paths", default="[]", help="folders to leave out, as JSON: '[\"csrc/npu\"]'")
    parser.add_argument("--mapping-rule", default="{}", help='rules of your own, as JSON: \'{"cuda": "musa"}\'')
    parser.add_argument("--drop-default-mapping", action="store_true", help="leave the default rules out")
    parser.add_argument("--mapping-dir-path", help="folder of JSON rules in place of torch_musa/utils/mapping")
    chosen = parser.parse_args(arguments)
    try:
        done = SimplePorting(
            chosen.cuda_dir_path,
            chosen.ignore_dir_paths,
            chosen.mapping_rule,
            chosen.drop_default_mapping,
            chosen.mapping_dir_path,
        ).run()
    except OpgenError as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if any(file.failed for file in done.files) or any(n.severity.value == "error" for n in done.notes) else 0


if __name__ == "__main__":
    sys.exit(main())
