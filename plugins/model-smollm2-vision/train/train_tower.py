"""Trains tower and projector towards the decoder's words: `python train_tower.py DATA START GGUF OUT MINUTES`.

The row of a square is taught to point where the decoder's embeddings of five words point: the thing
that covers the square, its colour, how many things the picture has, and where the thing is. So the
decoder, which is not there yet, will read rows that are like words it knows. START is the tower of
plugins/model-minilm-vision (safetensors), or tower.pt of a run that is to go on.
"""

import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

from decoder import embeddings_of
from scenes import ACROSS, DOWN, NAMES, NUMBERS, Scenes
from tower import Projector, Tower

MEAN, STD = torch.tensor([0.5] * 3).view(3, 1, 1), torch.tensor([0.5] * 3).view(3, 1, 1)
NONE = "nothing"


class Words(nn.Module):
    """Directions of the decoder's words, one table for each thing that a row says."""

    def __init__(self, embeddings, things):
        super().__init__()
        self.size = math.sqrt(float((embeddings("red") ** 2).sum()))
        tables = [[NONE, *things], NAMES, NUMBERS, ACROSS, DOWN]
        for index, words in enumerate(tables):
            table = torch.stack([embeddings(word) for word in words])
            self.register_buffer(f"table{index}", F.normalize(table - table.mean(0), dim=-1))
        self.scales = nn.Parameter(torch.full((5,), math.log(20.0)))

    def forward(self, rows):
        """Logits of each table for rows `[B, 16, width]`."""
        return [F.normalize(rows, dim=-1) @ getattr(self, f"table{i}").T * self.scales[i].exp() for i in range(5)]


def targets_of(squares, scenes):
    """Labels `[B, 16]` of each table, -100 where there is none."""
    count = torch.tensor([len(scene) - 1 for scene in scenes])
    free = lambda label: torch.where(label < 0, -100, label)
    things = squares[..., 0]
    return [things, free(squares[..., 1]), count[:, None].expand_as(things), free(squares[..., 2]), free(squares[..., 3])]


def normalized(pictures):
    return (pictures - MEAN) / STD


def tested(tower, projector, words, scenes, count=256):
    tower.eval()
    right, all_ = [0] * 5, [0] * 5
    with torch.no_grad():
        for _ in range(count // 64):
            pictures, squares, plans = scenes.batch(64)
            for i, (logits, target) in enumerate(zip(words(projector(tower(normalized(pictures)))), targets_of(squares, plans))):
                known = (target != -100) if i else target > 0
                right[i] += int((logits.argmax(-1) == target)[known].sum())
                all_[i] += int(known.sum())
    tower.train()
    return [f"{100 * a / max(1, b):.0f}" for a, b in zip(right, all_)]


def main():
    data, start, gguf, out, minutes = *sys.argv[1:5], float(sys.argv[5])
    torch.manual_seed(1)
    train, held = Scenes(f"{data}/train", int(time.time())), Scenes(f"{data}/held", 2, trains=False)
    assert train.things == held.things
    kept = torch.load(start) if start.endswith(".pt") else None
    tower = Tower(None if kept else start).to(memory_format=torch.channels_last)
    words = Words(embeddings_of(gguf), train.things)
    projector = Projector(words.table0.shape[1])
    if kept:  # goes on where another run ended
        for part, name in ((tower, "tower"), (projector, "projector"), (words, "words")):
            part.load_state_dict(kept[name])
    tower.train_from(3)
    groups = [{"params": [p for p in tower.parameters() if p.requires_grad], "most": 7e-4}, {"params": [*projector.parameters(), *words.parameters()], "most": 1.5e-3}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.01)
    began, count, size, mean = time.time(), 0, 64, [0.0] * 5
    weights = [1.0, 0.5, 0.5, 0.3, 0.3]

    def save():
        torch.save({"tower": tower.state_dict(), "projector": projector.state_dict(), "words": words.state_dict(), "things": train.things}, f"{out}/tower.pt")

    saved = time.time()
    while time.time() - began < minutes * 60:
        share = (time.time() - began) / (minutes * 60)
        for group in groups:
            group["lr"] = group["most"] * min(1, (count + 1) / 100) * (0.5 + 0.5 * math.cos(math.pi * share)) + 1e-6
        for group, own in zip(optimizer.param_groups, groups):
            group["lr"] = own["lr"]
        pictures, squares, plans = train.batch(size)
        with torch.autocast("cpu", torch.bfloat16):
            states = tower(normalized(pictures))
        rows = projector(states.float())
        loss = 0.02 * ((rows.norm(dim=-1) / words.size / 2 - 1) ** 2).mean()
        for i, (logits, target) in enumerate(zip(words(rows), targets_of(squares, plans))):
            weight = torch.where(target == 0, 0.3, 1.0) if i == 0 else torch.ones_like(target, dtype=torch.float)
            each = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100, reduction="none", label_smoothing=0.03)
            one = (each * weight.flatten()).sum() / (weight.flatten() * (target.flatten() != -100)).sum().clamp(min=1)
            mean[i] = 0.97 * mean[i] + 0.03 * one.item()
            loss = loss + weights[i] * one
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for g in groups for p in g["params"]], 2.0)
        optimizer.step()
        count += 1
        if count % 25 == 0:
            print(f"{count} steps, {time.time() - began:.0f} s,", *(f"{m / (1 - 0.97**count):.2f}" for m in mean), flush=True)
        if time.time() - saved > 150:
            print("held-out style, squares right (thing, colour, count, across, down):", *tested(tower, projector, words, held), flush=True)
            save()
            saved = time.time()
    print("held-out style:", *tested(tower, projector, words, held, 1024))
    save()


if __name__ == "__main__":
    main()
