"""Trains the text's layers and the sketch alone: `python sketch.py --data DATA --encoder MINILM --out OUT`.

A pool of texts with their 32 x 32 pictures is made once (OUT/pool.pt), then gone through for so many
minutes; the result replaces those layers in OUT/last.pt (made if it isn't there). A sample costs a
twentieth of one of the whole network, so a thing is seen often.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from encoder import Texts
from feed import LENGTHS
from grid import patchify
from model import IrisTransformer
from optimizer import optimizers
from scenes import Composer, Pictures

SIDE = 32
TRAINED = ("text_", "sketch.")
SHARES = {
    "single": 0.22, "colour": 0.08, "count": 0.12, "pair": 0.36, "list": 0.05, "corner": 0.04,
    "place": 0.13,
}  # fmt: skip


def options():
    parser = argparse.ArgumentParser()
    for name in ("data", "encoder", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pool", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=77)
    return parser.parse_args()


def make_pool(chosen, path):
    """Samples sorted into chunks of one length: (states fp16, mask, pictures) each."""
    composer = Composer(Pictures(chosen.data), chosen.seed, SHARES)
    texts = Texts(chosen.encoder, chosen.device)
    samples = [composer.sample(SIDE, SIDE) for _ in range(chosen.pool)]
    samples.sort(key=lambda sample: len(texts.tokenizer.tokenize(sample[0])))
    chunks = []
    for start in range(0, len(samples) - chosen.batch + 1, chosen.batch):
        part = samples[start : start + chosen.batch]
        ids, mask = texts.tokens([text for text, _ in part])
        states, mask = texts.states(ids, mask)
        pictures = torch.from_numpy(np.stack([picture for _, picture in part]))
        chunks.append((states.half(), mask, pictures))
    torch.save(chunks, path)
    return chunks


def padded(states, mask, pictures):
    """A chunk with its length brought to one of few, so that few shapes are compiled."""
    longer = next(length for length in LENGTHS if length >= mask.shape[1]) - mask.shape[1]
    return F.pad(states, (0, 0, 0, longer)), F.pad(mask, (0, longer)), pictures


def main():
    chosen = options()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(chosen.seed)
    out = Path(chosen.out)
    out.mkdir(parents=True, exist_ok=True)
    pool = out / "pool.pt"
    chunks = torch.load(pool) if pool.exists() else make_pool(chosen, pool)
    chunks = [padded(*chunk) for chunk in chunks]
    model = IrisTransformer()
    last = out / "last.pt"
    state = torch.load(last, weights_only=False) if last.exists() else {}
    if state:
        model.load_state_dict(state["model"], strict=False)
    for name, param in model.named_parameters():
        param.requires_grad_(name.startswith(TRAINED))
    model.to(chosen.device)
    torch._dynamo.config.recompile_limit = 64
    for layer in [*model.text_refiner, model.sketch]:
        layer.compile(dynamic=False)
    steppers = optimizers(model, 0.02, 2e-3)
    dice = torch.Generator().manual_seed(chosen.seed)
    began, step, losses = time.time(), 0, []
    left = 1.0
    while left > 0:
        for index in torch.randperm(len(chunks), generator=dice).tolist():
            states, mask, pictures = chunks[index]
            left = 1 - (time.time() - began) / (60 * chosen.minutes)
            if left <= 0:
                break
            x = patchify(pictures.permute(0, 3, 1, 2).float() / 127.5 - 1, 4).to(chosen.device)
            with torch.autocast(chosen.device, torch.bfloat16):
                text, pooled, far = model.encode_text(
                    states.float().to(chosen.device), mask.to(chosen.device)
                )
                guess = model.sketch(text, far, pooled)
            loss = ((guess.float() - x) ** 2).mean()
            loss.backward()
            for stepper, rate in zip(steppers, (0.02, 2e-3)):
                stepper.param_groups[0]["lr"] = rate * max(0.02, min(1.0, 1.5 * left, (step + 1) / 20))
                stepper.step()
                stepper.zero_grad(set_to_none=True)
            step += 1
            losses.append(loss.item())
            if step % 50 == 0:
                print(step, step * chosen.batch, round(float(np.mean(losses[-50:])), 5), flush=True)
    merge(model, state, last)


def merge(model, state, last):
    """Puts the trained layers into a checkpoint; its optimizers begin anew."""
    weights = {name: value.detach().cpu() for name, value in model.state_dict().items()}
    trained = {name: value for name, value in weights.items() if name.startswith(TRAINED)}
    start = {"step": 0, "seen": 0, "count": 0, "model": weights, "ema": weights}
    state = {**start, **state, "config": model.config}
    for which in ("model", "ema"):
        state[which] = {**weights, **state[which], **trained}
    state.pop("optimizers", None)
    torch.save(state, f"{last}.new")
    os.replace(f"{last}.new", last)


if __name__ == "__main__":
    main()
