"""Writes ../fixtures: pictures, and how near the trained tower says that each is to each text.

`python reference.py WEIGHTS TEXT_MODEL OUT`; the server's vectors are compared with it.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from export import read_tower
from pictures import COLOURS, shape_sprites
from texts import Texts

TEXTS = ["a red circle", "a blue square", "a green star", "a yellow triangle", "an apple", "a dog"]
# name, shape, colour, width, height, whether it is cut out (transparent)
PICTURES = [
    ("red-circle", "circle", "red", 128, 128, False),
    ("blue-square", "square", "blue", 300, 300, True),
    ("green-star", "star", "green", 420, 260, False),
    ("yellow-triangle", "triangle", "yellow", 90, 64, True),
]


def drawn(shape, colour, width, height, cut_out):
    names, sprites = shape_sprites()
    side = min(width, height)
    mask = Image.fromarray(sprites[names.index(shape)][..., 3]).resize((side, side), Image.BICUBIC)
    picture = Image.new("RGBA", (width, height), (0, 0, 0, 0) if cut_out else (255, 255, 255, 255))
    paint = Image.new("RGBA", (side, side), COLOURS[colour] + (255,))
    picture.paste(paint, ((width - side) // 2, (height - side) // 2), mask)
    return picture if cut_out else picture.convert("RGB")


def pixels_of(picture, size):
    """As preprocessor_config.json says: on white, longest edge, bicubic, centred on white."""
    flat = Image.new("RGBA", picture.size, "white")
    flat.alpha_composite(picture.convert("RGBA"))
    scale = size / max(picture.size)
    width, height = (max(1, int(side * scale)) for side in picture.size)
    square = Image.new("RGB", (size, size), "white")
    small = flat.convert("RGB").resize((width, height), Image.BICUBIC)
    square.paste(small, ((size - width + 1) // 2, (size - height + 1) // 2))
    return (torch.from_numpy(np.array(square)).permute(2, 0, 1).float() / 255 - 0.5) / 0.5


@torch.no_grad()
def main(weights, text_model, out):
    out.mkdir(exist_ok=True)
    size = json.loads((weights / "config.json").read_text())["image_size"]
    pictures = {name: drawn(*spec) for name, *spec in PICTURES}
    for name, picture in pictures.items():
        picture.save(out / f"{name}.png", optimize=True)
    images = read_tower(weights)(torch.stack([pixels_of(p, size) for p in pictures.values()]))
    texts = Texts(text_model, exact=True)(TEXTS)
    table = [[round(value, 5) for value in row] for row in (images @ texts.T).tolist()]
    found = {"texts": TEXTS, "images": dict(zip(pictures, table))}
    (out / "reference.json").write_text(json.dumps(found, indent=1) + "\n")
    for name, row in found["images"].items():
        print(name, row)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
