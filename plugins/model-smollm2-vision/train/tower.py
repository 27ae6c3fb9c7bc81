"""EfficientNet-Lite0 (Tan and Le, arXiv 1905.11946) without batch norms, and LLaVA's projector."""

import math

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

# (repeats, kernel, stride, expansion, output channels)
STAGES = [(1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192), (1, 3, 1, 6, 320)]
STEM, HEAD, HIDDEN = 32, 1280, 768


def layout():
    """The blocks, as config.json lists them."""
    blocks, channels = [], STEM
    for repeats, kernel, stride, expand, out in STAGES:
        for turn in range(repeats):
            blocks.append({"kernel_size": kernel, "stride": stride if turn == 0 else 1, "expand_ratio": expand, "in_channels": channels, "out_channels": out})
            channels = out
    return blocks


class Depthwise(torch.autograd.Function):
    """A depthwise convolution whose kernel gets no gradient: its backward is a convolution, too, many
    times faster on a CPU than torch's own."""

    @staticmethod
    def forward(ctx, x, weight, bias, stride):
        ctx.save_for_backward(weight)
        ctx.stride, ctx.size = stride, x.shape[2:]
        return F.conv2d(x, weight, bias, stride, groups=weight.shape[0])

    @staticmethod
    def backward(ctx, grad):
        weight = ctx.saved_tensors[0].to(grad.dtype)
        kernel, stride = weight.shape[2], ctx.stride
        if stride > 1:
            spread = grad.new_zeros([grad.shape[0], grad.shape[1], *ctx.size]).to(memory_format=torch.channels_last)
            rows, columns = (grad.shape[2] - 1) * stride + 1, (grad.shape[3] - 1) * stride + 1
            spread[:, :, :rows:stride, :columns:stride] = grad
            grad = spread[:, :, : ctx.size[0] - kernel + 1, : ctx.size[1] - kernel + 1]
        return F.conv2d(grad, weight.flip(2, 3), None, 1, kernel - 1, 1, weight.shape[0]), None, None, None


class Conv(nn.Conv2d):
    """With TensorFlow's padding SAME and, unless it is linear, ReLU6."""

    def __init__(self, inputs, outputs, kernel=1, stride=1, groups=1, linear=False):
        super().__init__(inputs, outputs, kernel, stride, groups=groups)
        self.linear = linear

    def forward(self, x):
        kernel, stride = self.kernel_size[0], self.stride[0]
        total = [max((math.ceil(size / stride) - 1) * stride + kernel - size, 0) for size in x.shape[2:]]
        if any(total):
            x = F.pad(x, (total[1] // 2, total[1] - total[1] // 2, total[0] // 2, total[0] - total[0] // 2))
        x = Depthwise.apply(x, self.weight, self.bias, stride) if self.groups > 1 else F.conv2d(x, self.weight, self.bias, stride)
        return x if self.linear else F.relu6(x)


class Block(nn.Module):
    def __init__(self, spec):
        super().__init__()
        wide = spec["in_channels"] * spec["expand_ratio"]
        self.expand = Conv(spec["in_channels"], wide) if spec["expand_ratio"] > 1 else None
        self.depthwise = Conv(wide, wide, spec["kernel_size"], spec["stride"], groups=wide)
        self.project = Conv(wide, spec["out_channels"], linear=True)
        self.residual = spec["stride"] == 1 and spec["in_channels"] == spec["out_channels"]

    def forward(self, x):
        y = self.project(self.depthwise(x if self.expand is None else self.expand(x)))
        return x + y if self.residual else y


class Tower(nn.Module):
    """Pixels `[B, 3, H, W]`, normalized, to states `[B, H / 32 * W / 32, 1280]`, row by row."""

    def __init__(self, start=None):
        super().__init__()
        self.stem = Conv(3, STEM, 3, 2)
        self.blocks = nn.ModuleList(Block(spec) for spec in layout())
        self.head = Conv(STAGES[-1][-1], HEAD)
        if start:
            state = {name: value.float() for name, value in load_file(start).items() if not name.startswith("projection")}
            self.load_state_dict(state)

    def train_from(self, first):
        """Freezes what is before the block `first`, and every depthwise convolution."""
        self.requires_grad_(False)
        for block in self.blocks[first:]:
            for conv in (block.expand, block.project):
                if conv is not None:
                    conv.requires_grad_(True)
        self.head.requires_grad_(True)

    def forward(self, pixels):
        x = self.stem(pixels.contiguous(memory_format=torch.channels_last))
        for block in self.blocks:
            x = block(x)
        return self.head(x).flatten(2).transpose(1, 2)


class Projector(nn.Module):
    """Two linear layers, from states of the tower to rows that stand for tokens."""

    def __init__(self, width):
        super().__init__()
        self.linear_1 = nn.Linear(HEAD, HIDDEN)
        self.linear_2 = nn.Linear(HIDDEN, width)

    def forward(self, states):
        return self.linear_2(F.gelu(self.linear_1(states)))
