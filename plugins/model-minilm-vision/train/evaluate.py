"""The figures of README.md: `python evaluate.py --data DATA --weights ../weights --text-model M`.

A thousand pictures of the style that the training never saw, against their English names.
"""

import argparse
import json
import random
from pathlib import Path

import torch

from export import read_tower
from measure import both_ways, on_white, vectors_of
from pictures import NAMES, open_sprites
from probes import colour_figures, photo_figures
from texts import Texts
from train import training_sprites
from words import choose_unseen, lines_of, mentions


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--text-model", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--baseline", action="store_true", help="the colour histograms, too")
    parser.add_argument("--stamps", type=Path, help="folder of tuxpaint-stamps-default, for photos")
    return parser.parse_args()


def heldout_set(data, count):
    """The pictures, their names, and which of them show what the training kept out."""
    lines = lines_of(data / "heldout.jsonl")
    named = [(at, line) for at, line in enumerate(lines) if line.get("english")]
    chosen = random.Random(23).sample(named, min(count, len(named)))
    unseen = choose_unseen(lines)
    rows = [row for row, (_, line) in enumerate(chosen) if mentions(line, unseen)]
    sprites = open_sprites(data / "heldout.bin")[[at for at, _ in chosen]]
    return sprites, [line["english"]["name"] for _, line in chosen], rows


def rounded(tower, bits):
    """The tower with weights of `bits` bits per output channel (8) or in fp16 (16), in fp32."""
    state = {}
    for name, tensor in tower.state_dict().items():
        if bits == 16:
            tensor = tensor.half().float()
        elif tensor.dim() > 1:
            rows = tensor.flatten(1)
            scale = rows.abs().amax(1, keepdim=True).clamp(min=1e-12) / (2 ** (bits - 1) - 1)
            tensor = ((rows / scale).round() * scale).view_as(tensor)
        state[name] = tensor
    tower.load_state_dict(state)
    return tower


def histograms(sprites):
    """Colour histograms `[N, 64]` of sprites on white, four steps a channel."""
    result = []
    for sprite in sprites:
        rgba = torch.tensor(sprite[2::6, 2::6]).float() / 255
        flat = rgba[..., :3] * rgba[..., 3:] + 1 - rgba[..., 3:]
        steps = (flat * 3.999).long()
        index = (steps[..., 0] * 16 + steps[..., 1] * 4 + steps[..., 2]).flatten()
        result.append(torch.bincount(index, minlength=64).float() / len(index))
    return torch.stack(result)


def baseline(data, sprites, texts, unseen):
    """For each picture the text vector of the training picture with the nearest histogram."""
    training = [sprite for sprite in training_sprites(data, unseen) if not sprite["mono"]]
    known = histograms([sprite["pixels"] for sprite in training])
    nearest = [int((known - one).abs().sum(1).argmin()) for one in histograms(sprites)]
    return texts([training[index]["names"][0] for index in nearest])


def report(title, images, vectors, rows):
    similarity = images @ vectors.T
    print(f"## {title}")
    print(json.dumps({"all": both_ways(images, vectors)}))
    print(json.dumps({f"unseen concepts ({len(rows)})": both_ways(images, vectors, rows)}))
    own = similarity.diagonal().mean().item()
    print(f"mean cosine of pairs {own:.3f}, of others {(similarity.mean().item()):.3f}", flush=True)


def main():
    options = arguments()
    torch.set_num_threads(1)
    sprites, names, rows = heldout_set(options.data, options.count)
    texts = Texts(options.text_model, exact=True)
    vectors = texts(names)
    size = json.loads((options.weights / "config.json").read_text())["image_size"]
    count = len(names)
    print(f"{count} pictures at {size}; chance: R@1 {1 / count:.4f}, R@5 {5 / count:.4f}")
    pictures = (on_white(sprites, size) * 255).round() / 255
    images = vectors_of(read_tower(options.weights), pictures)
    report("the served weights", images, vectors, rows)
    count, right = colour_figures(read_tower(options.weights), sprites, names, texts, size)
    print(f"the right one of {len(NAMES)} colours: {right:.3f} of {count} recoloured pictures")
    if options.stamps:
        count, figures = photo_figures(read_tower(options.weights), options.stamps, texts, size)
        print(json.dumps({f"{count} photos": figures}))
    small = vectors_of(rounded(read_tower(options.weights), 8), pictures)
    report("int8 weights", small, vectors, rows)
    print(f"cosine of int8 with the served: {(small * images).sum(1).mean():.4f}")
    if options.baseline:
        unseen = choose_unseen(lines_of(options.data / "heldout.jsonl"))
        report("colour histograms", baseline(options.data, sprites, texts, unseen), vectors, rows)


if __name__ == "__main__":
    main()
