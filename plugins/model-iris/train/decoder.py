"""The upsampling decoder: a convolutional network that draws the denoiser's canvas eight times as large.

Residual blocks at low resolution, three pixel shuffles (sub-pixel convolution, arXiv:1609.05158), added to
a bicubic enlargement that is itself a convolution and may be learned further.
"""

import torch
from torch import nn
from torch.nn import functional as F

CONFIG = {
    "_class_name": "IrisDecoder",
    "in_channels": 3,
    "hidden_size": 48,
    "num_blocks": 6,
    "upsample_sizes": [32, 16],
    "scale": 8,
}


def bicubic(scale=8):
    """Weights `[scale * scale, 1, 5, 5]` that give each of a pixel's sub-pixels its bicubic value."""
    weights = torch.zeros(scale * scale, 1, 5, 5)
    for row in range(5):
        for column in range(5):
            spot = torch.zeros(1, 1, 9, 9)
            spot[0, 0, 2 + row, 2 + column] = 1
            large = F.interpolate(spot, scale_factor=scale, mode="bicubic", align_corners=False)
            middle = large[0, 0, 4 * scale : 5 * scale, 4 * scale : 5 * scale]
            weights[:, 0, row, column] = middle.reshape(-1)
    return weights


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv1 = nn.Conv2d(size, size, 3, padding=1)
        self.conv2 = nn.Conv2d(size, size, 3, padding=1)

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(x)))


class Upsample(nn.Module):
    """Twice the size by a pixel shuffle, then a convolution."""

    def __init__(self, size, out):
        super().__init__()
        self.expand = nn.Conv2d(size, 4 * out, 3, padding=1)
        self.conv = nn.Conv2d(out, out, 3, padding=1)

    def forward(self, x):
        x = F.relu(F.pixel_shuffle(self.expand(x), 2))
        return F.relu(self.conv(x))


class IrisDecoder(nn.Module):
    """Canvases `[batch, 3, H, W]` in [-1, 1] to `[batch, 3, 8 * H, 8 * W]`, a little beyond at edges."""

    def __init__(self, **changes):
        super().__init__()
        self.config = config = {**CONFIG, **changes}
        size, channels = config["hidden_size"], config["in_channels"]
        self.conv_in = nn.Conv2d(channels, size, 3, padding=1)
        self.blocks = nn.ModuleList([Block(size) for _ in range(config["num_blocks"])])
        self.upsamples = nn.ModuleList()
        for out in config["upsample_sizes"]:
            self.upsamples.append(Upsample(size, out))
            size = out
        self.conv_out = nn.Conv2d(size, 4 * channels, 3, padding=1)
        scale = config["scale"]
        self.skip = nn.Conv2d(channels, channels * scale * scale, 5, groups=channels, bias=False)
        with torch.no_grad():
            self.skip.weight.copy_(bicubic(scale).repeat(channels, 1, 1, 1))
            self.conv_out.weight.mul_(0.1)
            self.conv_out.bias.zero_()
            for block in self.blocks:
                block.conv2.weight.mul_(0.2)

    def forward(self, x):
        base = F.pixel_shuffle(self.skip(F.pad(x, (2, 2, 2, 2), mode="replicate")), self.config["scale"])
        y = self.conv_in(x)
        for block in self.blocks:
            y = block(y)
        for upsample in self.upsamples:
            y = upsample(y)
        return base + F.pixel_shuffle(self.conv_out(y), 2)
