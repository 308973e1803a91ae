"""Train a network by Adam on random batches of windows, and stop when it no longer improves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

import numpy as np

from pac_wrap.detectors.lstm.backend import import_torch
from pac_wrap.detectors.lstm.series import Starts
from pac_wrap.errors import InputError

Progress = Callable[[int, int, float, float | None], object]
_LONGEST_GRADIENT = 1.0  # recurrent gradients explode now and then


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
    progress: Progress | None,
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
