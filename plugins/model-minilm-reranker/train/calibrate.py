"""Fits one temperature and one bias on held-out training queries and folds them into the head.

    python calibrate.py --model OUT/run/mean --encoder FOLDER --mined OUT/mined.pt \\
        --written a.jsonl b.jsonl --out OUT/calibrated

Afterwards a score of 0.5 means: as likely relevant as not.
"""

import argparse
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from groups import Pool, written_items
from evaluate import cross_scores, grades
from train import score
from weights import load_model, load_tokenizer


def held_out(model, tokenizer, mined: dict, items: list):
    """Logits and labels of the held-out queries: half the weight to the written ones."""
    logits = [float(x) for found in cross_scores(model, tokenizer, items) for x in found]
    labels = [float(grade >= 2) for item in items for grade in grades(item)]
    weights = [0.5 / len(labels)] * len(labels)
    pools = [Pool(found, tokenizer, 144) for found in mined.values()]
    groups = [pool.group(dev=True) for pool in pools for _ in range(4)]
    rows = [(query, doc) for query, docs, _, _ in groups for doc in docs]
    weak = [float(label > 0) for _, _, _, labels in groups for label in labels]
    logits += score(model, rows).tolist()
    return logits, labels + weak, weights + [0.5 / len(weak)] * len(weak)


def fit(logits: list, labels: list, weights: list) -> tuple:
    """The scale and the bias with the smallest cross entropy."""
    scale, bias = torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    values, wanted, weight = (torch.tensor(x) for x in (logits, labels, weights))
    optimizer = torch.optim.LBFGS([scale, bias], max_iter=200)

    def closure():
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(
            values * scale + bias, wanted, weight=weight, reduction="sum")
        loss.backward()
        return loss.detach()

    optimizer.step(closure)
    return scale.item(), bias.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--mined", required=True)
    parser.add_argument("--written", nargs="+", default=[])
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    random.seed(17)
    torch.set_num_threads(1)
    model, tokenizer = load_model(args.model), load_tokenizer(args.encoder)
    mined = torch.load(args.mined, weights_only=False)
    scale, bias = fit(*held_out(model, tokenizer, mined, written_items(args.written, True)))
    print(f"scale {scale:.4f} bias {bias:.4f}")
    with torch.no_grad():
        model.classifier.weight.mul_(scale)
        model.classifier.bias.mul_(scale).add_(bias)
    args.out.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(args.out)
    torch.save(model.state_dict(), args.out / "state.pt")


if __name__ == "__main__":
    main()
