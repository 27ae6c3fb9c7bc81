"""EfficientNet-Lite as an image tower: the network without batch norms, and its export.

Tan and Le, "EfficientNet" (arXiv:1905.11946); the Lite variants leave out squeeze-and-excite and
use ReLU6. The batch norms of the published ImageNet weights are folded into the convolutions
before the training (their statistics stay those of ImageNet), so what is trained is what is served.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

# (repeats, kernel, stride, expansion, output channels), as published for Lite0
STAGES = [
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
]
STEM, HEAD, EPS = 32, 1280, 1e-3


def scaled(channels, width):
    """Channels times the width coefficient, rounded to a multiple of 8 as EfficientNet does."""
    wide = channels * width
    rounded = max(8, int(wide + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * wide else rounded


def layout(width=1.0, depth=1.0):
    """The blocks one by one: dicts of kernel, stride, expand, in and out channels."""
    blocks, channels = [], STEM
    for index, (repeats, kernel, stride, expand, out) in enumerate(STAGES):
        fixed = index in (0, len(STAGES) - 1)  # first and last stages keep their depth
        count = repeats if fixed else math.ceil(repeats * depth)
        for turn in range(count):
            blocks.append(
                {
                    "kernel": kernel,
                    "stride": stride if turn == 0 else 1,
                    "expand": expand,
                    "in": channels,
                    "out": scaled(out, width),
                }
            )
            channels = scaled(out, width)
    return blocks


def same_padding(size, kernel, stride):
    """TensorFlow's "same": what is odd goes to the end (right, bottom)."""
    total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class FrozenDepthwise(torch.autograd.Function):
    """A depthwise convolution whose kernel gets no gradient.

    The gradient of its input is a depthwise convolution too (the kernel turned, the incoming
    gradient spread out by the stride), many times faster on a CPU than torch's own backward.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, stride):
        ctx.save_for_backward(weight)
        ctx.stride, ctx.size = stride, x.shape[2:]
        return F.conv2d(x, weight, bias, stride, groups=weight.shape[0])

    @staticmethod
    def backward(ctx, grad):
        (weight,) = ctx.saved_tensors
        kernel, stride = weight.shape[2], ctx.stride
        if stride > 1:
            shape = [grad.shape[0], grad.shape[1], *ctx.size]
            spread = grad.new_zeros(shape).to(memory_format=torch.channels_last)
            rows, columns = (grad.shape[2] - 1) * stride + 1, (grad.shape[3] - 1) * stride + 1
            spread[:, :, :rows:stride, :columns:stride] = grad
            grad = spread[:, :, : ctx.size[0] - kernel + 1, : ctx.size[1] - kernel + 1]
        turned = weight.flip(2, 3)
        return F.conv2d(grad, turned, None, 1, kernel - 1, 1, weight.shape[0]), None, None, None


class Conv(nn.Conv2d):
    """A convolution with TensorFlow's "same" padding and, unless it is linear, ReLU6."""

    def __init__(self, inputs, outputs, kernel=1, stride=1, groups=1, linear=False):
        super().__init__(inputs, outputs, kernel, stride, groups=groups)
        self.linear = linear

    def forward(self, x):
        kernel, stride = self.kernel_size[0], self.stride[0]
        top, bottom = same_padding(x.shape[2], kernel, stride)
        left, right = same_padding(x.shape[3], kernel, stride)
        if top + bottom + left + right:
            x = F.pad(x, (left, right, top, bottom))
        if self.groups > 1:
            x = FrozenDepthwise.apply(x, self.weight.to(x.dtype), self.bias.to(x.dtype), stride)
        else:
            x = F.conv2d(x, self.weight, self.bias, stride)
        return x if self.linear else F.relu6(x, inplace=True)


class Block(nn.Module):
    """The inverted residual: expand, depthwise, project; added to its input where shapes agree."""

    def __init__(self, spec):
        super().__init__()
        wide = spec["in"] * spec["expand"]
        self.expand = Conv(spec["in"], wide) if spec["expand"] > 1 else None
        self.depthwise = Conv(wide, wide, spec["kernel"], spec["stride"], groups=wide)
        self.project = Conv(wide, spec["out"], linear=True)
        self.residual = spec["stride"] == 1 and spec["in"] == spec["out"]

    def forward(self, x):
        y = x if self.expand is None else self.expand(x)
        y = self.project(self.depthwise(y))
        return x + y if self.residual else y


class Tower(nn.Module):
    """Pixels `[B, 3, H, W]`, normalized, to vectors `[B, width of the text space]`, length 1."""

    def __init__(self, outputs, width=1.0, depth=1.0):
        super().__init__()
        specs = layout(width, depth)
        self.stem = Conv(3, STEM, 3, 2)
        self.blocks = nn.ModuleList(Block(spec) for spec in specs)
        self.head = Conv(specs[-1]["out"], HEAD)
        self.projection = nn.Linear(HEAD, outputs)

    def train_from(self, first):
        """Freezes the stem, the blocks before `first` and every depthwise convolution."""
        self.requires_grad_(False)
        for block in self.blocks[first:]:
            for conv in (block.expand, block.project):
                if conv is not None:
                    conv.requires_grad_(True)
        self.head.requires_grad_(True)
        self.projection.requires_grad_(True)

    def features(self, pixels):
        """The pooled features `[B, 1280]` that the ImageNet classifier read."""
        x = self.stem(pixels)
        for block in self.blocks:
            x = block(x)
        return self.head(x).float().mean((2, 3))

    def forward(self, pixels):
        return F.normalize(self.projection(self.features(pixels)), dim=-1)


def folded(state, conv, norm):
    """One convolution of the published weights with its batch norm folded in: weight and bias."""
    scale = state[f"{norm}.weight"] / torch.sqrt(state[f"{norm}.running_var"] + EPS)
    weight = state[f"{conv}.weight"] * scale[:, None, None, None]
    return weight, state[f"{norm}.bias"] - state[f"{norm}.running_mean"] * scale


def load_imagenet(tower, state):
    """Fills a tower from the state of `efficientnet-lite*.pth`; the projection stays as it is."""

    def put(conv, name, norm):
        weight, bias = folded(state, name, norm)
        conv.weight.data.copy_(weight)
        conv.bias.data.copy_(bias)

    put(tower.stem, "_conv_stem", "_bn0")
    for index, block in enumerate(tower.blocks):
        name = f"_blocks.{index}"
        if block.expand is not None:
            put(block.expand, f"{name}._expand_conv", f"{name}._bn0")
        put(block.depthwise, f"{name}._depthwise_conv", f"{name}._bn1")
        put(block.project, f"{name}._project_conv", f"{name}._bn2")
    put(tower.head, "_conv_head", "_bn1")
