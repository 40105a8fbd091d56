"""Train a small CNN on scikit-learn's digits (1,797 real 8x8 images) on device `musa`, and keep three promises.

1. Test accuracy is at least 97 %.
2. The loss curve equals the CPU's, from the same seed, within 1e-3 (relative, for every epoch's mean training loss).
3. Nothing went through the CPU fallback.

The exit code is 1 when one of them is broken. Everything here is ordinary PyTorch: the backend loads by itself.

    python examples/train_digits.py
    python examples/train_digits.py --optimizer adam --epochs 12 --plot loss.svg
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional as F

ACCURACY = 0.97
CURVE_TOLERANCE = 1e-3
BATCH = 64


@dataclass(frozen=True)
class Digits:
    """Images are float (N, 1, 8, 8) in [0, 1], labels int64 (N,); all on the CPU."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


@dataclass(frozen=True)
class Run:
    """What one training gave: each epoch's mean training loss, and the accuracy on the images it has not seen."""

    losses: list[float]
    accuracy: float
    seconds: float


def load() -> Digits:
    """A stratified split, 1,437 images to learn from and 360 to test on."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target, dtype=torch.int64)
    train, test = train_test_split(range(len(labels)), test_size=0.2, random_state=0, stratify=digits.target)
    return Digits(images[train], labels[train], images[test], labels[test])


def build_model() -> nn.Module:
    """Two convolutions and a linear layer, some 6,200 parameters.

    No dropout, because devices draw different random numbers. SiLU instead of ReLU, because training is then a smooth
    function of rounding: a last bit that differs flips a ReLU now and then, and after ten epochs the curves of two
    correct devices would differ by more than the tolerance.
    """
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.BatchNorm2d(16),
        nn.SiLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.BatchNorm2d(32),
        nn.SiLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 10),
    )


def build_optimizer(name: str, model: nn.Module) -> torch.optim.Optimizer:
    if name == "adam":
        return torch.optim.Adam(model.parameters(), lr=5e-3)
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)


def train(digits: Digits, device: torch.device, arguments: argparse.Namespace, progress: Progress) -> Run:
    """One training. Weights and batch order are drawn on the CPU from the seed, so they are the same everywhere."""
    torch.manual_seed(arguments.seed)
    model = build_model().to(device)
    optimizer = build_optimizer(arguments.optimizer, model)
    steps = arguments.epochs * -(-len(digits.train_labels) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    task = progress.add_task(f"{device}", total=steps, loss=float("nan"))
    started = time.perf_counter()
    losses = []
    for _ in range(arguments.epochs):
        model.train()
        total = torch.zeros((), device=device)
        for batch in torch.randperm(len(digits.train_labels)).split(BATCH):
            images, labels = digits.train_images[batch].to(device), digits.train_labels[batch].to(device)
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach() * len(batch)
            progress.advance(task)
        losses.append(total.item() / len(digits.train_labels))
        progress.update(task, loss=losses[-1])
    accuracy = evaluate(model, digits.test_images.to(device), digits.test_labels.to(device))
    return Run(losses, accuracy, time.perf_counter() - started)


@torch.no_grad()
def evaluate(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    model.eval()
    return (model(images).argmax(dim=1) == labels).float().mean().item()


def largest_difference(losses: list[float], reference: list[float]) -> float:
    """The largest relative difference between two curves of the same length."""
    return max(abs(a - b) / abs(b) for a, b in zip(losses, reference, strict=True))


@contextlib.contextmanager
def count_families(device: torch.device) -> Iterator[Counter[str]]:
    """Counts the block's operator calls by the kernel family that ran them; empty on devices other than musa."""
    families: Counter[str] = Counter()
    if device.type != "musa":
        yield families
        return
    with torch.musa.count_ops() as counts:
        yield families
    families.update(counts.by_family())


def plot(path: str, runs: Mapping[str, Run]) -> None:
    try:
        import matplotlib
    except ImportError:
        sys.exit("--plot needs matplotlib: pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for (name, run), style in zip(runs.items(), ("-", "--"), strict=False):
        axes.plot(range(1, len(run.losses) + 1), run.losses, style, label=name)
    axes.set(xlabel="epoch", ylabel="mean training loss", yscale="log", title="scikit-learn digits")
    axes.legend()
    figure.savefig(path)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small CNN on scikit-learn's digits and check the result.")
    parser.add_argument("--device", default="musa", help="where to train (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the 1,437 images (default: %(default)s)")
    parser.add_argument("--optimizer", choices=("sgd", "adam"), default="sgd", help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and batch order (default: %(default)s)")
    parser.add_argument(
        "--compare-cpu",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="train on the CPU too and compare the loss curves",
    )
    parser.add_argument("--plot", metavar="FILE", help="save the loss curve (SVG, PNG, PDF); needs matplotlib")
    arguments = parser.parse_args(argv)
    if arguments.epochs < 1:
        parser.error("--epochs must be at least 1")
    return arguments


def main(argv: list[str] | None = None) -> int:
    arguments = parse(argv)
    try:
        device = torch.device(arguments.device)
        torch.empty(0, device=device)
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        sys.exit(f"device '{arguments.device}' is not usable: {str(error).splitlines()[0]}")

    torch.set_num_threads(1)  # a batch is some 64 * 8 * 8 * 16 numbers: threads would only wait for each other
    console = Console(soft_wrap=True)
    digits = load()
    runs: dict[str, Run] = {}
    with Progress(
        TextColumn("{task.description:>7}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("batches   loss {task.fields[loss]:.4f}"),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        with count_families(device) as families:
            runs[str(device)] = train(digits, device, arguments, progress)
        if arguments.compare_cpu and device.type != "cpu":
            runs["cpu"] = train(digits, torch.device("cpu"), arguments, progress)

    run = runs[str(device)]
    console.print(f"test accuracy        {run.accuracy:.2%} (promised: at least {ACCURACY:.0%})")
    kept = run.accuracy >= ACCURACY
    if "cpu" in runs and device.type != "cpu":
        difference = largest_difference(run.losses, runs["cpu"].losses)
        console.print(
            f"loss curve vs CPU    largest relative difference {difference:.1e} (at most {CURVE_TOLERANCE:.0e})"
        )
        kept &= difference <= CURVE_TOLERANCE
    if device.type == "musa":
        fallbacks: Mapping[str, int] = torch.musa.fallback_counts()
        listed = ", ".join(f"{op} x{count}" for op, count in fallbacks.items()) or "none"
        console.print(f"CPU fallbacks        {listed}", highlight=False)
        counted = ", ".join(f"{family} {count:,}" for family, count in families.most_common())
        console.print(f"operators by family  {counted} (in all {families.total():,} calls)", highlight=False)
        kept &= not fallbacks
    console.print(f"time                 {', '.join(f'{name} {r.seconds:.1f} s' for name, r in runs.items())}")
    if arguments.plot:
        plot(arguments.plot, runs)
        console.print(f"loss curve saved to  {arguments.plot}", highlight=False)
    if not kept:
        console.print("a promise is broken", style="bold red")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
