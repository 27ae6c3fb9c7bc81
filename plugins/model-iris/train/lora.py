"""Trains a LoRA: `python lora.py --look dark --data DATA --encoder MINILM --out OUT [--steps 400]`.

The base is OUT/last.pt (its mean weights), which stay as they are; the result is OUT/LOOK.safetensors in
PEFT's names (`transformer.blocks.0.attn1.to_q.lora_A.weight`), made for a strength of 1.
"""

import argparse
import multiprocessing
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from encoder import Texts
from feed import produce
from sample import load, sample_sheet
from train import loss_of

LAYERS = ("attn1.to_q", "attn1.to_k", "attn1.to_v", "attn1.to_out.0", "ff.net.0.proj", "ff.net.2")


class Adapted(nn.Module):
    """A frozen linear layer with a trained update of low rank: `base(x) + B(A(x)) * strength`."""

    def __init__(self, base, rank):
        super().__init__()
        self.base, self.strength = base, 1.0
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x):
        return self.base(x) + self.lora_B(self.lora_A(x)) * self.strength


def adapt(model, rank):
    """Puts an update on each layer of the blocks that `LAYERS` names, and on the outputs."""
    model.requires_grad_(False)
    names = [f"blocks.{i}.{layer}" for i in range(len(model.blocks)) for layer in LAYERS]
    adapters = {}
    for name in [*names, "proj_out", "sketch_out"]:
        parent, _, last = name.rpartition(".")
        owner = model.get_submodule(parent)
        adapter = Adapted(model.get_submodule(name), rank)
        if isinstance(owner, nn.ModuleList):
            owner[int(last)] = adapter
        else:
            setattr(owner, last, adapter)
        adapters[name] = adapter
    return adapters


def write(adapters, path):
    tensors = {}
    for name, adapter in adapters.items():
        for part in ("lora_A", "lora_B"):
            weight = getattr(adapter, part).weight.detach()
            tensors[f"transformer.{name}.{part}.weight"] = weight.half().contiguous()
    save_file(tensors, path)


def options():
    parser = argparse.ArgumentParser()
    for name in ("look", "data", "encoder", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.set_defaults(edits=0.0, overfit=0)
    return parser.parse_args()


def main():
    chosen = options()
    torch.set_num_threads(chosen.threads)
    out = Path(chosen.out)
    texts = Texts(chosen.encoder, chosen.device)
    model = load(out / "last.pt").to(chosen.device)
    adapters = adapt(model, chosen.rank)
    trained = [param for param in model.parameters() if param.requires_grad]
    stepper = torch.optim.AdamW(trained, lr=chosen.rate, weight_decay=0.0)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue(4)
    context.Process(target=produce, args=(queue, chosen, 5), daemon=True).start()
    generator, began = torch.Generator().manual_seed(5), time.time()
    for step in range(chosen.steps):
        loss, error = loss_of(model, texts, queue.get(), generator, chosen.device, sketched=False)
        loss.backward()
        left = 1 - step / chosen.steps
        stepper.param_groups[0]["lr"] = chosen.rate * min(1.0, (step + 1) / 20, 2 * left)
        stepper.step()
        stepper.zero_grad(set_to_none=True)
        if step % 20 == 19:
            print(step + 1, round(error.item(), 4), round(time.time() - began), flush=True)
    write(adapters, out / f"{chosen.look}.safetensors")
    for strength in (0.5, 1.0, 1.5):
        for adapter in adapters.values():
            adapter.strength = strength
        sample_sheet(model, texts, out / "samples" / f"{chosen.look}-{strength}.png", device=chosen.device)


if __name__ == "__main__":
    main()
