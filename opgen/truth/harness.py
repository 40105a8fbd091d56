"""The part of the test bench that an overload's verdict depends on.

Comparison, strategies and tolerances concern every overload, a line of the table of domains those that it names. The
table is read as text, so that nothing imports torch to know what has changed.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

__all__ = ["HarnessDigests"]

_DOMAINS = "domains"
# modules of opgen.truth that decide what a record says
_PROBE = ("judging.py", "probe.py")


class HarnessDigests:
    """Digests of opgen.testing, which lies in ``package`` (the folder of opgen itself)."""

    def __init__(self, package: Path) -> None:
        testing = package / "testing"
        common = [path for path in sorted(testing.rglob("*.py")) if path.parent.name != _DOMAINS]
        common += [package / "truth" / name for name in _PROBE]
        self._lines: dict[str, str] = {}
        for path in sorted((testing / _DOMAINS).glob("*.py")):
            lines, rest = split_table(path.read_text(encoding="utf-8"))
            if not lines:
                common.append(path)  # what all sections build on
            self._lines.update({name: _sha(f"{line}\0{rest}") for name, line in lines.items()})
        self.common = _sha(
            "\0".join(
                f"{path.relative_to(package).as_posix()}\0{path.read_text(encoding='utf-8')}" for path in sorted(common)
            )
        )

    def of(self, op: str) -> str:
        """The digest for ``"add_.Tensor"`` or ``"musa::rope"``: its line in the table, as `domain_of` finds it, too."""
        namespace, _, name = op.rpartition("::")
        base, _, overload = name.partition(".")
        root = base[:-1] if base.endswith("_") and not base.endswith("__") else base
        prefix = f"{namespace}::" if namespace else ""
        for key in (f"{base}.{overload}", f"{root}.{overload}", base, root):
            if prefix + key in self._lines:
                return _sha(f"{self.common}\0{self._lines[prefix + key]}")
        return self.common


def split_table(text: str) -> tuple[Mapping[str, str], str]:
    """A section's source as the lines of its TABLE, by operator name, and everything else. No TABLE, no lines."""
    raw = text.encode()
    starts = list(accumulate((len(line) for line in raw.splitlines(keepends=True)), initial=0))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + column

    lines: dict[str, str] = {}
    rest, at = b"", 0
    for node in ast.parse(text).body:
        named = isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "TABLE" for t in node.targets)
        if not (named and isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)):
            continue
        for key, value in zip(node.value.keys, node.value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                assert value.end_lineno is not None and value.end_col_offset is not None
                end = place(value.end_lineno, value.end_col_offset)
                segment = raw[place(value.lineno, value.col_offset) : end]
                lines.update(dict.fromkeys(key.value.split(), segment.decode()))
                rest, at = rest + raw[at : place(key.lineno, key.col_offset)], end
    # what is left between the lines of the table decides nothing
    rest = b"\n".join(line for line in (rest + raw[at:]).splitlines() if line.strip() not in (b",", b""))
    return lines, rest.decode()


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
