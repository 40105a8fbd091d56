"""`opgen trace` on the device: the script runs as it would without, and the report has every operator that it calls."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from search_path import with_path

ROOT = Path(__file__).resolve().parents[2]

# What the device lacks, or runs on the CPU on purpose, gets kernels as the project grows: the first that still fits
# is taken.
_ON_CPU = {
    "linalg_matrix_exp": "torch.linalg.matrix_exp(y)",
    "_fft_r2c": "torch.fft.rfft(y).real",
    "_cdist_forward": "torch.cdist(y, y)",
}
_ON_PURPOSE = {
    "bincount": "torch.bincount(torch.arange(3, device='musa'))",
    "mode": "torch.mode(y).values",
    "histc": "torch.histc(y)",
}
_RAISING = {
    "_sample_dirichlet": "torch._sample_dirichlet(x)",
    "_standard_gamma": "torch._standard_gamma(x)",
    "binomial": "torch.binomial(x, x)",
    "poisson": "torch.poisson(x)",
}


def still(candidates: dict[str, str], family: str | None) -> tuple[str, str]:
    """The first operator that the build serves by this family, None for not at all, and a call of it."""
    table = torch.musa.op_table()
    for op, call in candidates.items():
        if (table[op]["family"] if op in table else None) == family:
            return op, call
    pytest.skip(f"{', '.join(candidates)}: none is {family or 'missing'} any more, so others have to be named here")


TRAINING = """\
import sys
import torch

print("as", __name__, sys.argv, sys.path[0])
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()).to("musa")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    y = model(torch.randn(8, 8).to("musa"))
    loss = MISSING.sum() + PURPOSE.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.ones(3).sinh()  # on the CPU
"""


def start(*arguments: object, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    environment = with_path(PYTHONWARNINGS="ignore")
    command = [sys.executable, "-m", "opgen.cli", "trace", *map(str, arguments)]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=cwd, env=environment, **streams, **options)


def run(*arguments: object, cwd: Path) -> tuple[int, str, str]:
    process = start(*arguments, cwd=cwd)
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


@pytest.fixture
def training(script: Any) -> tuple[Path, str, str]:
    """The training script, the operator that it misses, and the one that goes through the CPU on purpose."""
    (missing, call), (purpose, other) = still(_ON_CPU, None), still(_ON_PURPOSE, "cpu_fallback")
    return script(TRAINING.replace("MISSING", call).replace("PURPOSE", other)), missing, purpose


@pytest.fixture
def script(tmp_path: Path) -> Any:
    def write(text: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_training_scripts_missing_operators_come_first_with_the_command_that_begins_them(training, tmp_path):
    path, lacking, purpose = training
    status, out, err = run("--yaml", ROOT / "yaml" / "musa_functions.yaml", path, "--lr", "1", "--help", cwd=ROOT)
    assert status == 0, err
    assert out.startswith(f"as __main__ {[str(path), '--lr', '1', '--help']} {tmp_path}\n")
    report = out[out.index("\n\n") :]
    missing, on_cpu, rest = (
        report.index("missing: ran on"),
        report.index("ran on the CPU on purpose"),
        report.index("on the device"),
    )
    assert missing < on_cpu < rest
    assert f"opgen new {lacking}" in report[missing:on_cpu] and f"opgen explain {purpose}" in report[on_cpu:rest]
    rows = {line.split()[0]: line.split() for line in report.splitlines() if line}
    assert int(rows["addmm"][1]) >= 3 and int(rows["mm"][1]) >= 3  # forward, and backward on autograd's thread
    assert "_foreach_add_.List" in rows and "sinh" not in rows


def test_json_has_standard_output_to_itself_and_times_that_make_sense(training):
    path, lacking, _ = training
    status, out, err = run("--format", "json", path, cwd=ROOT)
    document = json.loads(out)
    assert status == document["exit"] == 0 and "as __main__" in err
    ops = {row["op"]: row for row in document["overloads"]}
    assert document["overloads"][0]["standing"] == "missing" and ops[lacking]["on_cpu"] == ops[lacking]["calls"] >= 3
    assert ops["addmm"]["dtypes"] == {"float32": 3} and ops["addmm"]["family"] == "mudnn"
    assert ops["linear"]["family"] == "composite" and ops["linear"]["calls"] == 3
    assert 0 < document["totals"]["seconds"] <= document["seconds"]
    assert all(row["seconds"] >= 0 for row in document["overloads"])
    assert sum(row["seconds"] for row in document["overloads"]) == pytest.approx(document["totals"]["seconds"])


def test_the_report_can_go_to_a_file(script, tmp_path):
    path = script("import torch\nprint('hello')\ntorch.ones(2, device='musa') + 1\n")
    status, out, err = run("--output", tmp_path / "report.txt", "--top", "1", path, cwd=ROOT)
    assert (status, out) == (0, "hello\n") and f"wrote {tmp_path / 'report.txt'}" in err
    text = (tmp_path / "report.txt").read_text()
    assert "the first 1 of" in text and "\x1b" not in text


@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [
        ("sys.exit(7)", 7, ""),
        ("sys.exit('enough')", 1, "enough"),
        ("raise ValueError('no luck')", 1, "ValueError: no luck"),
        ("RAISING", 1, "NotImplementedError"),
        ("import threading; threading.Thread(target=lambda: (__import__('time').sleep(0.3), x.tanh())).start()", 0, ""),
    ],
)
def test_however_a_script_ends_it_ends_so_and_the_report_comes(script, ending, status, said):
    op, call = still(_RAISING, None) if ending == "RAISING" else ("", ending)
    path = script(f"import sys, torch\nx = torch.ones(3, device='musa')\ny = x + 1\n{call}\n")
    found, out, err = run("--format", "json", path, cwd=ROOT)
    document = json.loads(out)
    ops = {row["op"]: row for row in document["overloads"]}
    assert found == document["exit"] == status
    assert said in err and "runner.py" not in err and "runpy" not in err
    assert "add.Tensor" in ops
    assert ("tanh" in ops) is ("Thread" in ending)
    if op:
        assert (document["overloads"][0]["op"], document["overloads"][0]["standing"]) == (op, "raised")
        assert document["overloads"][0]["next"] == f"opgen new {op}"


def test_interrupting_reports_what_was_done(script):
    path = script("import torch, time\ntorch.ones(3, device='musa') + 1\nprint('ready', flush=True)\ntime.sleep(600)\n")
    process = start(path, cwd=ROOT, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "KeyboardInterrupt" in err and "add.Tensor" in out


def test_ending_the_command_ends_the_script(script, tmp_path):
    marker = tmp_path / "alive"
    path = script(f"import torch, time\nprint('ready', flush=True)\ntime.sleep(20)\nopen({str(marker)!r}, 'w')\n")
    process = start(path, cwd=ROOT)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.terminate()
    process.communicate(timeout=15)
    assert process.returncode == 143 and not marker.exists()


def test_a_script_that_is_killed_or_leaves_at_once_is_a_message(script):
    for ending, code, said in (
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + 9, "signal 9 (SIGKILL)"),
        ("os.abort()", 128 + 6, "signal 6 (SIGABRT)"),
        ("os._exit(4)", 4, "with status 4"),
        ("os._exit(0)", 1, "with status 0"),  # its report is not there
    ):
        path = script(f"import os, signal, torch\n{ending}\n")
        status, out, err = run(path, cwd=ROOT)
        assert status == code and said in err and "Traceback" not in err and out == ""


def test_processes_that_a_script_starts_do_not_disturb_the_report(script):
    path = script(
        "import multiprocessing, os, torch\n"
        "def work(n):\n    print('child', n, flush=True)\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn'):\n"
        "        process = multiprocessing.get_context(method).Process(target=work, args=(method,))\n"
        "        process.start(); process.join(); assert process.exitcode == 0\n"
        "    if os.fork() == 0:\n        raise SystemExit(5)\n"
        "    os.wait()\n"
        "    torch.ones(2, device='musa').tanh()\n"
    )
    status, out, err = run("--format", "json", path, cwd=ROOT)
    assert status == 0, err
    assert "child fork" in err and "child spawn" in err
    assert "tanh" in {row["op"] for row in json.loads(out)["overloads"]}


def test_modules_and_folders_run_as_python_runs_them(tmp_path):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("NAME = 'helped'\n")
    text = "import sys, torch\nfrom {} import NAME\nprint(NAME, __name__)\ntorch.ones(1, device='musa').tanh()\n"
    (package / "__main__.py").write_text(text.format("pack.helper"))
    status, out, err = run("-m", "pack", cwd=tmp_path)
    assert status == 0 and out.startswith("helped __main__\n") and "tanh" in out, err
    (tmp_path / "single").mkdir()
    (tmp_path / "single" / "beside.py").write_text("NAME = 'beside'\n")
    (tmp_path / "single" / "run.py").write_text(text.format("beside"))
    status, out, err = run(tmp_path / "single" / "run.py", cwd=tmp_path)
    assert status == 0 and out.startswith("beside __main__\n"), err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("nosuch.py",), 1, "nosuch.py: error: no such script"),
        ((), 2, "Missing argument"),
        (("--top", "-1", "x.py"), 2, "--top"),
        (("--output", "/nosuch/report.txt", "here.py"), 1, "no such folder"),
        (("-m", "no_such_module_anywhere"), 1, "error: no module named 'no_such_module_anywhere'"),
        (("-m", "no_such_module.part"), 1, "error: no module named 'no_such_module'"),
        (("-m", "json.nothing"), 1, "error: no module named 'json.nothing'"),
        (("-m", "email"), 1, "'email' is a package without a module __main__"),
        (("broken.py",), 1, "SyntaxError"),
    ],
)
def test_bad_input_is_a_message(tmp_path, arguments, status, said):
    (tmp_path / "here.py").write_text("print('must not run')\n")
    (tmp_path / "broken.py").write_text("def (\n")
    found, out, err = run(*arguments, cwd=tmp_path)
    assert found == status and said in err, err
    assert "Traceback" not in err and "must not run" not in out


def test_a_device_that_is_not_there_is_a_message(script):
    path = script("print('must not run')\n")
    environment = with_path(TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    done = subprocess.run(
        [sys.executable, "-m", "opgen.cli", "trace", str(path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "device 'musa' is not usable" in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


def test_the_example_is_traced_whole():
    """The README's own command, shortened: a CNN in training, nothing of it missing."""
    before = time.monotonic()
    status, out, err = run(
        "--format", "json", "examples/train_digits.py", "--epochs", "1", "--no-compare-cpu", cwd=ROOT
    )
    document = json.loads(out)
    assert status == 1 and "a promise is broken" in err  # one epoch does not learn enough
    assert document["totals"]["missing"] == document["totals"]["raised"] == document["totals"]["on_cpu"] == 0
    ops = {row["op"] for row in document["overloads"]}
    assert {"convolution_overrideable", "convolution_backward_overrideable", "native_batch_norm_backward"} <= ops
    assert document["totals"]["seconds"] < time.monotonic() - before
