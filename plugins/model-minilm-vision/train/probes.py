"""Two looks that evaluate.py adds: photos that were never trained on, and words for colours."""

import random
from pathlib import Path

import numpy as np
import torch

from measure import both_ways, on_white, vectors_of
from pictures import NAMES, SIZE, colour_names, turn_hue, uncoloured


def is_photo(image):
    """Whether a cut-out has the many shades of a photo (a drawing has few)."""
    pixels = np.asarray(image.resize((48, 48))).reshape(-1, 4)
    return len({tuple(pixel // 8) for pixel in pixels[pixels[:, 3] > 200][:, :3]}) >= 200


def stamps(folder):
    """Cut-out photos `[N, SIZE, SIZE, 4]` of Tux Paint with their captions, each caption once."""
    from PIL import Image

    pictures, captions = [], []
    for file in sorted(Path(folder).rglob("*.png")):
        text = file.with_suffix(".txt")
        if {"cartoon", "symbols"} & set(file.parts) or not text.exists():
            continue
        caption = text.read_text(errors="ignore").splitlines()[0].strip().rstrip(".")
        image = Image.open(file).convert("RGBA")
        if len(caption) > 70 or caption in captions or not is_photo(image):
            continue
        side = max(image.size)
        square = Image.new("RGBA", (side, side), (255, 255, 255, 0))
        square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
        pictures.append(np.asarray(square.resize((SIZE, SIZE), Image.BICUBIC)))
        captions.append(caption)
    return np.stack(pictures), captions


def photo_figures(tower, folder, texts, size):
    sprites, captions = stamps(folder)
    images = vectors_of(tower, (on_white(sprites, size) * 255).round() / 255)
    return len(captions), both_ways(images, texts(captions))


def recoloured(sprites, names):
    """Every sprite with its hue turned: where a colour fills it then, the picture, name, colour."""
    dice = random.Random(3)
    rgba = torch.from_numpy(sprites).permute(0, 3, 1, 2).float() / 255
    turned = turn_hue(rgba, torch.tensor([dice.uniform(0, 6.28) for _ in names]))
    colours = colour_names(turned)
    kept = [at for at, colour in enumerate(colours) if colour]
    pixels = (turned[kept].permute(0, 2, 3, 1) * 255).byte().numpy()
    return pixels, [uncoloured(names[at]) for at in kept], [colours[at] for at in kept]


def colour_figures(tower, sprites, names, texts, size):
    """How often "a COLOUR NAME" of the right colour is nearest, of the eleven colours."""
    pictures, things, colours = recoloured(sprites, names)
    if not things:
        return 0, 0.0
    images = vectors_of(tower, on_white(pictures, size))
    said = texts([f"a {colour} {thing}" for thing in things for colour in NAMES])
    scores = torch.einsum("nd,ncd->nc", images, said.view(len(things), len(NAMES), -1))
    right = [NAMES[best] == colour for best, colour in zip(scores.argmax(1).tolist(), colours)]
    return len(right), sum(right) / len(right)
