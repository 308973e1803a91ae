"""The two networks, as plain torch layers and the functions that run them.

Windows have the shape (time, window, column): an LSTM reads that order fastest.
"""

from typing import Any

from pac_wrap.detectors.lstm.backend import import_torch


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
