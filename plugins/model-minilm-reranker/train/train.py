"""Trains the cross-encoder.

    python train.py --encoder FOLDER --mined OUT/mined.pt --written a.jsonl b.jsonl \\
        --out OUT/run --minutes 45

One thread, bfloat16 with fp32 master weights. The learning rate follows the wall clock, so that a
run of --minutes ends at zero. OUT/run has the latest checkpoint and the moving average.
"""

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from transformers import AutoTokenizer, BertForSequenceClassification

from common import load_encoder, ndcg
from groups import Sampler, Written, written_items

# How often each source is drawn: first mostly everyday questions, at the end more documentation.
SHARES = {
    "everyday": {
        "written": 0.34, "distilled": 0.25, "wordnet": 0.1, "wordnet-uses": 0.06,
        "packages": 0.07, "libreoffice": 0.04, "anarchism": 0.04, "python": 0.02,
        "postgresql": 0.01, "foldoc": 0.02, "gimp": 0.015, "debian-faq": 0.01,
        "debian-reference": 0.01, "developers-reference": 0.005, "git": 0.005, "aptitude": 0.005,
    },
    "documentation": {
        "written": 0.24, "distilled": 0.24, "wordnet": 0.05, "wordnet-uses": 0.02, "packages": 0.1,
        "libreoffice": 0.11, "anarchism": 0.05, "python": 0.05, "postgresql": 0.03,
        "foldoc": 0.01, "gimp": 0.05, "debian-faq": 0.01, "debian-reference": 0.02,
        "developers-reference": 0.01, "git": 0.005, "aptitude": 0.005,
    },
}
CLS, SEP = 101, 102


def make_model(folder: str):
    model = BertForSequenceClassification.from_pretrained(
        folder, num_labels=1, attn_implementation="eager",
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    torch.nn.init.normal_(model.classifier.weight, std=0.02)
    torch.nn.init.zeros_(model.classifier.bias)
    return model


def pad(rows: list, most: int):
    """[CLS] query [SEP] document [SEP] with token types 0 and 1: ids, types, mask."""
    pairs = [([CLS, *query, SEP], [*doc[: most - len(query) - 3], SEP]) for query, doc in rows]
    width = max(len(left) + len(right) for left, right in pairs)
    ids = torch.zeros(len(pairs), width, dtype=torch.long)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, (left, right) in enumerate(pairs):
        size = len(left) + len(right)
        ids[row, :size] = torch.tensor(left + right)
        types[row, len(left) : size] = 1
        mask[row, :size] = 1
    return ids, types, mask


def logits_of(model, rows: list, most=512):
    ids, types, mask = pad(rows, most)
    return model(input_ids=ids, token_type_ids=types, attention_mask=mask).logits[:, 0].float()


@torch.no_grad()
def score(model, rows: list) -> np.ndarray:
    """Logits of (query ids, document ids), in batches of similar length."""
    model.eval()
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]) + len(rows[i][1]))
    found = np.zeros(len(rows), np.float32)
    for start in range(0, len(order), 32):
        part = order[start : start + 32]
        found[part] = logits_of(model, [rows[i] for i in part]).numpy()
    model.train()
    return found


def batches(sampler, tokens: int):
    """Endless micro-batches of groups with similar lengths, about `tokens` padded tokens each."""
    while True:
        drawn = [sampler.group() for _ in range(192)]
        longest = lambda group: len(group[0]) + max(map(len, group[1])) + 3
        drawn.sort(key=longest)
        cut, part = [], []
        for group in drawn:
            if part and (len(part) + 1) * len(group[1]) * min(512, longest(group)) > tokens:
                cut.append(part)
                part = []
            part.append(group)
        random.shuffle(cut)
        yield from cut


def loss_of(model, part: list):
    """Pointwise cross entropy against the teacher's probability, and the order within a group."""
    rows = [(query, doc) for query, docs, _, _ in part for doc in docs]
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]) + len(rows[i][1]))
    cuts = [order[start : start + 48] for start in range(0, len(order), 48)]
    found = torch.cat([logits_of(model, [rows[i] for i in cut]) for cut in cuts])
    found = found[torch.tensor(order).argsort()].view(len(part), -1)
    wanted = torch.tensor([logits for _, _, logits, _ in part])
    point = F.binary_cross_entropy_with_logits(found, wanted.sigmoid())
    order = F.kl_div(found.log_softmax(1), wanted.softmax(1), reduction="batchmean")
    return point + order, point.item(), order.item()


def develop(model, sampler, held_out) -> dict:
    """nDCG@10 on the held-out written questions and on held-out pairs of every source."""
    def mean(groups):
        rows = [(query, doc) for query, docs, _, _ in groups for doc in docs]
        scores, values = score(model, rows), []
        for _, docs, _, labels in groups:
            values.append(ndcg(labels, scores[: len(docs)].tolist()))
            scores = scores[len(docs) :]
        return round(float(np.mean(values)), 4)
    state = random.getstate()
    random.seed(1)
    weak = [pool.group(dev=True) for pool in sampler.pools.values() for _ in range(2)]
    own = [held_out.make(i, np.flatnonzero(held_out.owner == i).tolist())
           for i in range(len(held_out.items))]
    random.setstate(state)
    return {"written": mean(own), "sources": mean(weak)}


class Masters:
    """fp32 weights of a bfloat16 model, stepped by AdamW, and their moving average."""

    def __init__(self, model, rate: float):
        self.live = [p for p in model.parameters() if p.requires_grad]
        self.full = [p.detach().float().clone() for p in self.live]
        self.mean = [p.clone() for p in self.full]
        for p in self.full:
            p.grad = torch.zeros_like(p)
        flat = [p for p in self.full if p.dim() < 2]
        wide = [p for p in self.full if p.dim() > 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": wide, "weight_decay": 0.01}, {"params": flat, "weight_decay": 0.0}],
            lr=rate, betas=(0.9, 0.98))

    def gather(self):
        for live, full in zip(self.live, self.full):
            full.grad.add_(live.grad)
            live.grad = None

    def step(self, rate: float, decay: float):
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        torch.nn.utils.clip_grad_norm_(self.full, 1.0)
        self.optimizer.step()
        with torch.no_grad():
            for live, full, mean in zip(self.live, self.full, self.mean):
                full.grad.zero_()
                live.copy_(full)
                mean.lerp_(full, 1 - decay)


def save(model, masters, folder: Path):
    """The model with fp32 weights, and the moving average, as transformers keeps them."""
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    for kind, values in [("last", masters.full), ("mean", masters.mean)]:
        state = {name: value.float().clone() for name, value in model.state_dict().items()}
        state.update(dict(zip(names, values)))
        (folder / kind).mkdir(parents=True, exist_ok=True)
        model.config.save_pretrained(folder / kind)
        torch.save(state, folder / kind / "state.pt")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--mined", required=True)
    parser.add_argument("--written", nargs="+", default=[])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--steps", type=int, help="end after so many instead")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--tokens", type=int, default=10240)
    parser.add_argument("--parts", type=int, default=1, help="micro-batches per step")
    parser.add_argument("--shares", choices=SHARES, default="everyday")
    parser.add_argument("--longest", type=int, default=72, help="tokens of collected passages")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--start", help="a checkpoint's state.pt to go on from")
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(args.encoder)
    teacher = load_encoder(args.encoder)[0].bfloat16()
    mined = torch.load(args.mined, weights_only=False)
    sampler = Sampler(mined, written_items(args.written, False), teacher, tokenizer,
                      {name: share for name, share in SHARES[args.shares].items()
                       if name in mined or name in ("written", "distilled")}, args.longest)
    model = make_model(args.encoder)
    if args.start:
        model.load_state_dict(torch.load(args.start))
    model.bert.embeddings.word_embeddings.requires_grad_(False)
    masters = Masters(model, args.rate)
    model = model.bfloat16().train()
    run(model, masters, sampler, teacher, tokenizer, args)


def run(model, masters, sampler, teacher, tokenizer, args):
    started, seen, steps, sums = time.time(), 0, 0, []
    told = renewed = started
    stream = batches(sampler, args.tokens)
    part = lambda: (steps / args.steps if args.steps
                    else (time.time() - started) / (60 * args.minutes))
    while (done := part()) < 1:
        rate = args.rate * min((done + 0.001) / 0.04, 1, (1 - done) / 0.8)
        for _ in range(args.parts):
            groups = next(stream)
            loss, point, order = loss_of(model, groups)
            (loss / args.parts).backward()
            masters.gather()
            sums.append((point, order))
            seen += sum(len(group[1]) for group in groups)
        masters.step(rate, min(0.998, 1 - 10 / (steps + 11)))
        steps += 1
        if time.time() - told > 60:
            point, order = np.mean(sums, axis=0)
            print(f"{done:.3f} steps {steps} pairs {seen} point {point:.4f} order {order:.4f}",
                  flush=True)
            told, sums = time.time(), []
        if time.time() - renewed > min(540, 15 * args.minutes):
            renewed = time.time()
            save(model, masters, args.out)
            items = written_items(args.written, False)
            if len(items) > len(sampler.written.items):
                sampler.renew(items)
            held_out = Written(written_items(args.written, True), teacher, tokenizer)
            print(json.dumps(develop(model, sampler, held_out)), len(sampler.written.items),
                  flush=True)
    save(model, masters, args.out)
    print(f"done: {steps} steps, {seen} pairs", flush=True)


if __name__ == "__main__":
    main()
