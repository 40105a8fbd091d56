"""benchmarks/gpu.py on the host: what it would measure on a GPU runs here, and what goes wrong costs its own line."""

from __future__ import annotations

import contextlib
import json
import math
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"

# As the scripts themselves find them: their folder is the first on the path.
sys.path.insert(0, str(BENCHMARKS))
try:
    import gpu
    import gpu_report
    from side_by_side import alone, cases, explain, measure, models, record, report, worker
    from side_by_side.measure import Pair, Side
    from side_by_side.record import Figure, Launched, Machine, Run, Unreadable
finally:
    sys.path.remove(str(BENCHMARKS))

MACHINE = Machine("cuda", "cuda", "NVIDIA H200", "2.11.0+cu130", "13.0", "580.1", "Xeon", 16, "3.12.3")
PAIR = Pair(Side("musa"), Side("cpu"))
ALL = {case.key: case for case in cases.all_cases(cases.TINY)}


def script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / name), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)


# ---- the whole of it, as a user runs it


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """One run on the host, of a few cases of each kind."""
    out = tmp_path_factory.mktemp("gpu") / "run.json"
    words = (
        "issue/add",
        "allocator/a block of 512 B",
        "Transformer, 1 layer, 2 x 8 tokens, float32",
        "matmul/mm, 8 x 8",
    )
    chosen = [word for name in (*words, "elementwise/add/", "sort/topk") for word in ("--only", name)]
    done = script("gpu.py", "--host", "--seconds", "300", "--out", str(out), *chosen)
    return SimpleNamespace(done=done, out=out)


def test_a_run_measures_each_case_and_writes_figures_table_and_plot(trial: SimpleNamespace) -> None:
    assert trial.done.returncode == 0, trial.done.stdout + trial.done.stderr
    run = record.load(trial.out)
    assert (run.machine.musa, run.machine.native, run.machine.torch) == ("host", "cpu", torch.__version__)
    assert len(run.figures) == 9 and {figure.state for figure in run.figures} <= {"met", "short"}
    assert [figure.elements for figure in run.figures if figure.name == "add"] == [1 << 12, 1 << 14]
    for figure in run.figures:
        assert figure.musa_s is not None and 0 < figure.musa_s < 10 and figure.date
        assert f"{figure.key}: " in trial.done.stderr
    assert trial.out.with_suffix(".md").read_text(encoding="utf-8") == report.table(run) == trial.done.stdout
    drawn = "".join(ElementTree.parse(trial.out.with_suffix(".svg")).getroot().itertext())
    assert all(figure.name in drawn for figure in run.figures)


def test_the_table_and_the_plot_are_made_from_the_file_alone(trial: SimpleNamespace, tmp_path: Path) -> None:
    """On a machine that has neither torch nor a device."""
    code = f"""
        import sys
        sys.path.insert(0, {str(BENCHMARKS)!r})
        sys.modules["torch"] = None
        import gpu_report
        sys.exit(gpu_report.main([{str(trial.out)!r}, "--plot", {str(tmp_path / "plot.svg")!r}]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, trial.out.with_suffix(".md").read_text(encoding="utf-8")), done.stderr
    assert (tmp_path / "plot.svg").read_bytes() == trial.out.with_suffix(".svg").read_bytes()


def test_profile_prints_what_each_device_does(tmp_path: Path) -> None:
    done = script("gpu.py", "--host", "--profile", "issue/mm", "--out", str(tmp_path / "none.json"))
    assert done.returncode == 0, done.stderr
    for device in ("musa", "cpu"):
        assert re.search(rf"issue/mm, 64 x 64 floats on {device}: one call, ", done.stdout)
    assert len(re.findall(r"^ +[\d.]+ +1  aten::mm$", done.stdout, re.MULTILINE)) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--host", "--only", "no such case"), "no case is named like no such case: --list names them"),
        ((), "musa runs on target host here: build with `opgen build --target cuda`"),
    ],
)
def test_what_cannot_be_measured_is_said_and_nothing_is_written(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    done = script("gpu.py", *arguments, "--out", str(tmp_path / "run.json"))
    assert done.returncode != 0 and says in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


# ---- what is measured


@pytest.mark.parametrize("key", [key for key, case in ALL.items() if case.elements != 1 << 14])
def test_both_devices_do_the_same_in_every_case(key: str) -> None:
    case = ALL[key]
    calls = [case.call(side.device) for side in PAIR.sides]
    for call in calls:
        call()
    if case.check is not None:
        case.check(PAIR, calls)
    else:
        assert case.group == "allocator"
    assert case.amount > 0 or case.unit == "us"


def test_a_device_that_computes_something_else_is_found_out() -> None:
    check = cases.agree(lambda x: x + (1 if x.device.type == "musa" else 0), lambda d: (torch.ones(3, device=d),), 1e-5)
    figure = worker.figure_of(replace(ALL["issue/add, 8 floats"], check=check), PAIR, 0.01)
    assert figure.state == "failed" and figure.reason.startswith("failed: the devices disagree: ")
    assert figure.musa_s is None


def test_at_full_size_there_are_the_cases_that_were_promised() -> None:
    full = list(cases.all_cases(cases.FULL))
    assert len({case.key for case in full}) == len(full)
    assert {case.group for case in full} == set(record.GROUPS)
    for group in record.BANDWIDTH:
        assert {case.elements for case in full if case.group == group} == {1 << n for n in (20, 22, 24, 26, 28)}
    small = [case.name for case in full if case.group == "issue"]
    assert [name.split(",")[0] for name in small] == ["add", "mul", "relu", "sum", "mm"]
    trained = [case.name for case in full if case.group == "training"]
    assert all(any(name.startswith(model) for name in trained) for model in ("ResNet-50,", "Transformer, 6 layers,"))


def test_the_models_have_the_sizes_of_their_papers() -> None:
    def parameters(model: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in model.parameters())

    with torch.device("meta"):
        assert parameters(models.resnet((3, 4, 6, 3))) == 25_557_032
        transformer = models.Transformer(37_000, 512, 256, 6)
    layer = 4 * (512 * 512 + 512) + 2 * 512 * 2048 + 2048 + 512 + 4 * 512
    assert parameters(transformer) == 6 * layer + 37_000 * 512


@dataclass(frozen=True)
class Slow:
    """A side whose work takes its time."""

    device: str
    behind: bool = False

    def synchronize(self) -> None:
        pass


def _steps(pair: Pair, calls: list, seconds: float) -> measure.Measured:
    takers = [partial(measure.take_steps, side, call) for side, call in zip(pair.sides, calls, strict=True)]
    return measure.steps(takers, seconds)


@pytest.mark.parametrize("method", [measure.issue, _steps, measure.device])
def test_the_slower_device_is_measured_as_slower(method: Callable[..., measure.Measured]) -> None:
    pair = Pair(Slow("musa"), Slow("cpu"))  # type: ignore[arg-type]
    calls: list = [lambda: time.sleep(6e-3), lambda: time.sleep(2e-3)]
    extra = (5,) if method is measure.issue else ()
    measured = method(pair, [[call] for call in calls] if method is measure.device else calls, 0.1, *extra)
    assert measured.rounds >= 3
    assert 2 < measured.musa / measured.native < 4
    times = replace(Figure("issue", "x", "us"), musa_s=measured.musa, native_s=measured.native)
    speeds = replace(times, group="sort", unit="GB/s", amount=1.0)
    assert times.ratio is not None and times.ratio > 2 and times.state == "short"
    assert speeds.ratio is not None and speeds.ratio < 0.5 and speeds.state == "short"


TRAINING = next(case for case in ALL.values() if case.name.startswith("Transformer"))


@pytest.fixture
def pair() -> Iterator[Pair]:
    """With a process of its own for the CPU."""
    pair = Pair(Side("musa"), Side("cpu"))
    yield pair
    pair.alone.close()


def test_native_trains_and_is_looked_at_in_a_process_without_this_backend(pair: Pair) -> None:
    assert alone.environment()["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
    with pair.alone.case("cpu", TRAINING.key):
        losses = [pair.alone.first("cpu") for _ in range(2)]
        own: object = TRAINING.call("cpu")()
        assert losses[1] != losses[0] == pytest.approx(float(own), rel=1e-4)  # type: ignore[arg-type]
        process = pair.alone._process
        assert process is not None and "libtorch_musa" not in Path(f"/proc/{process.pid}/maps").read_text()
        assert 0 < pair.alone.sample("cpu", 2) < 10
    found = explain.alone(ALL["issue/mm, 64 x 64 floats"], pair, None)
    assert "aten::mm" in [name for name, _, _ in found.host] and pair.alone._process is process
    pair.alone.close()
    assert process.returncode == 0


def test_what_fails_in_the_other_process_fails_its_case_alone(pair: Pair) -> None:
    with pytest.raises(RuntimeError, match="cpu alone: no case was begun"):
        pair.alone.first("cpu")
    with pytest.raises(RuntimeError, match=r"cpu alone: .*no such case"):
        pair.alone.ask("cpu", "begin", case="no such case")
    assert pair.alone._process is not None
    with (
        pytest.raises(RuntimeError, match="the process of cpu alone ended with code -9"),
        pair.alone.case("cpu", TRAINING.key),
    ):
        pair.alone._process.kill()
        pair.alone.first("cpu")
    figure = worker.figure_of(TRAINING, pair, 0.01)  # a new one starts
    assert figure.reason == "" and figure.native_s is not None and figure.native_s > 0


@pytest.mark.parametrize("where", ["CUDA", "PrivateUse1"])
def test_kernels_are_counted_whichever_device_the_profiler_names(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch gives CUDA's kernels to PrivateUse1 where such a backend has a name."""

    def event(device: str, us: float) -> SimpleNamespace:
        time_range = SimpleNamespace(elapsed_us=lambda: us)
        kind = getattr(torch.autograd.DeviceType, device)
        return SimpleNamespace(name=f"on {device}", device_type=kind, time_range=time_range)

    profiler = SimpleNamespace(events=lambda: [event("CPU", 9), event(where, 30), event(where, 70)], key_averages=list)
    monkeypatch.setattr(explain, "profile", lambda **_: contextlib.nullcontext(profiler))
    case = replace(ALL["issue/add, 8 floats"], count=2)
    assert explain.launched(case, PAIR.musa, None).kernels == [(f"on {where}", 1.0, 50.0)]


def test_what_went_through_the_cpu_is_noted() -> None:
    case = replace(ALL["issue/add, 8 floats"], call=_falls_back, check=None, count=1)
    figure = worker.figure_of(case, PAIR, 0.01)
    assert figure.note.startswith("through the CPU: ")


LIBRARY = torch.library.Library("gpubench", "DEF")
LIBRARY.define("twice(Tensor x) -> Tensor")
LIBRARY.impl("twice", lambda x: x + x, "CPU")


def _falls_back(device: str) -> Callable[[], object]:
    """An operator that no device but the CPU has."""
    return partial(torch.ops.gpubench.twice, torch.ones(2, device=device))


# ---- what goes wrong

WORKERS = {
    "ends": "os.kill(os.getpid(), signal.SIGSEGV)",
    "hangs": "time.sleep(60)",
    "breaks": "sys.exit(3)",
}


def fake_worker(path: Path, second: str) -> list[str]:
    """A worker of three cases, the second of which does this."""
    path.write_text(
        textwrap.dedent(f"""
            import json, os, signal, sys, time
            request = json.load(sys.stdin)
            out = os.fdopen(request["fd"], "w")
            def say(**what):
                print(json.dumps(what), file=out, flush=True)
            names = ["first", "second", "third"]
            case = lambda name: dict(group="issue", name=name, unit="us")
            say(cases=[case(name) for name in names])
            say(machine={MACHINE.__dict__!r})
            for name in names:
                if "issue/" + name in request["done"]:
                    continue
                say(begin="issue/" + name)
                if name == "second":
                    {second}
                say(figure=dict(case(name), musa_s=1e-6, native_s=1e-6, date="2026-11-30T00:00:00"))
        """)
    )
    return [sys.executable, str(path)]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("ends", "failed: its process ended by SIGSEGV"),
        ("hangs", "failed: its process said nothing for 1 s and was ended"),
        ("breaks", "failed: its process ended with code 3"),
    ],
)
def test_a_case_that_takes_its_process_along_costs_one_line(
    how: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "WORKER", fake_worker(tmp_path / "fake.py", WORKERS[how]))
    out = tmp_path / "run.json"
    assert gpu.main(["--out", str(out), "--patience", "1"]) == 1
    figures = {figure.name: figure for figure in record.load(out).figures}
    assert (figures["first"].state, figures["third"].state) == ("met", "met")
    assert figures["second"].reason == reason
    assert f"- issue: second: {reason}" in capsys.readouterr().out


def test_what_was_measured_before_an_interruption_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The script, which waits for its worker, is the worker's parent. It has a while to read what was said so far.
    ending = fake_worker(tmp_path / "fake.py", "time.sleep(2); os.kill(os.getppid(), signal.SIGINT); time.sleep(60)")
    monkeypatch.setattr(gpu, "WORKER", ending)
    started = time.monotonic()
    assert gpu.main(["--out", str(tmp_path / "run.json")]) == 1
    assert time.monotonic() - started < 30
    assert [figure.name for figure in record.load(tmp_path / "run.json").figures] == ["first"]
    captured = capsys.readouterr()
    assert "| first | 1 | 1 | us | 1.000 |" in captured.out and "interrupted" in captured.err


def test_an_unwritable_file_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path, tmp_path / "file" / "run.json"):
        done = script("gpu.py", "--host", "--out", str(out))
        assert done.returncode == 1 and done.stderr.startswith(f"--out {out}: ")
        assert "Traceback" not in done.stderr and "[1/" not in done.stderr


def test_when_the_time_is_over_the_rest_is_not_run_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # torch.testing, once a test beside this one has imported it, keeps switches such as TF32's from being set.
    monkeypatch.setattr(measure, "exact", lambda: None)
    said: list[dict] = []
    words = ("elementwise/exp", "elementwise/gelu")
    request = worker.Request(0, True, time.monotonic() - 1, words, (), True, False, False)
    threads = torch.get_num_threads()
    try:
        assert worker.work(request, said.append) == 0
    finally:
        torch.set_num_threads(threads)
    figures = [record.figure_from(what["figure"]) for what in said if "figure" in what]
    assert [figure.reason for figure in figures] == ["not run: the time given was over"] * 4


# ---- the file, the table, the page


def figures() -> Iterator[Figure]:
    """One of each state, and sizes."""
    common = {"date": "2026-11-30T10:00:00+00:00", "rounds": 9}
    yield Figure("issue", "add, 8 floats", "us", musa_s=6e-6, native_s=5e-6, **common)
    yield Figure(
        "issue", "mul, 8 floats", "us", musa_s=5e-6, native_s=5e-6, note="through the CPU: aten::mul", **common
    )
    launched = Launched(80.0, [("void at::native::kernel<float>(int)", 2.0, 80.0)], [("aten::mm", 1.0, 9.0)])
    where = {"musa": launched, "cuda": replace(launched, kernels_us=60.0)}
    yield Figure("matmul", "mm, 4096", "TFLOP/s", 1e12, musa_s=2e-3, native_s=1e-3, where=where, **common)
    for exponent in (20, 22):
        elements = 1 << exponent
        yield Figure("sort", "sort", "GB/s", 16.0 * elements, elements, 1e-3, 1e-3, **common)
    yield Figure("sort", "topk", "GB/s", 4.0, 1 << 20, reason="failed: out of | memory", **common)
    yield Figure("training", "ResNet-50", "images/s", 64.0, reason="not run: the time given was over")


def test_states_are_what_the_targets_say() -> None:
    states = {figure.name: figure.state for figure in figures()}
    assert states == {
        "add, 8 floats": "short",
        "mul, 8 floats": "met",
        "mm, 4096": "short",
        "sort": "met",
        "topk": "failed",
        "ResNet-50": "not run",
    }
    at_target = {"issue": 1.15, "allocator": 1.05, "matmul": 0.98, "convolution": 0.98}
    for name, group in record.GROUPS.items():
        target = at_target.get(name, 0.95)
        assert group.met(target) and not group.met(target + (1e-6 if group.most else -1e-6))


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = Run(MACHINE, tuple(figures()))
    record.save(run, tmp_path / "new" / "run.json")
    assert record.load(tmp_path / "new" / "run.json") == run
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["run.json"]
    (item, *_) = json.loads((tmp_path / "new" / "run.json").read_text())["figures"]
    assert (item["state"], item["target"], round(item["ratio"], 3)) == ("short", "≤ 1.15", 1.2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no record of benchmarks/gpu.py"),
        ("[]", "no record of benchmarks/gpu.py"),
        ('{"version": 7}', "format 7, where this script reads 1"),
        ('{"version": 1, "machine": {}, "figures": []}', "no record of benchmarks/gpu.py"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_none_of_ours_is_named(text: str | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Unreadable, match=re.escape("run.json: ")) as raised:
        record.load(path)
    assert says in str(raised.value)
    done = script("gpu_report.py", str(path))
    assert done.returncode == 1 and says in done.stderr and "Traceback" not in done.stderr


def test_parts_of_a_run_are_put_together_and_a_failure_replaces_no_time() -> None:
    before = tuple(figures())
    later = (
        replace(before[0], musa_s=4e-6),
        replace(before[1], musa_s=None, native_s=None, reason="failed: no memory"),
        replace(before[-1], musa_s=1.0, native_s=1.0, reason=""),
    )
    paths = (Path("a"), Path("b"))
    merged = record.merged([Run(MACHINE, before), Run(MACHINE, later)], paths)
    assert merged.figures == (later[0], before[1], later[2], *before[2:-1])
    with pytest.raises(Unreadable, match=re.escape("b: torch is '2.13.0', in a '2.11.0")):
        record.merged([Run(MACHINE, before), Run(replace(MACHINE, torch="2.13.0"), later)], paths)


def test_the_table_shows_ratios_targets_failures_and_where_the_time_goes() -> None:
    text = report.table(Run(MACHINE, tuple(figures())))
    assert text.startswith("Measured on 2026-11-30, NVIDIA H200, torch 2.11.0+cu130, CUDA 13.0, driver 580.1, ")
    for line in (
        "| add, 8 floats | 6 | 5 | us | 1.200 | ≤ 1.15 | **short** |  |",
        "| mul, 8 floats | 5 | 5 | us | 1.000 | ≤ 1.15 | met | through the CPU: aten::mul |",
        "| mm, 4096 | 500 | 1,000 | TFLOP/s | 0.500 | ≥ 0.98 | **short** |  |",
        "| sort | 1.000 (16.8, 16.8) | 1.000 (67.1, 67.1) |  |",
        "| topk | **failed** |  |  |",
        "| Sorting | speeds | ≥ 0.95 | 2 of 3 | 1.000 | 1.000 |",
        "- sort: topk (2^20): failed: out of \\| memory",
        "- training: ResNet-50: not run: the time given was over",
        "- mm, 4096, ratio 0.500: musa 80 us in kernels (`at::native::kernel<float>(int)` 2 × 40 us); on the CPU "
        "`aten::mm` 1 × 9 us. cuda 60 us in kernels (`at::native::kernel<float>(int)` 2 × 40 us); on the CPU "
        "`aten::mm` 1 × 9 us.",
    ):
        assert f"\n{line}\n" in text, text
    columns = [re.sub(r"\\\|", "", line).count("|") for line in text.splitlines() if line.startswith("|")]
    assert set(columns) == {5, 7, 9}


def test_where_no_kernel_was_seen_the_table_claims_none() -> None:
    """A profiler that sees no kernels has not found out that there are none."""
    launched = Launched(0.0, [], [("aten::add", 1.0, 9.0), ("Activity Buffer Request", 0.02, 400.0)])
    on_both = {"musa": launched, "cuda": launched}
    small = Figure("issue", "add", "us", musa_s=2e-6, native_s=1e-6, where=on_both)
    large = Figure("sort", "sort", "GB/s", 16.0, 1 << 20, 2e-3, 1e-3, where=on_both)
    text = report.table(Run(MACHINE, (small, large)))
    line = "- add, ratio 2.000: musa on the CPU `aten::add` 1 × 9 us. cuda on the CPU `aten::add` 1 × 9 us."
    assert f"\n{line}\n" in text and "- sort, 2^20, ratio" not in text


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::sort<float>(int)", "at::native::sort<float>(int)"),
        ("void (anonymous namespace)::f<A<B<int>>>(" + "int, " * 20 + "int)", "f"),
        ("x" * 200, "x" * 69 + "…"),
    ],
)
def test_names_of_kernels_are_kept_short(name: str, short: str) -> None:
    assert report._short(name) == short


def test_equal_runs_are_drawn_alike_with_what_failed(tmp_path: Path) -> None:
    run = Run(MACHINE, tuple(figures()))
    for name in ("a.svg", "b.svg"):
        report.plot(run, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    drawn = "".join(ElementTree.parse(tmp_path / "a.svg").getroot().itertext())
    assert all(text in drawn for text in ("mm, 4096", "topk", "failed", "not run", "NVIDIA H200", "cuda"))
    for some in (run.figures[:2], run.figures[3:5], ()):
        report.plot(Run(MACHINE, tuple(some)), tmp_path / "some.svg")


def test_a_run_is_kept_in_docs_and_a_trial_is_not(tmp_path: Path) -> None:
    page = f"# Title\n\nBefore.\n\n{report.BEGIN}\n\nstale\n{report.END}\n\nAfter.\n"
    (tmp_path / gpu_report.PAGE).write_text(page)
    record.save(Run(MACHINE, tuple(record.in_order(figures()))), tmp_path / "run.json")
    assert gpu_report.main([str(tmp_path / "run.json"), "--keep", "--docs", str(tmp_path)]) == 0
    run = gpu_report.kept(tmp_path)
    assert run == record.load(tmp_path / "run.json")
    text = (tmp_path / gpu_report.PAGE).read_text(encoding="utf-8")
    assert text.startswith("# Title\n\nBefore.\n") and text.endswith("\n\nAfter.\n") and "stale" not in text
    assert f"]({gpu_report.PICTURE})" in text and (tmp_path / gpu_report.PICTURE).is_file()
    assert report.in_page(text, run, gpu_report.PICTURE) == text
    with pytest.raises(ValueError, match="the page has no"):
        report.in_page("# Title", run, gpu_report.PICTURE)
    record.save(Run(replace(MACHINE, native="cpu"), ()), tmp_path / "trial.json")
    with pytest.raises(SystemExit, match="a trial on the host"):
        gpu_report.main([str(tmp_path / "trial.json"), "--keep", "--docs", str(tmp_path)])
    assert (tmp_path / gpu_report.PAGE).read_text(encoding="utf-8") == text


def test_the_page_shows_the_run_that_is_kept() -> None:
    """Or says that there is none."""
    page = (gpu_report.DOCS / gpu_report.PAGE).read_text(encoding="utf-8")
    run = gpu_report.kept(gpu_report.DOCS)
    assert page == report.in_page(page, run, gpu_report.PICTURE), "benchmarks/gpu_report.py --keep renews it"
    assert (report.NO_RUN in page) is (run is None)
    if run is not None:
        assert run.machine.native == "cuda" and math.isfinite(sum(f.ratio or 0 for f in run.figures))
