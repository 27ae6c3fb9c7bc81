"""The sampler and contact sheets: `python sample.py CHECKPOINT ENCODER OUT.png [STEPS] [PROMPTS.txt]`."""

import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw

PROMPTS = """a cat
dog
a red car
an apple
a house
tree
elephant
a guitar
pizza
birthday cake
robot
a rocket
sunflower
a butterfly
owl
grinning face
a castle
umbrella
a blue apple
a green cat
purple elephant
yellow umbrella
a pink car
three apples
two cats
five red balloons
four stars
six bananas
a cat to the left of a tree
a dog and a ball
a red car and a blue house
a bird above a boat
an apple, a banana and a carrot
a cat on a blue background
a penguin in the snow
a rocket in space
an owl at night
a crab on a beach
a horse under a rainbow
a fox on the right
kucing
mobil merah
tiga apel
kucing merah di sebelah kiri pohon
gajah di pantai
line icon of a house
flat icon of a rabbit
flag of indonesia""".split("\n")


def times(steps, shift=3.0):
    """Noise levels from 1 to 0, closer together near 1 (the shift of flow-matching schedulers)."""
    level = torch.linspace(1, 0, steps + 1)
    return shift * level / (1 + (shift - 1) * level)


@torch.no_grad()
def sampled(model, text, mask, noise, steps=4, references=(), guidance=None, levels=None):
    """Euler steps from noise `[batch, 3, H, W]`; `guidance` is (scale, null text, null mask)."""
    z = noise
    levels = times(steps) if levels is None else levels
    for now, after in zip(levels[:-1], levels[1:]):
        timestep = torch.full((len(z),), float(now) * 1000, device=z.device)
        x = model(z, timestep, text, mask, references)
        if guidance:
            scale, null, null_mask = guidance
            base = model(z, timestep, null, null_mask, references)
            x = base + scale * (x - base)
        z = x + (after / now) * (z - x)
    return z.clamp(-1, 1)


def to_bytes(pictures):
    return ((pictures.permute(0, 2, 3, 1) + 1) * 127.5 + 0.5).clamp(0, 255).byte().cpu().numpy()


def sheet(pictures, texts, path, columns=8):
    """Writes pictures in rows with their texts below."""
    height, width = pictures.shape[1:3]
    rows = -(-len(pictures) // columns)
    page = Image.new("RGB", (columns * (width + 4), rows * (height + 16)), (90, 90, 90))
    pen = ImageDraw.Draw(page)
    for index, (picture, text) in enumerate(zip(pictures, texts)):
        x, y = index % columns * (width + 4), index // columns * (height + 16)
        page.paste(Image.fromarray(picture), (x, y))
        pen.text((x + 1, y + height + 2), text[:26], fill="white")
    page.save(path)


def sample_sheet(model, texts, path, prompts=PROMPTS, steps=4, device="cpu"):
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(len(prompts), 3, 128, 128, generator=generator).to(device)
    text, mask = texts(prompts)
    with torch.autocast(device, torch.bfloat16):
        pictures = sampled(model, text, mask, noise, steps)
    sheet(to_bytes(pictures), prompts, path)


def load(checkpoint, which="ema"):
    from model import IrisTransformer

    saved = torch.load(checkpoint, map_location="cpu", weights_only=False)
    model = IrisTransformer(**saved.get("config", {}))
    model.load_state_dict(saved[which])
    return model.eval()


if __name__ == "__main__":
    from encoder import Texts

    torch.set_num_threads(1)
    checkpoint, encoder, out, *rest = sys.argv[1:]
    prompts = Path(rest[1]).read_text().strip().split("\n") if len(rest) > 1 else PROMPTS
    steps = int(rest[0]) if rest else 4
    sample_sheet(load(checkpoint), Texts(encoder), out, prompts, steps)
