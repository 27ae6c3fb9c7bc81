"""Composed pictures and their texts: things, colours, counts, positions, places, edits of scenes.

A scene is a plan (what, in which colour, in which arrangement); `draw` makes it a picture of any size, and
an edit changes the plan, so that the picture before and the picture after agree to the pixel elsewhere.
"""

import functools
import random
import zlib
from dataclasses import dataclass

import numpy as np
from PIL import Image

import backgrounds
import layouts
import looks
from recolour import LABS, PALETTE, dominant, nearest, recoloured
from texts import described
from things import PLACED, all_things


@dataclass(frozen=True)
class Item:
    """A thing in a scene: the index of its thing, its style, its colour (None: its own)."""

    thing: int
    style: str = "main"
    colour: str | None = None


@dataclass(frozen=True)
class Scene:
    """`kind`: single, count, corner, list, or a relation; `back`: None, a colour's or a place's name."""

    kind: str
    items: tuple
    count: int = 1
    where: str = ""
    back: str | None = None


def held_out(*parts):
    """One composition in twenty is never trained on."""
    return zlib.crc32("|".join(sorted(parts)).encode()) % 20 == 0


class Pictures:
    """The sprites of a folder (see render.mjs), sized and coloured as asked."""

    def __init__(self, folder, look=None, side=128):
        self.look = looks.LOOKS.get(look)
        self.things = all_things(folder)
        self.pixels = np.memmap(f"{folder}/sprites.bin", np.uint8, "r").reshape(-1, side, side, 4)
        self.sized = functools.lru_cache(6000)(self._sized)
        for thing in self.things:
            self.judge(thing)

    def judge(self, thing):
        """Finds the colour of a thing, and whether it may be given another."""
        named = {word for name, _ in thing.english for word in name.split()} & set(PALETTE)
        if thing.group not in (*PLACED, "Smileys & Emotion") or "main" not in thing.styles:
            return
        found = dominant(self.pixels[thing.styles["main"]])
        if found is None or found[1] is None:
            return
        thing.colour = nearest(found[1])
        thing.share = 0.0 if named else found[2]

    def _sized(self, index, colour, size):
        rgba = np.array(self.pixels[index])
        if colour:
            rgba = recoloured(rgba, colour)
        if self.look:
            rgba = self.look.sprite(rgba)
        image = Image.fromarray(rgba, "RGBA").convert("RGBa")
        return np.asarray(image.resize((size, size), Image.Resampling.LANCZOS)).astype(np.float32)

    def back(self, name, width, height):
        if self.look:
            return self.look.back(self.bare_back(name, width, height), name)
        return self.bare_back(name, width, height)

    def bare_back(self, name, width, height):
        if name is None:
            return np.full((height, width, 3), 255, np.float32)
        if name in PALETTE:
            return np.full((height, width, 3), PALETTE[name], np.float32)
        return backgrounds.place(name, width, height).astype(np.float32)

    def spots(self, scene):
        ground = scene.back in backgrounds.PLACES and backgrounds.PLACES[scene.back][2]
        if scene.kind == "single":
            return layouts.single(ground)
        if scene.kind == "corner":
            return layouts.corner(scene.where)
        if scene.kind == "count":
            return layouts.several(scene.count, ground)
        if scene.kind == "list":
            return layouts.several(len(scene.items), ground)
        return layouts.several(2, True) if ground else layouts.pair(scene.kind)

    def draw(self, scene, width=128, height=128):
        """The scene as `[height, width, 3]` of bytes."""
        picture = self.back(scene.back, width, height)
        spots = self.spots(scene)
        items = scene.items * len(spots) if scene.kind == "count" else scene.items
        for item, (x, y, w, h) in zip(items, spots):
            size = max(8, round(layouts.CELL * min(w * width, h * height)))
            thing = self.things[item.thing]
            own = item.colour == thing.colour and item.style == "main"
            colour = None if own else item.colour
            sprite = self.sized(thing.styles[item.style], colour, size)
            left, top = round(x * width - size / 2), round(y * height - size / 2)
            l, t, r, b = max(0, left), max(0, top), min(width, left + size), min(height, top + size)
            part = sprite[t - top : b - top, l - left : r - left]
            region = picture[t:b, l:r]
            region *= 1 - part[..., 3:] / 255
            region += part[..., :3]
        return np.clip(picture + 0.5, 0, 255).astype(np.uint8)


class Composer:
    """Draws by lot what a training sample shows and says."""

    def __init__(self, pictures, seed=0, shares=None):
        self.pictures, self.things = pictures, pictures.things
        self.dice = random.Random(seed)
        every = range(len(self.things))
        self.all = [i for i in every]
        self.placed = [i for i in every if self.things[i].group in PLACED]
        self.tinted = [i for i in self.placed if self.things[i].share > 0.45]
        self.weights = {
            name: [self.things[i].weight * (2 if name != "all" and self.things[i].simple else 1) for i in ids]
            for name, ids in (("all", self.all), ("placed", self.placed), ("tinted", self.tinted))
        }
        self.shares = shares or {
            "single": 0.5, "colour": 0.1, "count": 0.11, "pair": 0.15,
            "list": 0.03, "corner": 0.03, "place": 0.08,
        }  # fmt: skip

    def pick(self, pool):
        return self.dice.choices(getattr(self, pool), self.weights[pool])[0]

    def item(self, coloured=0.25):
        """A thing of scenes, now and then in a colour that isn't held out."""
        if self.dice.random() >= coloured:
            return Item(self.pick("placed"))
        thing = self.pick("tinted")
        return Item(thing, "main", self.colour_for(thing))

    def colour_for(self, thing):
        colours = [c for c in LABS if not held_out(c, self.things[thing].key)]
        return self.dice.choice(colours)

    def backdrop(self, items):
        """A plain colour that none of the things has."""
        used = {item.colour or self.things[item.thing].colour for item in items}
        return self.dice.choice([colour for colour in PALETTE if colour not in used])

    def single(self):
        thing = self.pick("all")
        styles = self.things[thing].styles
        others = [style for style in styles if style in ("flat", "line")]
        style = self.dice.choice(others) if others and self.dice.random() < 0.12 else "main"
        style = style if style in styles else others[0]
        return Scene("single", (Item(thing, style),))

    def colour(self):
        item = self.item(1.0)
        return Scene("single", (item,), back=self.maybe_back([item], 0.12, 0.03))

    def maybe_back(self, items, plain, place):
        chance = self.dice.random()
        if chance < plain:
            return self.backdrop(items)
        return self.dice.choice(list(backgrounds.PLACES)) if chance < plain + place else None

    def count(self):
        item = self.item(0.3)
        return Scene("count", (item,), self.dice.randint(2, 6), back=self.maybe_back([item], 0.06, 0.0))

    def pair(self):
        while True:
            items = (self.item(0.35), self.item(0.35))
            keys = [self.things[item.thing].key for item in items]
            if keys[0] != keys[1] and not held_out(*keys):
                break
        kind = self.dice.choice(["left", "right", "above", "below", "and", "and"])
        back = self.maybe_back(items, 0.04, 0.1 if kind == "and" else 0)
        return Scene(kind, items, back=back)

    def list(self):
        items = {item.thing: item for item in (self.item(0.15) for _ in range(8))}
        return Scene("list", tuple(items.values())[:3])

    def corner(self):
        item = self.item(0.2)
        return Scene("corner", (item,), where=self.dice.choice(list(layouts.CORNERS)))

    def place(self):
        item = self.item(0.15)
        plain = self.dice.random() < 0.35
        back = self.backdrop([item]) if plain else self.dice.choice(list(backgrounds.PLACES))
        return Scene("single", (item,), back=back)

    def scene(self):
        kind = self.dice.choices(list(self.shares), list(self.shares.values()))[0]
        return getattr(self, kind)()

    def sample(self, width=128, height=128):
        """A text and its picture."""
        scene = self.scene()
        return described(scene, self.things, self.dice), self.pictures.draw(scene, width, height)
