"""Seeds faults into a copy of the tree and asks whether the tests find every one: `make mutants`.

python tests/mutants/run.py                 all of them, and docs/mutants.md renewed with --write
python tests/mutants/run.py -k softmax      those whose name, kind or file has the word
python tests/mutants/run.py --check         only: do they still fit the sources?
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mutant_set
from mutant_set import Mutant

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "build" / "mutants" / "tree"
# a fault may make a kernel wait for ever
_PATIENCE = 300


@dataclass(frozen=True)
class Result:
    """What became of one fault."""

    mutant: Mutant
    found: bool
    how: str
    overload: str = ""
    case: int = 0
    reproduced: bool | None = None
    seconds: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every fault was found."""
    options = _options(arguments)
    try:
        mutants = mutant_set.load(Path(__file__).parent)
        changed = dict(mutant_set.apply(mutants, ROOT))
    except (mutant_set.Stale, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(mutants)} faults of {len({mutant.kind for mutant in mutants})} kinds in {len(changed) - 1} files")
    if options.check:
        return 0
    _copy_tree(changed)
    if not options.no_build and not _build(options.jobs):
        return 2
    chosen = [m for m in mutants if options.k in f"{m.name} {m.kind} {m.file}"] if options.k else list(mutants)
    looker = Looker()
    spoilt = _baseline(looker, mutants, chosen, options.count)
    if spoilt:
        print("error: without any fault the harness already reports:\n" + "\n".join(spoilt), file=sys.stderr)
        return 2
    results = _try_all([looker, *(Looker() for _ in range(options.jobs - 1))], chosen, options.count)
    missed = [result for result in results if not result.found]
    silent = [result for result in results if result.reproduced is False]
    print(f"\n{len(results) - len(missed)} of {len(results)} faults found; {len(silent)} scripts show no difference")
    _save(results)
    if options.write and not options.k:
        (ROOT / "docs" / "mutants.md").write_text(_page(results), encoding="utf-8")
    return 1 if missed or silent else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Seeds faults and asks whether the tests find them.")
    parser.add_argument("-k", default="", help="only faults whose name, kind or file has this in it")
    parser.add_argument("--check", action="store_true", help="only see whether every fault still fits its source")
    parser.add_argument("--count", type=int, default=100, help="cases for each overload (default: 100)")
    parser.add_argument("--jobs", type=int, default=1, help="compilers, and then faults, at a time (default: 1)")
    parser.add_argument("--no-build", action="store_true", help="take the library as it was built last")
    parser.add_argument("--write", action="store_true", help="renew docs/mutants.md")
    return parser.parse_args(arguments)


def _copy_tree(changed: dict[str, str]) -> None:
    """The working tree as git sees it, with the faults; files that are as they were keep their time stamps."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    wanted = {name for name in names if name and (ROOT / name).is_file()} | {*changed}
    for name in sorted(wanted):
        content = changed[name].encode() if name in changed else (ROOT / name).read_bytes()
        target = TREE / name
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for path in TREE.rglob("*"):
        relative = path.relative_to(TREE)
        ours = relative.parts[0] not in {"build", "generated", ".git"} and "__pycache__" not in relative.parts
        if path.is_file() and ours and str(relative) not in wanted:
            path.unlink()


def _environment() -> dict[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(TREE), "OMP_NUM_THREADS": "1"}
    environment.update({"TORCH_CPP_LOG_LEVEL": "ERROR", "MUDNN_LOG_LEVEL": "FATAL"})
    environment.pop("OPGEN_MUTANT", None)
    if shutil.which("ccache"):
        environment.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
        environment["CCACHE_BASEDIR"] = str(TREE)
    return environment


def _build(jobs: int) -> bool:
    started = time.monotonic()
    # opgen looks for the root of the project above the working directory
    command = [sys.executable, "-c", "from opgen.cli import main; main()", "build", "-j", str(jobs)]
    done = subprocess.run(command, cwd=TREE, env=_environment(), check=False)
    print(f"build: {time.monotonic() - started:.0f} s")
    return done.returncode == 0


class Looker:
    """The process that looks; see look.py."""

    def __init__(self) -> None:
        command = [sys.executable, str(TREE / "tests" / "mutants" / "look.py")]
        self._process = subprocess.Popen(
            command, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, mutant: Mutant | None, patience: int = _PATIENCE, **request: Any) -> tuple[str, Any]:
        """How the child ended where it did not end well, or "", and its answer."""
        assert self._process.stdin and self._process.stdout
        number = mutant.number if mutant and not mutant.always else -1
        self._process.stdin.write(json.dumps({**request, "number": number, "patience": patience}) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        if "error" in reply:
            raise SystemExit(f"error: {mutant.name if mutant else 'without a fault'}: {reply['error']}")
        return reply.get("ended", ""), reply.get("answer")


def _baseline(looker: Looker, mutants: Sequence[Mutant], chosen: Sequence[Mutant], count: int) -> list[str]:
    """What is reported where no fault is on: nothing, or the faults are no proof."""
    always = {name for mutant in mutants if mutant.always for name in mutant.overloads}
    switched = {(name, m.backward) for m in mutants if not m.always for name in m.overloads}
    clash = [f"  {name}: a fault that is always there concerns it, too" for name, _ in switched if name in always]
    pairs = sorted({(name, m.backward) for m in chosen if not m.always for name in m.overloads})
    ended, reports = looker.ask(None, _PATIENCE * len(pairs), overloads=pairs, count=count, all=True)
    told = [
        f"  {report['overload']}: {report['category']}: {report['text']}\n    {report['arguments']}"
        for report in reports or ()
        if report["case"]
    ]
    return clash + told + ([f"  the process {ended}"] if ended else [])


def _try_all(lookers: Sequence[Looker], mutants: Sequence[Mutant], count: int) -> list[Result]:
    """One fault to each process that looks, until all have been tried."""
    free: queue.SimpleQueue[Looker] = queue.SimpleQueue()
    for looker in lookers:
        free.put(looker)

    def attempt(mutant: Mutant) -> Result:
        looker = free.get()
        try:
            return _try(looker, mutant, count)
        finally:
            free.put(looker)

    results = []
    with ThreadPoolExecutor(len(lookers)) as pool:
        for result in pool.map(attempt, mutants):
            results.append(result)
            _tell(result)
    return results


def _try(looker: Looker, mutant: Mutant, count: int) -> Result:
    started = time.monotonic()
    pairs = [(name, mutant.backward) for name in mutant.overloads]
    ended, reports = looker.ask(mutant, overloads=pairs, count=count, all=False)
    seconds = time.monotonic() - started
    if ended:
        return Result(mutant, True, f"the process {ended}", seconds=seconds)
    last = reports[-1]
    if not last["case"]:
        return Result(mutant, False, f"nothing in {sum(r['cases'] for r in reports)} cases", seconds=seconds)
    how = f"{last['category']}: {last['text'].splitlines()[0]}"
    reproduced = None if last["category"] in _OF_MANY_CALLS else _reproduces(looker, last, mutant)
    return Result(mutant, True, how, last["overload"], last["case"], reproduced, seconds)


# random numbers differ from device to device; what is wrong with them shows in many, or in several calls
_OF_MANY_CALLS = frozenset({"wrong distribution", "wrong generator state", "not deterministic"})


def _reproduces(looker: Looker, report: dict[str, Any], mutant: Mutant) -> bool:
    """True when the printed script, run on its own, shows different things for the CPU and the device."""
    if report["category"] == "wrong warnings":
        return _warns_differently(report["script"], mutant)
    ended, text = looker.ask(mutant, script=report["script"])
    if ended:
        return True
    if report["category"] == "silent CPU fallback":
        return "on the CPU: {} {}" not in text
    cpu, device = text.split("--- cpu\n")[1].split("--- musa\n")
    return cpu.replace("cpu", "musa") != device.replace("musa:0", "musa")


def _warns_differently(script: str, mutant: Mutant) -> bool:
    """Warnings of C++ go to stderr, unless PyTorch is told otherwise before it is loaded."""
    environment = {**_environment(), "OPGEN_MUTANT": str(mutant.number), "PYTHONUNBUFFERED": "1"}
    environment.pop("TORCH_CPP_LOG_LEVEL")
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=TREE,  # which comes before PYTHONPATH
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PATIENCE,
        check=True,
    )
    cpu, device = done.stdout.split("--- cpu\n")[1].split("--- musa\n")
    return cpu.count("Warning") != device.count("Warning")


def _tell(result: Result) -> None:
    mark = "found" if result.found else "MISSED"
    where = f" ({result.overload}, case {result.case})" if result.case else ""
    note = "" if result.reproduced in (True, None) else "  [the script shows no difference]"
    print(f"{mark:6} {result.mutant.name}{where}: {result.how[:150]}{note}", flush=True)


def _save(results: Sequence[Result]) -> None:
    rows = [
        {
            "name": result.mutant.name,
            "kind": result.mutant.kind,
            "file": result.mutant.file,
            "found": result.found,
            "how": result.how,
            "overload": result.overload,
            "case": result.case,
            "script": result.reproduced,
            "seconds": round(result.seconds, 1),
        }
        for result in results
    ]
    path = ROOT / "build" / "mutants" / "report.json"
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


_INTRODUCTION = """\
# Seeded faults

Do the tests find a fault when there is one? `make mutants` puts faults into a copy of the tree, builds it, and asks.
Each fault is a few characters of a source (`tests/mutants/*.yaml`), compiled behind a switch and tried alone, in a
process of its own, with the harness that `tests/ops` stands on ([testing.md](testing.md)). Without any fault the
harness reports nothing; with each of them it has to. The script that comes with a report is run as well, and must show
the difference.

```
make mutants                                  # all of them; writes this page
python tests/mutants/run.py -k softmax        # some
python tests/mutants/run.py --check           # do they still fit the sources? (a test of `make test`, too)
```

A source that has moved on makes its faults stale: the check names the entry, and the piece of text to write anew.

"""


def _page(results: Sequence[Result]) -> str:
    found = sum(result.found for result in results)
    shown = sum(result.reproduced is True for result in results)
    kinds = {result.mutant.kind for result in results}
    lines = [
        _INTRODUCTION,
        f"**{found} of {len(results)} faults found**, of {len(kinds)} kinds; {shown} scripts were run and show the "
        "difference. *Case* counts the random cases of the overload up to the first that reports.\n",
        "| fault | kind | source | found in | case | report |",
        "|---|---|---|---|---|---|",
    ]
    for result in sorted(results, key=lambda result: (result.mutant.file, result.mutant.number)):
        mutant = result.mutant
        how = (result.how if result.found else f"**missed**: {result.how}").replace("|", "\\|")
        how = how if len(how) < 140 else how[:137] + "..."
        overload = f"`{result.overload}`{' (gradient)' if mutant.backward else ''}" if result.overload else ""
        source = f"`{Path(mutant.file).name}`"
        lines.append(f"| {mutant.name} | {mutant.kind} | {source} | {overload} | {result.case or ''} | {how} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
