"""CUDA source to MUSA source: `.cu` to `.mu`, `.cuh` to `.muh`.

The sources under kernels/ported are written in CUDA's dialect and ported by the build, so they are never stored twice.
Names are changed token by token on a real parse; text inside strings and comments stays as it is, and line numbers stay
the same, so a compiler message about line 40 of a `.mu` is about line 40 of its `.cu`.

    from opgen.port import port_file, port_tree
    report = port_tree(Path("kernels/ported"), Path("build/ported"))
"""

from opgen.port.files import FileReport, State, port_file, ported_path
from opgen.port.mapping import Mapping, load_mapping, without_defaults
from opgen.port.rewrite import Options, Ported, port_text
from opgen.port.rules import Rules, read_rules, rules_of
from opgen.port.tree import Tree, TreeReport, port_tree, run

__all__ = [
    "FileReport",
    "Mapping",
    "Options",
    "Ported",
    "Rules",
    "State",
    "Tree",
    "TreeReport",
    "load_mapping",
    "port_file",
    "port_text",
    "port_tree",
    "ported_path",
    "read_rules",
    "rules_of",
    "run",
    "without_defaults",
]
