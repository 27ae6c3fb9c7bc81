"""Grids of patches: places of tokens, rotary angles, patches from pictures and back."""

import math

import torch


def coordinates(height, width):
    """Rows and columns of a grid's tokens, counted from its middle: two vectors of height * width."""
    row, column = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return row.flatten() - (height - 1) / 2, column.flatten() - (width - 1) / 2


def position_features(height, width, count=16):
    """Sines and cosines `[height * width, 6 * count]` of each token's place in the grid.

    4 * count of the place in tokens from the middle (angle: place * pi / 16 * k, k = 1 ... count), then
    2 * count of the place as a part of the grid's size (angle: part * pi * k / 2, k = 1 ... count / 2).
    """
    row, column = coordinates(height, width)
    steps = torch.arange(1, count + 1).float()
    near = [place[:, None] * steps * (math.pi / 16) for place in (row, column)]
    half = steps[: count // 2] * (math.pi / 2)
    far = [2 * row[:, None] / height * half, 2 * column[:, None] / width * half]
    angles = torch.cat([*near, *far], 1)
    return torch.cat([angles.sin(), angles.cos()], 1)


def rotary(height, width, head=64, theta=100.0):
    """Cosines and sines `[height * width, head]`: the first half of a head turns by row, the other by column.

    Within each half, element i is paired with element i + head / 4.
    """
    frequencies = theta ** -(torch.arange(head // 4).float() / (head // 4))
    angles = [place[:, None] * frequencies for place in coordinates(height, width)]
    angles = torch.cat([angles[0], angles[0], angles[1], angles[1]], 1)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """Applies `rotary` to `[batch, heads, tokens, head]`."""
    a, b, c, d = x.chunk(4, -1)
    return x * cos + torch.cat([-b, a, -d, c], -1) * sin


def sketch_map(height, width, grid=8):
    """`[height * width, grid * grid]`: where each token of a canvas reads the square sketch, bilinearly.

    The sketch keeps its shape: it is scaled to the canvas' smaller side, its border goes on outside.
    """
    axes = []
    for place in coordinates(height, width):
        spot = (place * grid / min(height, width) + (grid - 1) / 2).clamp(0, grid - 1)
        axes.append((1 - (spot[:, None] - torch.arange(grid)).abs()).clamp(min=0))
    return (axes[0][:, :, None] * axes[1][:, None, :]).flatten(1)


def patchify(pictures, size=16):
    """`[batch, 3, H, W]` to `[batch, tokens, size * size * 3]`, each patch as (row, column, channel)."""
    batch, channels, height, width = pictures.shape
    grid = pictures.reshape(batch, channels, height // size, size, width // size, size)
    return grid.permute(0, 2, 4, 3, 5, 1).reshape(batch, -1, size * size * channels)


def unpatchify(patches, height, width, size=16):
    """The inverse of `patchify`; height and width count patches."""
    grid = patches.reshape(len(patches), height, width, size, size, -1)
    return grid.permute(0, 5, 1, 3, 2, 4).reshape(len(patches), -1, height * size, width * size)


def timestep_features(timestep, count=256):
    """Cosines, then sines `[batch, count]` of a timestep between 0 and 1000."""
    frequencies = torch.exp(-math.log(10000) * torch.arange(count // 2) / (count // 2))
    angles = timestep[:, None].float() * frequencies.to(timestep.device)
    return torch.cat([angles.cos(), angles.sin()], 1)


def enlarging(coarse=4, fine=16, channels=3):
    """`[fine * fine * channels, coarse * coarse * channels]`: enlarges a token's sketch to its patch."""
    spot = ((torch.arange(fine) + 0.5) * coarse / fine - 0.5).clamp(0, coarse - 1)
    axis = (1 - (spot[:, None] - torch.arange(coarse)).abs()).clamp(min=0)
    return torch.kron(torch.kron(axis, axis), torch.eye(channels))
