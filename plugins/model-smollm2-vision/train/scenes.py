"""Pictures of one to six things with what is known of them: which, how many, which colour, where.

A scene is a list of things. Its labels are given for the picture's 16 squares (4 x 4, as the tower
has states), too: the thing that covers a square, its colour and its place in the picture.
"""

import json
import math
import random

import numpy as np
import torch
from torch.nn import functional as F

EDGE = 128
COLOURS = {
    "red": (214, 40, 40), "orange": (245, 130, 32), "yellow": (250, 210, 40), "green": (50, 160, 70), "blue": (40, 95, 210), "purple": (130, 60, 180),
    "pink": (240, 120, 175), "brown": (125, 75, 40), "black": (15, 15, 15), "white": (250, 250, 250), "gray": (130, 130, 130),
}
SHAPES = ["circle", "square", "triangle", "ring", "cross"]
NUMBERS = ["one", "two", "three", "four", "five", "six"]
ACROSS, DOWN = ["left", "middle", "right"], ["top", "middle", "bottom"]
PALETTE = torch.tensor(list(COLOURS.values())).float() / 255
NAMES = list(COLOURS)


def shape_sprites():
    from PIL import Image, ImageDraw

    points = [(64 + 60 * math.cos(a), 70 + 60 * math.sin(a)) for a in (-math.pi / 2, math.pi / 6, 5 * math.pi / 6)]
    draws = {
        "circle": lambda d: d.ellipse((6, 6, 122, 122), fill=255), "square": lambda d: d.rectangle((10, 10, 118, 118), fill=255), "triangle": lambda d: d.polygon(points, fill=255),
        "ring": lambda d: d.ellipse((8, 8, 120, 120), outline=255, width=20), "cross": lambda d: [d.rectangle(box, 255) for box in ((48, 6, 80, 122), (6, 48, 122, 80))],
    }
    found = []
    for name, draw in draws.items():
        mask = Image.new("L", (EDGE, EDGE))
        draw(ImageDraw.Draw(mask))
        pixels = np.zeros((EDGE, EDGE, 4), np.uint8)
        pixels[..., 3] = np.asarray(mask)
        found.append({"thing": name, "mono": True, "pixels": pixels, "shape": True})
    return found


def filling(rgba):
    """The index of the colour that fills most of each sprite `[B, 4, H, W]`, -1 where none fills 55 %."""
    small = rgba[:, :, 2::4, 2::4]
    high, low = small[:, :3].max(1).values, small[:, :3].min(1).values
    red, green, blue = small[:, 0], small[:, 1], small[:, 2]
    chroma = (high - low).clamp(min=1e-4)
    hue = torch.where(high == red, ((green - blue) / chroma) % 6, (blue - red) / chroma + 2)
    hue = torch.where((high == blue) & (high != red), (red - green) / chroma + 4, hue) * 60
    label = torch.bucketize(hue, torch.tensor([15.0, 42, 68, 165, 258, 292, 340]))
    label = torch.where(label == 7, 0, label)
    brown = ((label == 1) | (label == 0) & (hue > 8) & (hue < 90)) & (high < 0.66)
    label = torch.where(brown, 7, label)
    label = torch.where((high - low) < 0.16, torch.where(high > 0.85, 9, 10), label)
    label = torch.where(high < 0.2, 8, label)
    found = []
    for one, mask in zip(label, small[:, 3] > 0.6):
        counts = torch.bincount(one[mask], minlength=11)
        best, total = int(counts.argmax()), max(1, int(counts.sum()))
        found.append(best if counts[best] > 0.55 * total else -1)
    return found


def turned_hue(rgba, angle):
    cos, sin = math.cos(angle), math.sin(angle)
    one, root = (1 - cos) / 3, sin / math.sqrt(3)
    matrix = torch.tensor([[cos + one, one - root, one + root], [one + root, cos + one, one - root], [one - root, one + root, cos + one]])
    return torch.cat([torch.einsum("ij,jhw->ihw", matrix, rgba[:3]).clamp(0, 1), rgba[3:]])


def backdrop(dice, size):
    """A slope or blots between two colours."""
    low, high = torch.rand(2, 3, 1, 1)
    if dice.random() < 0.5:
        angle = dice.random() * 6.28
        steps = torch.linspace(-0.5, 0.5, size)
        mix = (0.5 + steps[None, :] * math.cos(angle) + steps[:, None] * math.sin(angle)).clamp(0, 1)
    else:
        cells = dice.randint(3, 24)
        mix = F.interpolate(torch.rand(1, 1, cells, cells), (size, size), mode="bicubic")[0, 0].clamp(0, 1)
    return low * (1 - mix) + high * mix


class Scenes:
    """Scenes of the sprites of one style file. `things` is the order of the labels."""

    def __init__(self, path, seed, trains=True):
        lines = [json.loads(line) for line in open(f"{path}.jsonl")]
        pixels = np.memmap(f"{path}.bin", np.uint8, "r").reshape(-1, EDGE, EDGE, 4)
        self.sprites = [{**line, "pixels": one, "shape": False} for line, one in zip(lines, pixels)]
        self.of = {}
        for sprite in [*self.sprites, *shape_sprites()]:
            self.of.setdefault(sprite["thing"], []).append(sprite)
        self.emoji = [thing for thing in self.of if thing not in SHAPES]
        self.things = sorted(self.of)
        self.dice, self.trains = random.Random(seed), trains

    def drawn(self, thing, tint=None):
        """A sprite as `[4, H, W]`, its colour's index or -1."""
        sprite = self.dice.choice(self.of[thing])
        rgba = torch.from_numpy(np.array(sprite["pixels"])).permute(2, 0, 1).float() / 255
        if sprite["mono"]:
            tint = tint if tint is not None else (self.dice.randrange(11) if self.dice.random() < 0.75 else 8)
            rgba[:3] = (PALETTE[tint] + torch.randn(3) * 0.04).clamp(0, 1)[:, None, None]
            return rgba, tint
        if self.dice.random() < 0.3:
            rgba = turned_hue(rgba, self.dice.uniform(0.8, 5.5))
        return rgba, filling(rgba[None])[0]

    def thing(self):
        return self.dice.choice(SHAPES) if self.dice.random() < 0.15 else self.dice.choice(self.emoji)

    def plan(self):
        """Layers of a scene: (thing, pixels, colour, x, y, scale)."""
        dice, chance = self.dice, self.dice.random()
        if chance < 0.36:
            scale = dice.uniform(0.85, 1.0) if dice.random() < 0.35 else dice.uniform(0.35, 0.8)
            room = max(0, 1 - scale)
            kind, places = [self.thing()], [(dice.uniform(-room, room), dice.uniform(-room, room), scale)]
        elif chance < 0.64:
            count = dice.choice([2, 3, 3, 4, 4, 5, 5, 6, 6])
            kind, places = [self.thing()] * count, self.cells(count)
        elif chance < 0.92:
            kind = dice.sample(self.emoji, 2) if dice.random() < 0.7 else [self.thing(), dice.choice(self.emoji)]
            if kind[0] == kind[1]:
                kind = dice.sample(self.emoji, 2)
            shift, off, scale = dice.uniform(0.42, 0.55), dice.uniform(-0.25, 0.25), dice.uniform(0.36, 0.5)
            places = [(-shift, off, scale), (shift, -off, scale)]
            places = [(y, x, s) for x, y, s in places] if dice.random() < 0.5 else places
        else:
            kind, places = dice.sample(self.emoji, 3), self.cells(3)
        same = len(set(kind)) == 1 and len(kind) > 1
        tint = dice.randrange(11)
        first = self.drawn(kind[0], tint) if same else None
        return [(thing, *(first if same else self.drawn(thing)), *place) for thing, place in zip(kind, places)]

    def cells(self, count):
        dice = self.dice
        columns = dice.choice([2, 3]) if count > 3 else dice.choice([2, 2, 3])
        rows = math.ceil(count / columns) if dice.random() < 0.6 else max(2, math.ceil(count / columns))
        rows, columns = (columns, rows) if dice.random() < 0.4 else (rows, columns)
        cells = dice.sample([(c, r) for c in range(columns) for r in range(rows)], count)
        scale = 0.92 / max(columns, rows)
        spot = lambda cell, total: (2 * cell + 1) / total - 1 + dice.uniform(-0.07, 0.07)
        return [(spot(c, columns), spot(r, rows), scale * dice.uniform(0.8, 1.0)) for c, r in cells]

    def background(self, colours):
        dice, chance = self.dice, self.dice.random()
        if chance < 0.45 and 9 not in colours:
            return torch.ones(3, EDGE, EDGE)
        if chance < 0.8 or not self.trains:
            free = [i for i in range(11) if i not in colours]
            return (PALETTE[dice.choice(free)] * dice.uniform(0.75, 1)).view(3, 1, 1).expand(3, EDGE, EDGE).clone()
        return backdrop(dice, EDGE)

    def one(self):
        """A picture `[3, EDGE, EDGE]` in [0, 1], the labels of its squares and its scene."""
        layers = self.plan()
        dice, count = self.dice, len(layers)
        scales = torch.tensor([layer[5] for layer in layers])
        centres = torch.tensor([layer[3:5] for layer in layers])
        angle = torch.tensor([dice.gauss(0, 0.12) for _ in layers])
        flip = torch.tensor([dice.choice([1.0, 1.0, -1.0]) for _ in layers]) if self.trains else torch.ones(count)
        squeeze = 1 + (torch.rand(count) - 0.5) * (0.25 if self.trains else 0)
        cos, sin = torch.cos(angle) / scales, torch.sin(angle) / scales
        turn = torch.stack([cos * flip * squeeze, sin * flip, -sin, cos], -1).view(-1, 2, 2)
        shift = -torch.einsum("bij,bj->bi", turn, centres)
        rgba = torch.stack([layer[1] for layer in layers])
        rgba[:, :3] *= rgba[:, 3:]
        grid = F.affine_grid(torch.cat([turn, shift[:, :, None]], 2), [count, 4, EDGE, EDGE], align_corners=False)
        drawn = F.grid_sample(rgba, grid, align_corners=False)
        picture = self.background({layer[2] for layer in layers})
        for layer in drawn:
            picture = picture * (1 - layer[3:]) + layer[:3]
        if self.trains:
            picture = self.blemished(picture)
        cover, owner = F.avg_pool2d(drawn[:, 3:], EDGE // 4)[:, 0].flatten(1).max(0)
        side = lambda value: 0 if value < -0.25 else 2 if value > 0.25 else 1
        index = {thing: i for i, thing in enumerate(self.things)}
        known = [(1 + index[thing], colour, side(x), side(y)) for thing, _, colour, x, y, _ in layers]
        squares = torch.tensor([known[o] if c > 0.2 else (0, -1, -1, -1) for c, o in zip(cover.tolist(), owner.tolist())])
        scene = [{"thing": thing, "colour": NAMES[colour] if colour >= 0 else None, "x": x, "y": y} for thing, _, colour, x, y, _ in layers]
        return picture.clamp(0, 1), squares, scene

    def blemished(self, picture):
        dice = self.dice
        if dice.random() < 0.6:
            picture = picture * dice.uniform(0.8, 1.2) + dice.uniform(-0.08, 0.08)
        if dice.random() < 0.2:
            picture = picture + torch.randn_like(picture) * dice.uniform(0, 0.08)
        if dice.random() < 0.15:
            picture = F.interpolate(F.avg_pool2d(picture[None], 2), (EDGE, EDGE), mode="bilinear")[0]
        return picture

    def batch(self, count):
        made = [self.one() for _ in range(count)]
        return torch.stack([m[0] for m in made]), torch.stack([m[1] for m in made]), [m[2] for m in made]
