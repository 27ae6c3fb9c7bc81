"""Trains the tower: `python train.py --help`; README.md has the whole recipe."""

import argparse
import json
import math
import random
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from measure import both_ways, on_white, vectors_of
from pictures import Scenes, open_sprites
from texts import Texts
from tower import Tower, load_imagenet
from words import choose_unseen, imagenet_names, lines_of, mentions, names_of, phrase, wordnet_nouns


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="what render.mjs wrote")
    parser.add_argument("--imagenet", type=Path, required=True, help="efficientnet-lite0-*.pth")
    parser.add_argument("--synsets", type=Path, required=True, help="imagenet_synsets.txt of timm")
    parser.add_argument("--text-model", type=Path, required=True, help="folder of the text encoder")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--steps", type=int, default=10**9, help="at most so many")
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--sizes", default="80:0.45,96:0.78,128:1", help="size:until this part of the time")
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--bank", type=int, default=4096, help="texts that are only negatives")
    parser.add_argument("--start-pictures", type=int, default=6000, help="for the first projection")
    parser.add_argument("--first-block", type=int, default=3, help="earlier blocks stay as they are")
    return parser.parse_args()


def training_sprites(data, unseen):
    """What may be trained on: every picture with a name that shows nothing kept out."""
    nouns = wordnet_nouns()
    chosen = []
    for file in ("sprites", "clipart"):
        pixels = open_sprites(data / f"{file}.bin")
        for own, line in zip(pixels, lines_of(data / f"{file}.jsonl"), strict=True):
            names = names_of(line, nouns)
            if names and not mentions(line, unseen):
                chosen.append({**line, "pixels": own, "names": names})
    return chosen


class Classes:
    """The thousand classes of the ImageNet classifier as (features, text vector) pairs.

    A class's features are the mean features and a step along the class's own weights, so far that
    the classifier is sure. They keep the photos' part of the space while the drawings are learnt.
    """

    def __init__(self, state, names, texts, logit=12.0):
        beta, gamma = state["_bn1.bias"], state["_bn1.weight"].abs()
        sample = beta + gamma * torch.randn(4096, len(beta))
        mean = sample.clamp(0, 6).mean(0)
        kept = [index for index, own in enumerate(names) if own]
        weight, bias = state["_fc.weight"][kept], state["_fc.bias"][kept]
        step = (logit - (weight @ mean + bias)) / weight.square().sum(1)
        self.features = (mean + step[:, None] * weight).clamp(min=0)
        said = [[f"a photo of a {names[index][0]}", *names[index]] for index in kept]
        self.vectors = torch.stack([F.normalize(texts(one).mean(0), dim=0) for one in said])


def first_projection(tower, scenes, texts, classes, count, size):
    """The ridge regression from frozen features to text vectors, pictures and classes together."""
    features, vectors = [], []
    with torch.no_grad():
        for _ in range(math.ceil(count / 100)):
            pictures, captions = scenes.batch(min(count, 100), size)
            pixels = ((pictures - 0.5) / 0.5).contiguous(memory_format=torch.channels_last)
            with torch.autocast("cpu", torch.bfloat16):
                features.append(tower.features(pixels))
            vectors.append(texts(captions))
    x = torch.cat([*features, classes.features]).double()
    y = torch.cat([*vectors, classes.vectors]).double()
    parts = torch.ones(len(x))
    parts[-len(classes.features) :] = 2
    mean_x, mean_y = x.mean(0), y.mean(0)
    x, y = (x - mean_x) * parts[:, None], (y - mean_y) * parts[:, None]
    gram = x.T @ x
    gram += torch.eye(len(gram)) * 0.1 * gram.diagonal().mean()
    weight = torch.linalg.solve(gram, x.T @ y).T
    tower.projection.weight.data.copy_(weight)
    tower.projection.bias.data.copy_(mean_y - weight @ mean_x)


def contrast(images, vectors, bank, scale, close=0.9):
    """Symmetric InfoNCE; texts nearly the same as a picture's own are no negatives of it.

    The texts of `bank` are further negatives of the pictures.
    """
    own = torch.eye(len(images), dtype=torch.bool)
    like = vectors @ vectors.T
    logits = scale * images @ vectors.T
    logits = logits.masked_fill((like > close) & ~own, -1e4)
    extra = (scale * images @ bank.T).masked_fill(vectors @ bank.T > 0.8, -1e4)
    target = torch.arange(len(images))
    by_image = F.cross_entropy(torch.cat([logits, extra], 1), target, label_smoothing=0.02)
    return (by_image + F.cross_entropy(logits.T, target)) / 2


class Anchored:
    """AdamW whose decay pulls the network towards its start (L2-SP), not towards zero."""

    def __init__(self, tower, scale, rate, pull=0.02):
        body = [p for n, p in tower.named_parameters() if p.requires_grad and "projection" not in n]
        groups = [
            {"params": body, "share": 1.0},
            {"params": list(tower.projection.parameters()), "share": 2.0},
            {"params": [scale], "share": 10.0},
        ]
        self.adam = torch.optim.Adam(groups, lr=rate, betas=(0.9, 0.98))
        self.rate, self.pull = rate, pull
        self.anchors = [(p, p.detach().clone()) for p in body]

    def step(self, part):
        """One step of the schedule: `part` of the time is over; warm-up, then a cosine."""
        factor = min(1, part / 0.05 + 0.01) * (0.5 + 0.5 * math.cos(math.pi * min(1, part)))
        for group in self.adam.param_groups:
            group["lr"] = self.rate * factor * group["share"]
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        with torch.no_grad():
            for parameter, start in self.anchors:
                parameter.lerp_(start, self.pull * factor * 0.05)


def size_at(sizes, part):
    return next(size for size, until in sizes if part <= until or until >= 1)


def evaluator(data, texts, size, count=1000):
    """Figures of the held-out style in the course of the training; to look at only."""
    every = enumerate(lines_of(data / "heldout.jsonl"))
    lines = [(i, line) for i, line in every if line.get("english")]
    lines = random.Random(23).sample(lines, min(count, len(lines)))
    pixels = open_sprites(data / "heldout.bin")
    pictures = on_white(pixels[[i for i, _ in lines]], size)
    vectors = texts([line["english"]["name"] for _, line in lines])

    def figures(tower):
        with torch.autocast("cpu", torch.bfloat16):
            return both_ways(vectors_of(tower, pictures), vectors)

    return figures


def save(tower, out, name):
    torch.save(tower.state_dict(), out / f"{name}.pt")


def main():
    options = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    options.out.mkdir(parents=True, exist_ok=True)
    sizes = [(int(s), float(u)) for s, u in (pair.split(":") for pair in options.sizes.split(","))]
    unseen = choose_unseen(lines_of(options.data / "heldout.jsonl"))
    sprites = training_sprites(options.data, unseen)
    print(len(sprites), "pictures;", len(unseen), "words unseen", flush=True)
    texts = Texts(options.text_model)
    scenes = Scenes(sprites)
    state = torch.load(options.imagenet, map_location="cpu")
    lemmas = options.synsets.with_name("imagenet_synset_to_lemma.txt")
    classes = Classes(state, imagenet_names(options.synsets, lemmas, unseen), texts)

    tower = Tower(classes.vectors.shape[1])
    load_imagenet(tower, state)
    tower.to(memory_format=torch.channels_last).train_from(options.first_block)
    first_projection(tower, scenes, texts, classes, options.start_pictures, sizes[0][0])
    save(tower, options.out, "start")
    dice = random.Random(2)
    others = [dice.choice(dice.choice(sprites)["names"]) for _ in range(options.bank)]
    bank = texts([phrase(name, dice) for name in others])
    figures = evaluator(options.data, texts, sizes[0][0])
    print("start", json.dumps(figures(tower)), flush=True)
    train(tower, scenes, texts, classes, bank, figures, sizes, options)


def train(tower, scenes, texts, classes, bank, figures, sizes, options):
    scale = torch.nn.Parameter(torch.tensor(math.log(30.0)))
    optimizer = Anchored(tower, scale, options.rate)
    began, shown, looked, mean = time.time(), 0.0, 0.0, None
    for step in range(options.steps):
        part = max((time.time() - began) / (60 * options.minutes), step / options.steps)
        if part >= 1:
            break
        pictures, captions = scenes.batch(options.batch, size_at(sizes, part))
        vectors = texts(captions)
        pixels = ((pictures - 0.5) / 0.5).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", torch.bfloat16):
            features = tower.features(pixels)
        images = F.normalize(tower.projection(features), dim=-1)
        apart = contrast(images, vectors, bank, scale.exp().clamp(max=80))
        away = 1 - (images * vectors).sum(1).mean()
        known = F.normalize(tower.projection(classes.features), dim=-1)
        forgotten = 1 - (known * classes.vectors).sum(1).mean()
        loss = apart + away + forgotten
        loss.backward()
        optimizer.step(part)
        now = [apart.item(), away.item(), forgotten.item()]
        mean = now if mean is None else [0.98 * a + 0.02 * b for a, b in zip(mean, now)]
        if time.time() - shown > 20:
            shown = time.time()
            said = " ".join(f"{value:.3f}" for value in mean)
            print(f"{part:.3f} step {step} loss {said} scale {scale.exp():.1f}", flush=True)
        if time.time() - looked > 480 and step:
            looked = time.time()
            print(f"{part:.3f}", json.dumps(figures(tower)), flush=True)
            save(tower, options.out, "last")
    save(tower, options.out, "final")
    print("final", json.dumps(figures(tower)), flush=True)


if __name__ == "__main__":
    main()
