"""The torch side of the LSTM detectors: the two networks, how they are trained, and torch itself, optional.

Windows have the shape (time, window, column): an LSTM reads that order fastest.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, Final

import numpy as np

from pac_wrap.errors import InputError, MissingExtraError
from pac_wrap_paper.detectors.lstm_series import Starts

EpochProgress = Callable[[int, int, float, float | None], object]
_LONGEST_GRADIENT: Final = 1.0  # recurrent gradients explode now and then


def import_torch() -> Any:
    """Return the module torch; one sentence says how to get it where it is missing."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            'torch is not installed; run pip install "pac-wrap-ad[deep]", or make deep'
        ) from error
    return torch


def as_device(name: str) -> Any:
    """Return the torch device of a name; "auto" is a CUDA device if there is one, else the processor."""
    torch = import_torch()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, TypeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f'device must be "auto" or a device torch can use here, got {name!r} ({reason}); try device="cpu"'
        ) from error
    return device


@contextmanager
def at_most_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads inside the block, and as many as before after it."""
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def encoder_decoder(columns: int, hidden: int, layers: int, outputs: int) -> Any:
    """Return the layers of an encoder-decoder, not yet initialised."""
    torch = import_torch()
    return torch.nn.ModuleDict(
        {
            "encoder": _lstm(columns, hidden, layers),
            "decoder": _lstm(hidden, hidden, layers),
            "output": _linear(hidden, outputs),
        }
    )


def reconstruct(network: Any, windows: Any, steps: int) -> Any:
    """Return the last `steps` steps of each window as the decoder rebuilds them, the latest first.

    The decoder starts from the last state of the encoder and reads the encoder's last output at every step.
    It is never shown the true values (no teacher forcing): with them it could copy an anomaly instead of
    rebuilding what is usual.
    """
    code, state = network["encoder"](windows)
    rebuilt, _ = network["decoder"](code[-1:].expand(steps, -1, -1), state)
    return network["output"](rebuilt)


def forecaster(columns: int, hidden: int, layers: int, outputs: int) -> Any:
    """Return the layers of a forecaster, not yet initialised."""
    torch = import_torch()
    return torch.nn.ModuleDict(
        {"encoder": _lstm(columns, hidden, layers), "output": _linear(hidden, outputs)}
    )


def forecast(network: Any, windows: Any) -> Any:
    """Return what is predicted from each window, of shape (window, output)."""
    code, _ = network["encoder"](windows)
    return network["output"](code[-1])


def initialise(network: Any, seed: int) -> None:
    """Draw the weights as torch would, from a generator of our own; the global one is not touched."""
    torch = import_torch()
    generator = torch.Generator().manual_seed(seed)
    for layer in network.values():
        fan = layer.hidden_size if isinstance(layer, torch.nn.LSTM) else layer.in_features
        for parameter in layer.parameters():
            torch.nn.init.uniform_(parameter, -(fan**-0.5), fan**-0.5, generator=generator)


def gather(series: Any, starts: Any, length: int) -> Any:
    """Return the windows of a series that begin at the given steps."""
    torch = import_torch()
    steps = torch.arange(length, device=series.device)[:, None] + starts[None, :]
    return series[steps]


def _lstm(inputs: int, hidden: int, layers: int) -> Any:
    torch = import_torch()
    return _empty(torch.nn.LSTM(inputs, hidden, layers, device="meta", dtype=torch.float32))


def _linear(inputs: int, outputs: int) -> Any:
    torch = import_torch()
    return _empty(torch.nn.Linear(inputs, outputs, device="meta", dtype=torch.float32))


def _empty(layer: Any) -> Any:
    # made on the device "meta", a layer draws no weights from torch's global generator
    return layer.to_empty(device="cpu")


@dataclass(frozen=True)
class Schedule:
    """How long and in which steps to train."""

    epochs: int
    patience: int
    batch_size: int
    windows_per_epoch: int
    learning_rate: float


@dataclass
class History:
    """The mean loss of each epoch on both parts of the series, and the epoch whose weights were kept."""

    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best_epoch: int = 0


def train(
    network: Any,
    loss_of: Callable[[Any], Any],
    training: Starts,
    validation: Starts,
    schedule: Schedule,
    random: np.random.Generator,
    progress: EpochProgress | None,
) -> History:
    """Train a network in place and return its history; `loss_of(starts)` is the mean loss of some windows.

    The weights of the epoch with the least validation loss are kept, or those of the last epoch if there
    is no validation part.
    """
    torch = import_torch()
    optimiser = torch.optim.Adam(network.parameters(), lr=schedule.learning_rate)
    history, least, best = History(), inf, None
    for epoch in range(1, schedule.epochs + 1):
        order = random.permutation(training)[: schedule.windows_per_epoch]
        history.training.append(_epoch(network, loss_of, optimiser, order, schedule.batch_size))
        held_out = mean_loss(loss_of, validation, schedule.batch_size) if validation.size else None
        latest = history.training[-1] if held_out is None else held_out
        if not isfinite(latest):
            raise InputError(
                f"the loss must stay finite, got {latest} in epoch {epoch}; lower learning_rate,"
                " or let scale=True standardise the columns"
            )
        if held_out is not None:
            history.validation.append(held_out)
        if held_out is None or held_out < least:
            least, history.best_epoch = latest, epoch
            best = {name: value.clone() for name, value in network.state_dict().items()}
        if progress is not None:
            progress(epoch, schedule.epochs, history.training[-1], held_out)
        if epoch - history.best_epoch >= schedule.patience:
            break
    network.load_state_dict(best)
    return history


def mean_loss(loss_of: Callable[[Any], Any], starts: Starts, batch_size: int) -> float:
    """Return the mean loss over windows, without training on them."""
    torch = import_torch()
    with torch.inference_mode():
        batches = torch.as_tensor(starts).split(batch_size)
        return sum(float(loss_of(batch)) * len(batch) for batch in batches) / starts.size


def _epoch(
    network: Any, loss_of: Callable[[Any], Any], optimiser: Any, order: Starts, batch_size: int
) -> float:
    torch = import_torch()
    total = 0.0
    with torch.enable_grad():
        for batch in torch.as_tensor(order).split(batch_size):
            optimiser.zero_grad()
            loss = loss_of(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), _LONGEST_GRADIENT)
            optimiser.step()
            total += float(loss.detach()) * len(batch)
    return total / order.size
