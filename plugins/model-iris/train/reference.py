"""Writes ../fixtures: what PyTorch draws with the shipped weights, from the server's noise of a seed.

`python reference.py WEIGHTS ENCODER OUT`; the server's pictures, reduced to 128 x 128, are compared with it.
"""

import json
import math
import sys
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file
from torch.nn import functional as F

from decoder import IrisDecoder
from encoder import Texts
from grid import unpatchify
from lora import adapt
from model import IrisTransformer
from pack import WEIGHTS, unpacked
from sample import sampled, to_bytes

# prompt, seed, LoRA, its strength
PICTURES = [
    ("a cat", 1, "none", 0),
    ("a red car and a blue tree", 2, "none", 0),
    ("an apple", 3, "dark", 1.0),
    ("a dog", 4, "anime", 0.6),
]
WORD = 0xFFFFFFFF


def spread(seed):
    """splitmix32."""
    state = seed & WORD
    while True:
        state = (state + 0x9E3779B9) & WORD
        mixed = (state ^ (state >> 16)) * 0x21F0AAAD & WORD
        mixed = (mixed ^ (mixed >> 15)) * 0x735A2D97 & WORD
        yield mixed ^ (mixed >> 15)


def uniform(seed):
    """xoshiro128**, 53 bits of two words a number; `seed` is below 2 ** 32."""
    low, high = spread(seed), spread(0x5BD1E995)
    a, b, c, d = (next(low) ^ next(high) for _ in range(4))
    turned = lambda x, by: (x << by | x >> (32 - by)) & WORD

    def word():
        nonlocal a, b, c, d
        result = turned(b * 5 & WORD, 7) * 9 & WORD
        shifted = b << 9 & WORD
        c, d = c ^ a, d ^ b
        b, a = b ^ c, a ^ d
        c, d = c ^ shifted, turned(d, 11)
        return result

    while True:
        first = word() >> 5
        yield (first * 67_108_864 + (word() >> 6)) / 9_007_199_254_740_992


def noise(seed, length):
    """Pairs by the method of Box and Muller."""
    draw, values = uniform(seed), []
    while len(values) < length:
        radius = math.sqrt(-2 * math.log(1 - next(draw)))
        angle = 2 * math.pi * next(draw)
        values += [radius * math.cos(angle), radius * math.sin(angle)]
    return torch.tensor(values)


def part(kind, folder):
    config = json.loads((folder / "config.json").read_text())
    model = kind(**config)
    model.load_state_dict(unpacked(load_file(folder / WEIGHTS)))
    return model.eval()


def with_lora(weights, name, strength):
    model = part(IrisTransformer, weights / "transformer")
    if name == "none":
        return model
    tensors = load_file(weights / "loras" / f"{name}.safetensors")
    rank = next(value.shape[0] for key, value in tensors.items() if "lora_A" in key)
    for layer, adapter in adapt(model, rank).items():
        adapter.strength = strength
        for side in ("lora_A", "lora_B"):
            getattr(adapter, side).weight.data = tensors[f"transformer.{layer}.{side}.weight"].float()
    return model


@torch.no_grad()
def main(weights, encoder, out):
    torch.set_num_threads(1)
    out.mkdir(exist_ok=True)
    texts, decoder = Texts(encoder, longest=64), part(IrisDecoder, weights / "decoder")
    found = []
    for prompt, seed, lora, strength in PICTURES:
        start = unpatchify(noise(seed, 64 * 768).reshape(1, 64, 768), 8, 8)
        canvas = sampled(with_lora(weights, lora, strength), *texts([prompt], exact=True), start)
        small = F.avg_pool2d(decoder(canvas).clamp(-1, 1), 8)
        file = f"{prompt.replace(' ', '-')}.png"
        Image.fromarray(to_bytes(small)[0]).save(out / file, optimize=True)
        found.append({"file": file, "prompt": prompt, "seed": seed, "lora": lora, "strength": strength})
    (out / "reference.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
