"""Trains the denoiser: `python train.py --data DATA --encoder MINILM --out OUT`, goes on where OUT stopped.

OUT/last.pt is replaced every few minutes (weights, their mean, optimizers, step); OUT/samples holds sheets
of fixed prompts and OUT/log.jsonl the losses.
"""

import argparse
import json
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from encoder import Texts
from feed import LENGTHS, produce
from grid import patchify
from model import IrisTransformer
from optimizer import optimizers
from sample import sample_sheet
from sample import times as schedule
from sketch import TRAINED


def options():
    parser = argparse.ArgumentParser()
    for name in ("data", "encoder", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--muon", type=float, default=0.015)
    parser.add_argument("--adam", type=float, default=1e-3)
    parser.add_argument("--decay-from", type=int, default=10**9, help="step where the rate begins to fall")
    parser.add_argument("--until", type=int, default=10**9, help="step where it is nearly 0: the end")
    parser.add_argument("--minutes", type=float, help="end then; the rate falls all along")
    parser.add_argument("--learn-sketch", action="store_true", help="train the sketch on, too")
    parser.add_argument("--save", type=float, default=300, help="seconds between checkpoints")
    parser.add_argument("--overfit", type=int, default=0, help="train on so many fixed samples only")
    parser.add_argument("--edits", type=float, default=0.0, help="share of samples that are edits")
    parser.add_argument("--rollout", type=float, default=0.0, help="share of batches of the few-step phase")
    parser.add_argument("--look", choices=["dark", "anime"], help="restyle every picture (for a LoRA)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    return parser.parse_args()


def times(count, generator):
    """Noise levels: near 1 mostly, where the text decides what is seen; a quarter is pure noise."""
    level = torch.sigmoid(torch.randn(count, generator=generator) * 1.2 + 1.6)
    pure = torch.rand(count, generator=generator) < 0.25
    return torch.where(pure, torch.ones(()), level)


@torch.no_grad()
def rolled(model, x, noise, rest, steps=4):
    """The sampler's own state after one to three of its steps from noise, and its level."""
    levels = schedule(steps)
    z = noise
    for now, after in list(zip(levels, levels[1:]))[: int(torch.randint(1, steps, (1,)))]:
        guess = model(z, torch.full((len(z),), float(now) * 1000, device=z.device), *rest)
        z = guess + (after / now) * (z - guess)
    return z, after.expand(len(z)).to(x)


def loss_of(model, texts, batch, generator, device, rollout=0.0, sketched=True):
    """The velocity's squared error, its weight bounded where little noise is left.

    An edit starts from noise on its source half of the time, as the sampler does with a strength below 1.
    A part of the batches starts from states of the model's own few-step sampling instead.
    """
    ids, mask, pictures = (torch.from_numpy(part) for part in batch[:3])
    x, *sources = (
        (torch.as_tensor(p).permute(0, 3, 1, 2).float() / 127.5 - 1).to(device)
        for p in (pictures, *batch[3])
    )
    text, mask = texts.states(ids, mask)
    t = times(len(x), generator).to(device)
    noise = torch.randn(x.shape, generator=generator).to(device)
    base = x
    if len(sources) == 1:
        late = ((t > 0.5) & (torch.rand(len(x), generator=generator).to(device) < 0.5)).view(-1, 1, 1, 1)
        base = torch.where(late, sources[0], x)
    common = x.shape[2] == x.shape[3] and ids.shape[1] < LENGTHS[-1] and len(sources) < 2
    stance = "default" if common else "force_eager"
    rest = (text, mask, sources)
    with torch.autocast(device, torch.bfloat16), torch.compiler.set_stance(stance):
        level = t[:, None, None, None]
        z = (1 - level) * base + level * noise
        if rollout and torch.rand(()) < rollout:
            z, t = rolled(model, x, noise, rest)
        guess, sketch = model(z, t * 1000, *rest, with_sketch=True)
    error = ((guess - x) ** 2).mean((1, 2, 3))
    loss = (error / t.clamp(min=0.2) ** 2).mean()
    if sketched and x.shape[2] == x.shape[3]:
        small = patchify(F.avg_pool2d(x, 4), 4)
        loss = loss + 0.5 * ((sketch.float() - small) ** 2).mean()
    return loss, error.detach().mean()


class Mean:
    """Exponential mean of the weights."""

    def __init__(self, model, decay=0.998):
        self.decay, self.count = decay, 0
        self.weights = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        self.count += 1
        decay = min(self.decay, (1 + self.count) / (10 + self.count))
        for name, value in model.state_dict().items():
            self.weights[name].lerp_(value, 1 - decay)


def rate(step, begun, started, options):
    """The part of the learning rate: a short warm-up at each start, constant, a linear fall at the end."""
    left = (options.until - step) / max(1, options.until - options.decay_from)
    if options.minutes:
        left = min(left, 1 - (time.time() - started) / (60 * options.minutes))
    return min(1.0, (step - begun + 1) / 20) * min(1.0, max(0.02, left))


def save(path, step, seen, model, mean, steppers):
    state = {
        "step": step,
        "seen": seen,
        "config": model.config,
        "model": model.state_dict(),
        "ema": mean.weights,
        "count": mean.count,
        "optimizers": [stepper.state_dict() for stepper in steppers],
    }
    torch.save(state, f"{path}.new")
    os.replace(f"{path}.new", path)


def report(out, mean, model, texts, name, device):
    shown = IrisTransformer(**model.config).to(device)
    shown.load_state_dict(mean.weights)
    sample_sheet(shown.eval(), texts, out / "samples" / f"{name}.png", device=device)


def main():
    chosen = options()
    torch.set_num_threads(chosen.threads)
    out = Path(chosen.out)
    (out / "samples").mkdir(parents=True, exist_ok=True)
    torch.manual_seed(chosen.seed)
    torch._dynamo.config.recompile_limit = 64
    texts = Texts(chosen.encoder, chosen.device)
    model = IrisTransformer().to(chosen.device)
    for name, param in model.named_parameters():
        # A rate that the blocks need spoils what the sketch has by heart.
        param.requires_grad_(chosen.learn_sketch or not name.startswith(TRAINED))
    steppers = optimizers(model, chosen.muon, chosen.adam)
    mean, step, seen = Mean(model), 0, 0
    last = out / "last.pt"
    if last.exists():
        state = torch.load(last, map_location=chosen.device, weights_only=False)
        model.load_state_dict(state["model"])
        mean.weights, mean.count = state["ema"], state["count"]
        step, seen = state["step"], state["seen"]
        for stepper, values in zip(steppers, state.get("optimizers", [])):
            stepper.load_state_dict(values)
    for block in [*model.blocks, *model.text_refiner, model.sketch]:
        block.compile(dynamic=False)
    rates = (chosen.muon, chosen.adam)
    queue = multiprocessing.get_context("spawn").Queue(6)
    for index in range(chosen.workers):
        context = multiprocessing.get_context("spawn")
        seed = chosen.seed + 1000003 * step + index
        context.Process(target=produce, args=(queue, chosen, seed), daemon=True).start()
    started, ended = time.time(), False
    begun, generator = step, torch.Generator().manual_seed(chosen.seed + step)
    saved, shown, losses, count = time.time(), time.time(), [], 0
    while not ended:
        batch = queue.get()
        loss, error = loss_of(
            model, texts, batch, generator, chosen.device, chosen.rollout, chosen.learn_sketch
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for stepper, base in zip(steppers, rates):
            stepper.param_groups[0]["lr"] = base * rate(step, begun, started, chosen)
            stepper.step()
            stepper.zero_grad(set_to_none=True)
        mean.update(model)
        minutes = (time.time() - started) / 60
        ended = step + 1 >= chosen.until or minutes > (chosen.minutes or minutes)
        step, seen, count = step + 1, seen + chosen.batch, count + chosen.batch
        losses.append((loss.item(), error.item()))
        if step % 20 == 0:
            speed = count / (time.time() - shown)
            loss, error = np.mean(losses, 0)
            line = {"step": step, "seen": seen, "loss": round(loss, 5), "error": round(error, 5)}
            line |= {"per_second": round(speed, 1), "waiting": queue.qsize(), "at": time.strftime("%H:%M:%S")}
            print(json.dumps(line), flush=True)
            shown, losses, count = time.time(), [], 0
        if time.time() - saved > chosen.save or ended:
            save(last, step, seen, model, mean, steppers)
            report(out, mean, model, texts, f"{seen:08d}", chosen.device)
            saved = time.time()


if __name__ == "__main__":
    main()
