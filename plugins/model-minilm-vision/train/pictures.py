"""Training pictures out of sprites: recoloured, turned, put on backgrounds, several in one scene.

All of a batch is made at once with torch: a sprite is RGBA, a picture is some layers of them.
"""

import io
import math
import random

import numpy as np
import torch
from torch.nn import functional as F

from words import COLOURS, phrase, plural, tokens

SIZE = 160  # of the sprites, as render.mjs draws them
NAMES = list(COLOURS)
PALETTE = torch.tensor([COLOURS[name] for name in NAMES]).float() / 255
SHARES = {"emoji": 0.44, "colour": 0.2, "clipart": 0.16, "mono": 0.2}  # of the layers
SIDED = {"left", "right", "arrow", "clockwise", "letter", "input", "speech"}  # never mirrored


def open_sprites(path):
    """The sprites of a file: `[N, SIZE, SIZE, 4]`, mapped, not read."""
    return np.memmap(path, np.uint8, "r").reshape(-1, SIZE, SIZE, 4)


def turn_hue(rgba, angles):
    """Turns the hue of `[B, 4, H, W]` about the gray axis, brightness nearly kept."""
    cos, sin = torch.cos(angles), torch.sin(angles)
    one, root = (1 - cos) / 3, sin / math.sqrt(3)
    rows = [[cos + one, one - root, one + root], [one + root, cos + one, one - root]]
    rows.append([one - root, one + root, cos + one])
    matrix = torch.stack([torch.stack(row, -1) for row in rows], 1)
    rgba[:, :3] = torch.einsum("bij,bjhw->bihw", matrix, rgba[:, :3]).clamp(0, 1)
    return rgba


def colour_names(rgba):
    """The colour that fills most of each sprite, or None where none fills half of it."""
    small = rgba[:, :, 2::4, 2::4]
    high, low = small[:, :3].max(1).values, small[:, :3].min(1).values
    opaque = small[:, 3] > 0.6
    red, green, blue = small[:, 0], small[:, 1], small[:, 2]
    chroma = (high - low).clamp(min=1e-4)
    hue = torch.where(high == red, ((green - blue) / chroma) % 6, (blue - red) / chroma + 2)
    hue = torch.where((high == blue) & (high != red), (red - green) / chroma + 4, hue) * 60
    label = torch.bucketize(hue, torch.tensor([15.0, 42, 68, 165, 258, 292, 340]))
    label = torch.where(label == 7, 0, label)
    light, grey = high, (high - low) < 0.16
    brown = ((label == 1) | (label == 0) & (hue > 8) & (hue < 90)) & (light < 0.66)
    label = torch.where(brown, 7, label)
    label = torch.where(grey, torch.where(light > 0.85, 9, 10), label)
    label = torch.where(light < 0.2, 8, label)
    result = []
    for one, mask in zip(label, opaque):
        counts = torch.bincount(one[mask], minlength=11)
        best, total = int(counts.argmax()), max(1, int(counts.sum()))
        result.append(NAMES[best] if counts[best] > 0.55 * total else None)
    return result


def shape_sprites():
    """Plain shapes for scenes of colours, counts and places: names and black RGBA sprites."""
    from PIL import Image, ImageDraw

    def polygon(points, turn=-90, inner=None):
        steps = points * 2 if inner else points
        angles = [math.radians(turn + 360 * i / steps) for i in range(steps)]
        radii = [72 * (inner if inner and i % 2 else 1) for i in range(steps)]
        return [(80 + r * math.cos(a), 80 + r * math.sin(a)) for a, r in zip(angles, radii)]

    draws = {
        "circle": lambda d: d.ellipse((8, 8, 152, 152), fill=255),
        "square": lambda d: d.rectangle((14, 14, 146, 146), fill=255),
        "triangle": lambda d: d.polygon(polygon(3), fill=255),
        "star": lambda d: d.polygon(polygon(5, inner=0.42), fill=255),
        "pentagon": lambda d: d.polygon(polygon(5), fill=255),
        "hexagon": lambda d: d.polygon(polygon(6, 0), fill=255),
        "diamond": lambda d: d.polygon([(80, 4), (132, 80), (80, 156), (28, 80)], fill=255),
        "rectangle": lambda d: d.rectangle((6, 42, 154, 118), fill=255),
        "oval": lambda d: d.ellipse((6, 40, 154, 120), fill=255),
        "ring": lambda d: d.ellipse((12, 12, 148, 148), outline=255, width=24),
        "cross": lambda d: [d.rectangle(box, 255) for box in ((60, 8, 100, 152), (8, 60, 152, 100))],
    }
    sprites = np.zeros((len(draws), SIZE, SIZE, 4), np.uint8)
    for sprite, draw in zip(sprites, draws.values()):
        mask = Image.new("L", (SIZE, SIZE))
        draw(ImageDraw.Draw(mask))
        sprite[..., 3] = np.asarray(mask)
    return list(draws), sprites


def backdrops(count=240, size=96):
    """Backgrounds `[count, 3, size, size]`: slopes, blots, stripes, noise and lines of text."""
    from PIL import Image, ImageDraw, ImageFont

    dice = np.random.default_rng(5)
    font = ImageFont.load_default(11)
    pictures = []
    for index in range(count):
        low, high = dice.random((2, 3, 1, 1))
        kind = index % 5
        if kind == 0:
            angle = dice.random() * 6.28
            y, x = np.mgrid[0:size, 0:size] / size
            mix = np.clip(0.5 + (x - 0.5) * np.cos(angle) + (y - 0.5) * np.sin(angle), 0, 1)
        elif kind in (1, 3):
            cells = int(dice.integers(3, 40))
            blots = torch.tensor(dice.random((1, 1, cells, cells))).float()
            mix = F.interpolate(blots, (size, size), mode="bicubic")[0, 0].clamp(0, 1).numpy()
        elif kind == 2:
            y, x = np.mgrid[0:size, 0:size]
            waves = np.sin((x * dice.normal() + y * dice.normal()) * 0.4)
            mix = (waves > 0) * dice.random()
        else:
            page = Image.new("L", (size, size))
            pen = ImageDraw.Draw(page)
            for line in range(0, size, int(dice.integers(10, 22))):
                letters = "".join(map(chr, dice.integers(97, 123, 18)))
                pen.text((int(dice.integers(-20, 20)), line), letters.replace("e", " "), 255, font)
            mix = np.asarray(page) / 255
        pictures.append(low * (1 - mix) + high * mix)
    return torch.tensor(np.stack(pictures)).float()


def placed(rgba, size, centre, scale, angle, flip, squeeze):
    """Sprites (premultiplied here, in place) drawn at places of a picture of `size`.

    Centres are in [-1, 1]; the scale 1 fills the picture.
    """
    cos, sin = torch.cos(angle) / scale, torch.sin(angle) / scale
    rows = torch.stack([cos * flip * squeeze, sin * flip, -sin, cos], -1).view(-1, 2, 2)
    shift = -torch.einsum("bij,bj->bi", rows, centre)
    steps = (2 * torch.arange(size) + 1) / size - 1
    across, down = steps.view(1, 1, -1, 1), steps.view(1, -1, 1, 1)
    spread = rows[:, None, None]
    grid = across * spread[..., 0] + (down * spread[..., 1] + shift[:, None, None])
    rgba[:, :3] *= rgba[:, 3:]
    return F.grid_sample(rgba, grid, align_corners=False, padding_mode="zeros")


def stacked(backs, layers, owners):
    """Layers `[L, 4, H, W]` (premultiplied) laid over backgrounds, each on its owner, in order."""
    for layer, owner in zip(layers, owners):
        backs[owner].mul_(1 - layer[3:]).add_(layer[:3])
    return backs


def blemished(pictures, dice):
    """Light, contrast, noise, blur and JPEG, each on some of the pictures `[B, 3, H, W]`."""
    from PIL import Image

    count = len(pictures)
    gain = 1 + (torch.rand(count, 1, 1, 1) - 0.5) * 0.4
    lift = (torch.rand(count, 1, 1, 1) - 0.5) * 0.16
    touched = (torch.rand(count, 1, 1, 1) < 0.6).float()
    pictures.mul_(1 + touched * (gain - 1)).add_(touched * lift)
    noisy = torch.rand(count) < 0.15
    grain = torch.rand(int(noisy.sum()), 1, 1, 1) * 0.1
    pictures[noisy] += grain * torch.randn_like(pictures[noisy])
    pictures.clamp_(0, 1)
    for index in range(count):
        chance = dice.random()
        if chance < 0.12:
            small = F.avg_pool2d(pictures[index : index + 1], 2)
            pictures[index] = F.interpolate(small, pictures.shape[2:], mode="bilinear")[0]
        elif chance < 0.2:
            array = (pictures[index].permute(1, 2, 0) * 255).byte().numpy()
            file = io.BytesIO()
            Image.fromarray(array).save(file, "JPEG", quality=dice.randint(20, 80))
            read = np.array(Image.open(file))
            pictures[index] = torch.from_numpy(read).permute(2, 0, 1) / 255
    return pictures


def group_of(sprite):
    if sprite["mono"]:
        return "mono"
    if sprite["set"] == "openclipart":
        return "clipart"
    return "emoji" if sprite.get("char") else "colour"


def uncoloured(name):
    """The name without its words for colours ("red apple" is "apple")."""
    kept = [word for word in name.split() if word.lower() not in COLOURS]
    return " ".join(kept) or name


class Scenes:
    """Draws batches of pictures with their captions.

    `sprites` are dicts (`pixels`, `set`, `names`, `mono`).
    """

    def __init__(self, sprites, seed=0):
        self.groups = [[s for s in sprites if group_of(s) == group] for group in SHARES]
        self.shares = [share if group else 0 for share, group in zip(SHARES.values(), self.groups)]
        self.shape_names, self.shapes = shape_sprites()
        self.backs = backdrops()
        self.dice = random.Random(seed)

    def one(self, sprite):
        """A layer's plan: whose pixels, which name, which colour it gets."""
        dice = self.dice
        plan = {"pixels": sprite["pixels"], "name": dice.choice(sprite["names"])}
        plan |= {"tint": None, "turn": 0.0, "shape": False}
        if sprite["mono"]:
            plan["tint"] = dice.choice(NAMES) if dice.random() < 0.7 else "black"
        elif dice.random() < 0.22:
            plan["turn"] = dice.uniform(0.6, 5.7)
        return plan

    def shape(self):
        index = self.dice.randrange(len(self.shape_names))
        tint = self.dice.choice(NAMES)
        plan = {"pixels": self.shapes[index], "name": self.shape_names[index]}
        return plan | {"tint": tint, "turn": 0.0, "shape": True}

    def any(self):
        if self.dice.random() < 0.12:
            return self.shape()
        return self.one(self.dice.choice(self.dice.choices(self.groups, self.shares)[0]))

    def plans(self, count):
        """`count` scenes, each a kind and its layers; some come twice with another colour."""
        result = []
        while len(result) < count:
            chance = self.dice.random()
            if chance < 0.80:
                layer = self.any()
                result.append(("one", [layer]))
                if self.dice.random() < 0.12 and len(result) < count:
                    other = {**layer, "turn": layer["turn"] + self.dice.uniform(1.5, 4.7)}
                    if layer["tint"]:
                        other["tint"] = self.dice.choice([c for c in NAMES if c != layer["tint"]])
                    result.append(("colour", [other]))
            elif chance < 0.88:
                layer = self.any()
                result.append(("many", [layer] * self.dice.randint(2, 5)))
            else:
                result.append(("pair", [self.any(), self.any()]))
        return result

    def pixels_of(self, layers):
        raw = torch.from_numpy(np.stack([layer["pixels"] for layer in layers]))
        rgba = raw.permute(0, 3, 1, 2).contiguous().float().mul_(1 / 255)
        turned = [i for i, p in enumerate(layers) if p["turn"] and not p["tint"]]
        if turned:
            rgba[turned] = turn_hue(rgba[turned], torch.tensor([layers[i]["turn"] for i in turned]))
        tinted = [i for i, p in enumerate(layers) if p["tint"]]
        if tinted:
            wish = PALETTE[[NAMES.index(layers[i]["tint"]) for i in tinted]]
            wish = (wish + torch.randn_like(wish) * 0.05).clamp(0, 1)
            rgba[tinted, :3] = wish[:, :, None, None].expand(-1, -1, SIZE, SIZE)
        return rgba

    def caption(self, kind, layers, colours):
        dice = self.dice
        names = []
        for layer, colour in zip(layers, colours):
            name = layer["name"]
            if layer["turn"] or layer["tint"]:
                name = uncoloured(name)
            said = 0.9 if kind == "colour" or layer["shape"] else 0.5
            said = said if layer["tint"] or layer["turn"] else 0.25
            has_colour = set(tokens(name)) & set(NAMES)
            if colour and not has_colour and dice.random() < said:
                name = f"{colour} {name}"
            names.append(name)
        if kind == "many":
            number = ["two", "three", "four", "five"][len(layers) - 2]
            return f"{number if dice.random() < 0.8 else 'several'} {plural(names[0])}"
        if kind == "pair":
            between = dice.choice([" and a ", " next to a ", " and "])
            return f"a {names[0]}{between}{names[1]}"
        return phrase(names[0], dice)

    def places(self, kind, count):
        """Centres, scales and angles of one scene's layers."""
        dice = self.dice
        if kind in ("one", "colour"):
            scale = dice.uniform(0.9, 1.0) if dice.random() < 0.4 else dice.uniform(0.4, 1.15)
            room = max(0.12, 1 - scale) * 0.8
            angle = dice.gauss(0, 0.15) if dice.random() < 0.5 else 0.0
            return [(dice.uniform(-room, room), dice.uniform(-room, room), scale, angle)]
        columns = math.ceil(math.sqrt(count)) if count > 2 or dice.random() < 0.7 else 1
        rows = math.ceil(count / columns)
        cells = dice.sample([(c, r) for c in range(columns) for r in range(rows)], count)
        scale = 0.9 / max(columns, rows)
        spot = lambda cell, total: (2 * cell + 1) / total - 1 + dice.uniform(-0.08, 0.08)
        return [
            (spot(c, columns), spot(r, rows), scale * dice.uniform(0.8, 1.0), dice.gauss(0, 0.1))
            for c, r in cells
        ]

    def backgrounds(self, scenes, size, colours):
        """Mostly white or plain; never the colour of what lies on it."""
        backs = torch.ones(len(scenes), 3, size, size)
        for index, own in enumerate(colours):
            chance = self.dice.random()
            if chance < 0.4 and "white" not in own:
                continue
            if chance < 0.7:
                free = [i for i, name in enumerate(NAMES) if name not in own]
                plain = PALETTE[self.dice.choice(free)] * self.dice.uniform(0.7, 1)
                backs[index] = plain[:, None, None]
            else:
                back = self.backs[self.dice.randrange(len(self.backs))][None]
                backs[index] = F.interpolate(back, (size, size), mode="bilinear")[0]
        return backs

    def mirroring(self, name):
        """-1 for a third of what may be mirrored, else 1."""
        return 1.0 if SIDED & set(tokens(name)) else self.dice.choice([1.0, 1.0, -1.0])

    def batch(self, count, size):
        """Pictures `[count, 3, size, size]` in [0, 1] and their captions."""
        scenes = self.plans(count)
        layers = [layer for _, group in scenes for layer in group]
        owners = [index for index, (_, group) in enumerate(scenes) for _ in group]
        rgba = self.pixels_of(layers)
        seen = colour_names(rgba)
        colours = [layer["tint"] or name for layer, name in zip(layers, seen)]
        grouped = [[c for c, owner in zip(colours, owners) if owner == i] for i in range(count)]
        spots = [spot for kind, group in scenes for spot in self.places(kind, len(group))]
        spots = torch.tensor(spots)
        flip = torch.tensor([self.mirroring(layer["name"]) for layer in layers])
        squeeze = 1 + (torch.rand(len(layers)) - 0.5) * 0.3
        drawn = placed(rgba, size, spots[:, :2], spots[:, 2], spots[:, 3], flip, squeeze)
        pictures = stacked(self.backgrounds(scenes, size, grouped), drawn, owners)
        captions = [self.caption(k, g, c) for (k, g), c in zip(scenes, grouped)]
        return blemished(pictures, self.dice), captions
