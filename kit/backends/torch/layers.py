"""A workload as PyTorch modules, channels first, and its optimizer.

workload (channels last)                      PyTorch (channels first)
Conv2D kernel (h, w, in, out)            ──►  weight (out, in, h, w)
Dense kernel (in, out)                   ──►  weight (out, in)
LayerNorm, batch norm: scale, offset     ──►  weight, bias
recurrent kernel (in, gates units)       ──►  weight_ih (gates units, in), with the gates in the same order
recurrent bias                           ──►  bias_ih; the second bias, bias_hh, is zero and not trained
Dense after Flatten: rows in (h, w, c) order  ──►  columns in (c, h, w) order
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from kit.backends.torch.about import ENTRY
from kit.workloads import workload as kinds
from kit.workloads.seeded_arrays import Weights
from kit.workloads.workload import PlacedLayer, Shape, Workload

# The workload's name of a weight -> the parameter, and the order that the workload's axes have in it.
TorchParameters: TypeAlias = dict[str, tuple[nn.Parameter, tuple[int, ...]]]
KeysAndValues: TypeAlias = tuple[torch.Tensor, torch.Tensor]

KERNEL_AXES = (3, 2, 0, 1)
ACTIVATIONS = {"linear": [], "relu": [nn.ReLU], "tanh": [nn.Tanh], "sigmoid": [nn.Sigmoid]}
DIRECTIONS = {"": "", "forward_": "", "backward_": "_reverse"}  # prefix of a workload's weights -> suffix of PyTorch's


class TorchRecurrent(nn.Module):  # type: ignore[misc]
    """An nn.RNN or nn.LSTM that returns the states of all steps, or the last state of each direction."""

    def __init__(self, recurrent: nn.RNNBase, *, sequences: bool = False) -> None:
        super().__init__()
        self.recurrent = recurrent
        self._sequences = sequences
        for name, parameter in recurrent.named_parameters():
            if name.startswith("bias_hh"):
                nn.init.zeros_(parameter.requires_grad_(False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, steps, units) or (batch, units) for (batch, steps, features); both directions side by side."""
        if torch.is_autocast_enabled(x.device.type):
            # On a CPU without bfloat16 instructions PyTorch chooses its own kernel by the type of the input.
            x = x.to(torch.get_autocast_dtype(x.device.type))
        states, last = self.recurrent(x)
        if self._sequences:
            return states
        return (last[0] if isinstance(self.recurrent, nn.LSTM) else last).transpose(0, 1).flatten(1)

    def parameters_by_name(self, prefixes: Iterable[str] = ("",)) -> TorchParameters:
        """Return where the weights of each direction go."""
        return {
            f"{prefix}{name}": (getattr(self.recurrent, f"{parameter}_l0{DIRECTIONS[prefix]}"), axes)
            for prefix in prefixes
            for name, parameter, axes in (
                ("kernel", "weight_ih", (1, 0)),
                ("recurrent_kernel", "weight_hh", (1, 0)),
                ("bias", "bias_ih", (0,)),
            )
        }


class TorchPositions(nn.Module):  # type: ignore[misc]
    """Adds a table of (tokens, width)."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(tokens, width))

    def forward(self, x: torch.Tensor, at: torch.Tensor | None = None) -> torch.Tensor:
        """Return (batch, tokens, width); with `at` (1,), of the one token there."""
        return x + (self.table[: x.shape[1]] if at is None else self.table[at])


class TorchLastToken(nn.Module):  # type: ignore[misc]
    """Takes the last token."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, width) for (batch, tokens, width)."""
        return x[:, -1]


class TorchDecoderBlock(nn.Module):  # type: ignore[misc]
    """See `kit.workloads.workload.DecoderBlock`; its parts have the names that their weights begin with.

    It is made of building blocks, as the documentation of nn.TransformerEncoderLayer recommends, and as the tutorial on
    scaled dot product attention makes its CausalSelfAttention
    (https://docs.pytorch.org/tutorials/intermediate/scaled_dot_product_attention_tutorial.html).
    """

    def __init__(self, width: int, layer: kinds.DecoderBlock) -> None:
        super().__init__()
        self._heads = layer.heads
        self._gelu = "none" if layer.gelu == "exact" else layer.gelu
        self.norm_1 = nn.LayerNorm(width, eps=layer.epsilon)
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width, eps=layer.epsilon)
        self.up = nn.Linear(width, kinds.MLP_FACTOR * width)
        self.down = nn.Linear(kinds.MLP_FACTOR * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, tokens, width)."""
        return self.with_cache(x)[0]

    def with_cache(
        self, x: torch.Tensor, cache: KeysAndValues | None = None, at: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, KeysAndValues]:
        """Return (batch, tokens, width), and the keys and values, each (batch, heads, tokens, width of a head).

        Args:
            x: (batch, tokens, width).
            cache: those of all places, which get those of the one token of `x`; None: `x` is all there is.
            at: (1,), the place of that token.
        """
        qkv = self.qkv(self.norm_1(x)).unflatten(-1, (3, self._heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind()
        mask = None
        if cache is not None:
            for kept, new in zip(cache, (key, value), strict=True):
                kept.index_copy_(2, at, new)
            key, value = cache
            mask = torch.arange(key.shape[2], device=x.device)[None] <= at
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None)
        x = x + self.projection(seen.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate=self._gelu)), (key, value)


class TorchTiedLogits(nn.Module):  # type: ignore[misc]
    """Multiplies with the table of an embedding."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, tokens, vocabulary) for (batch, tokens, width)."""
        return F.linear(x, self.embedding.weight)


class TorchNormed(nn.Sequential):  # type: ignore[misc]
    """A convolution without a bias, and batch norm; named as torchvision's `Conv2dNormActivation` orders them."""

    def __init__(
        self, inputs: int, filters: int, side: int, stride: int, layer: kinds.ConvolutionStem | kinds.Bottleneck
    ) -> None:
        conv = nn.Conv2d(inputs, filters, side, stride=stride, padding=side // 2, bias=False)
        super().__init__(conv, nn.BatchNorm2d(filters, eps=layer.epsilon, momentum=1 - layer.momentum))


class TorchBottleneck(nn.Module):  # type: ignore[misc]
    """See `kit.workloads.workload.Bottleneck`; its parts have the names that their weights begin with."""

    def __init__(self, shape: Shape, layer: kinds.Bottleneck) -> None:
        super().__init__()
        inputs, wide = shape[-1], layer.output_shape(shape)[-1]
        self.narrow = TorchNormed(inputs, layer.filters, 1, 1, layer)
        self.middle = TorchNormed(layer.filters, layer.filters, 3, layer.stride, layer)
        self.wide = TorchNormed(layer.filters, wide, 1, 1, layer)
        if layer.widens(shape):
            self.shortcut = TorchNormed(inputs, wide, 1, layer.stride, layer)
        else:
            self.shortcut = nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, 4 filters, height, width)."""
        narrow = F.relu(self.narrow(x), inplace=True)
        middle = F.relu(self.middle(narrow), inplace=True)
        return F.relu(self.wide(middle).add_(self.shortcut(x)), inplace=True)


def build_modules(workload: Workload, weights: Weights) -> nn.Sequential:
    """Return the network with `weights` in it."""
    modules: list[nn.Module] = []
    image: Shape | None = None  # before the last Flatten, until a layer with weights has taken its rows
    for placed in workload.placed_layers():
        if isinstance(placed.layer, kinds.TiedLogits):
            modules.append(TorchTiedLogits(modules[0]))
            continue
        layer, parameters = _translate(placed)
        modules += layer
        for name, (parameter, axes) in parameters.items():
            array = weights[f"{placed.name}.{name}"]
            rows = image if name == "kernel" and array.ndim == 2 else None  # noqa: PLR2004
            placed_array = array.reshape(*rows, -1).transpose(KERNEL_AXES) if rows else array.transpose(axes)
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(placed_array).reshape(parameter.shape))
        if isinstance(placed.layer, kinds.Flatten) and len(placed.input_shape) > 1:
            image = placed.input_shape
        elif parameters:
            image = None
    return nn.Sequential(*modules)


def _translate(placed: PlacedLayer) -> tuple[list[nn.Module], TorchParameters]:  # noqa: PLR0911, PLR0912 - one a kind
    inputs = placed.input_shape[-1]
    match layer := placed.layer:
        case kinds.Dense():
            linear = nn.Linear(inputs, layer.units)
            return [linear, *(module() for module in ACTIVATIONS[layer.activation])], _parameters(linear)
        case kinds.Conv2D():
            conv = nn.Conv2d(inputs, layer.filters, layer.kernel, padding=layer.padding)
            parameters = {"kernel": (conv.weight, KERNEL_AXES), "bias": (conv.bias, (0,))}
            return [conv, *(module() for module in ACTIVATIONS[layer.activation])], parameters
        case kinds.MaxPool2D():
            return [nn.MaxPool2d(layer.size)], {}
        case kinds.Dropout():
            return [nn.Dropout(layer.rate)], {}
        case kinds.Flatten():
            return [nn.Flatten()], {}
        case kinds.SimpleRNN():
            rnn = TorchRecurrent(nn.RNN(inputs, layer.units, batch_first=True))
            return [rnn], rnn.parameters_by_name()
        case kinds.LSTM():
            stock = nn.LSTM(inputs, layer.units, batch_first=True, bidirectional=layer.bidirectional)
            lstm = TorchRecurrent(stock, sequences=layer.sequences)
            return [lstm], lstm.parameters_by_name(layer.prefixes)
        case kinds.Positions():
            positions = TorchPositions(*placed.input_shape)
            return [positions], {"table": (positions.table, (0, 1))}
        case kinds.LayerNorm():
            norm = nn.LayerNorm(inputs, eps=layer.epsilon)
            return [norm], _parameters(norm)
        case kinds.DecoderBlock():
            block = TorchDecoderBlock(inputs, layer)
            return [block], _of_parts(block)
        case kinds.LastToken():
            return [TorchLastToken()], {}
        case kinds.Embedding():
            embedding = nn.Embedding(layer.vocabulary, layer.width)
            return [embedding], {"table": (embedding.weight, (0, 1))}
        case kinds.ConvolutionStem():
            stem = TorchNormed(inputs, layer.filters, 7, 2, layer)
            return [stem, nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)], _parameters(stem)
        case kinds.Bottleneck():
            bottleneck = TorchBottleneck(placed.input_shape, layer)
            return [bottleneck], _of_parts(bottleneck)
        case kinds.AveragePool():
            return [nn.AdaptiveAvgPool2d(1), nn.Flatten()], {}
        case _:
            raise ENTRY.untranslated(layer)


def _of_parts(block: nn.Module) -> TorchParameters:
    parts = block.named_children()
    return {f"{part}_{name}": parameter for part, module in parts for name, parameter in _parameters(module).items()}


def _parameters(module: nn.Module) -> TorchParameters:
    if isinstance(module, nn.Identity):
        return {}
    if isinstance(module, TorchNormed):
        conv, norm = module
        return {"kernel": (conv.weight, KERNEL_AXES), **_parameters(norm)}
    if isinstance(module, nn.LayerNorm | nn.BatchNorm2d):
        return {"scale": (module.weight, (0,)), "offset": (module.bias, (0,))}
    return {"kernel": (module.weight, (1, 0)), "bias": (module.bias, (0,))}


def build_optimizer(rule: kinds.Optimizer, parameters: Iterable[nn.Parameter], **form: bool) -> torch.optim.Optimizer:
    """Return PyTorch's optimizer of that name for what is trained, every hyperparameter given.

    `form` chooses its implementation, by PyTorch's own arguments `foreach` and `fused`.
    """
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    match rule:
        case kinds.SGD(rate):
            return torch.optim.SGD(trained, lr=rate, **form)
        case kinds.RMSprop(rate, rho, epsilon):
            return torch.optim.RMSprop(trained, lr=rate, alpha=rho, eps=epsilon, **form)
        case kinds.Adadelta(rate, rho, epsilon):
            return torch.optim.Adadelta(trained, lr=rate, rho=rho, eps=epsilon, **form)
        case kinds.Adam(rate, beta_1, beta_2, epsilon):
            return torch.optim.Adam(trained, lr=rate, betas=(beta_1, beta_2), eps=epsilon, **form)
