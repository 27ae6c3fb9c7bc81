"""Trains the decoder: `python train_decoder.py CROPS OUT [--steps N] [--device cpu]`, goes on where OUT stopped.

CROPS is the folder of crops.mjs. OUT/decoder.pt is replaced every few minutes, OUT/samples holds what it
makes of held-out crops: small canvas, result, original.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

from decoder import IrisDecoder

SIDE = 256
CANVAS = 24


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("crops")
    parser.add_argument("out")
    parser.add_argument("--steps", type=int, default=40000)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save", type=float, default=180)
    return parser.parse_args()


class Crops:
    """Icons' crops over drawn-by-lot backgrounds, `[3, size, size]` in [0, 1]."""

    def __init__(self, path, seed):
        self.pixels = np.memmap(path, np.uint8, "r").reshape(-1, SIDE, SIDE, 4)
        self.dice = np.random.default_rng(seed)

    def part(self, size):
        """A window of one crop, mirrored or its channels exchanged by lot: colours times alpha, alpha."""
        left, top = self.dice.integers(0, SIDE - size + 1, 2)
        rgba = self.pixels[self.dice.integers(len(self.pixels)), top : top + size, left : left + size]
        rgba = np.ascontiguousarray(rgba.transpose(2, 0, 1)).astype(np.float32) / 255
        if self.dice.random() < 0.5:
            rgba = rgba[:, :, ::-1]
        colours, alpha = rgba[:3], rgba[3:]
        if self.dice.random() < 0.2:
            colours = colours[self.dice.permutation(3)]
        return colours * alpha, alpha

    def background(self, size):
        chance = self.dice.random()
        if chance < 0.5:
            return np.ones((3, size, size), np.float32)
        if chance < 0.7:
            return np.broadcast_to(self.dice.random((3, 1, 1), np.float32), (3, size, size))
        if chance < 0.85:
            ends = self.dice.random((2, 3, 1, 1), np.float32)
            mix = np.linspace(0, 1, size, dtype=np.float32)[None, :, None] * self.dice.random()
            return np.broadcast_to(ends[0] * (1 - mix) + ends[1] * mix, (3, size, size))
        colours, alpha = self.part(size)
        return self.dice.random((3, 1, 1), np.float32) * (1 - alpha) + colours

    def picture(self, size):
        colours, alpha = self.part(size)
        picture = self.background(size) * (1 - alpha) + colours
        if self.dice.random() < 0.12:
            picture = picture * self.dice.uniform(0.25, 0.9)
        return picture

    def batch(self, count, size):
        return torch.from_numpy(np.stack([self.picture(size) for _ in range(count)])) * 2 - 1


def small(large):
    """The canvas of a large picture: reduced as the denoiser's training pictures are."""
    size = large.shape[-1] // 8
    soft = F.interpolate(large, (size, size), mode="area")
    sharp = F.interpolate(large, (size, size), mode="bicubic", antialias=True)
    mix = torch.rand(len(large), 1, 1, 1, device=large.device)
    return soft * mix + sharp * (1 - mix)


def some(count, chance, device):
    return (torch.rand(count, 1, 1, 1, device=device) < chance).float()


def smooth_noise(count, channels, size, cells, device):
    coarse = torch.randn(count, channels, cells, cells, device=device)
    return F.interpolate(coarse, (size, size), mode="bicubic", align_corners=False)


def damaged(x):
    """Errors like the denoiser's: wobbling edges, blur, noise, steps between its patches, wrong edges."""
    count, _, size, _ = x.shape
    device = x.device
    wobble = smooth_noise(count, 2, size, 8, device) * torch.rand(count, 1, 1, 1, device=device)
    wobble = wobble * 0.9 * some(count, 0.5, device) * 2 / size
    axis = torch.linspace(-1 + 1 / size, 1 - 1 / size, size, device=device)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij")[::-1], -1)
    grid = grid + wobble.permute(0, 2, 3, 1)
    y = F.grid_sample(x, grid, mode="bicubic", padding_mode="reflection", align_corners=False)
    y = torch.where(wobble.abs().amax((1, 2, 3), keepdim=True) > 0, y, x)
    blurred = F.avg_pool2d(F.pad(y, (1, 1, 1, 1), mode="replicate"), 3, 1)
    y = y + (blurred - y) * some(count, 0.5, device) * torch.rand(count, 1, 1, 1, device=device) * 0.8
    edge = (y - blurred).abs().amax(1, keepdim=True)
    wrong = smooth_noise(count, 3, size, size // 2, device) * edge * 0.6
    y = y + wrong * some(count, 0.4, device)
    level = torch.rand(count, 1, 1, 1, device=device) ** 2
    y = y + torch.randn_like(y) * 0.12 * level * some(count, 0.6, device)
    y = y + smooth_noise(count, 3, size, 10, device) * 0.06 * level * some(count, 0.5, device)
    return y + steps(count, size, device) * 0.05 * level * some(count, 0.4, device)


def steps(count, size, device):
    """Constant offsets of 16 x 16 patches, whose borders lie anywhere in the crop."""
    offsets = torch.randn(count, 3, 3, 3, device=device)
    large = offsets.repeat_interleave(16, 2).repeat_interleave(16, 3)
    left, top = torch.randint(0, 16, (2,)).tolist()
    return large[:, :, top : top + size, left : left + size]


def gradients(x):
    return x[..., 1:] - x[..., :-1], x[..., 1:, :] - x[..., :-1, :]


def loss_of(guess, target):
    """Absolute error, and that of differences between neighbours: sharp edges, flat areas flat."""
    edges = sum((a - b).abs().mean() for a, b in zip(gradients(guess), gradients(target)))
    return (guess - target).abs().mean() + 2 * edges


@torch.no_grad()
def samples(model, held, path):
    held.dice = np.random.default_rng(5)
    large = held.batch(8, SIDE)
    torch.manual_seed(7)
    canvas = torch.cat([small(large[:4]), damaged(small(large[4:]))])
    result = model(canvas)
    shown = F.interpolate(canvas, (SIDE, SIDE), mode="nearest")
    rows = torch.cat([torch.cat(list(part), 2) for part in (shown, result, large)], 1)
    pixels = ((rows.permute(1, 2, 0) + 1) * 127.5 + 0.5).clamp(0, 255).byte().numpy()
    Image.fromarray(pixels).save(path)
    return (result - large).abs().mean().item()


def rate_at(step, options):
    warm = min(1, (step + 1) / 200)
    return options.rate * warm * max(0.02, 1 - step / options.steps)


def main():
    chosen = options()
    torch.set_num_threads(chosen.threads)
    out = Path(chosen.out)
    (out / "samples").mkdir(parents=True, exist_ok=True)
    model = IrisDecoder().to(chosen.device).to(memory_format=torch.channels_last)
    mean = IrisDecoder()
    mean.load_state_dict(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), chosen.rate, (0.9, 0.98), weight_decay=0)
    step = 0
    if (out / "decoder.pt").exists():
        saved = torch.load(out / "decoder.pt", map_location="cpu")
        model.load_state_dict(saved["model"])
        mean.load_state_dict(saved["ema"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    torch.manual_seed(step)
    crops, held = Crops(Path(chosen.crops) / "crops.bin", step), Crops(Path(chosen.crops) / "held.bin", 0)
    saved_at, began, losses = time.time(), time.time(), []
    while step < chosen.steps:
        large = crops.batch(chosen.batch, CANVAS * 8).to(chosen.device)
        canvas = damaged(small(large)).contiguous(memory_format=torch.channels_last)
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, chosen)
        with torch.autocast(chosen.device, torch.bfloat16):
            guess = model(canvas)
        loss = loss_of(guess.float(), large)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        decay = min(0.998, (1 + step) / (10 + step))
        with torch.no_grad():
            for kept, value in zip(mean.parameters(), model.parameters()):
                kept.lerp_(value.cpu(), 1 - decay)
        step += 1
        losses.append(loss.item())
        if step % 50 == 0:
            line = {"step": step, "loss": round(sum(losses) / len(losses), 5)}
            line["per_second"] = round(len(losses) / (time.time() - began), 2)
            print(json.dumps(line), flush=True)
            began, losses = time.time(), []
        if time.time() - saved_at > chosen.save or step == chosen.steps:
            state = {"model": model.state_dict(), "ema": mean.state_dict(), "config": model.config}
            state |= {"optimizer": optimizer.state_dict(), "step": step}
            torch.save(state, out / "decoder.tmp")
            os.replace(out / "decoder.tmp", out / "decoder.pt")
            error = samples(mean, held, out / "samples" / f"{step:07d}.png")
            print(json.dumps({"step": step, "held_error": round(error, 5)}), flush=True)
            saved_at = time.time()


if __name__ == "__main__":
    main()
