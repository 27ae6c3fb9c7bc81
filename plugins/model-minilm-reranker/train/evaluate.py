"""nDCG@10 and calibration on collections that no training read.

    python evaluate.py --model FOLDER --encoder FOLDER --window 96 --collections OUT/eval/*.jsonl

Compares the cross-encoder with the given order, BM25 (k1 1.2, b 0.75) and the bi-encoder's cosine.
A passage is relevant from grade 2 on; reliability is how many of those above 0.5 are.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from common import Bm25, embed, load_encoder, ndcg, read_lines
from groups import tokenize
from train import score
from weights import load_model


def windows(ids: list, capacity: int) -> list:
    """The document in windows that overlap by an eighth."""
    step = capacity - max(1, capacity // 8)
    last = max(0, len(ids) - capacity)
    return [ids[start : start + capacity] for start in range(0, last + step, step)]


def cross_scores(model, tokenizer, items: list, window=512) -> list:
    """The cross-encoder's logits, a list per query: of each document its best window's."""
    rows, owners = [], []
    for item in items:
        query = tokenize(tokenizer, [item["query"]], 64)[0]
        for text in tokenize(tokenizer, [p["text"] for p in item["passages"]], 445):
            parts = windows(text, window - len(query) - 3)
            rows += [(query, part) for part in parts]
            owners.append(len(parts))
    found = np.split(score(model, rows), np.cumsum(owners)[:-1])
    best = np.array([logits.max() for logits in found])
    return np.split(best, np.cumsum([len(item["passages"]) for item in items])[:-1])


def bi_scores(model, tokenizer, items: list) -> list:
    texts = [item["query"] for item in items]
    texts += [p["text"] for item in items for p in item["passages"]]
    known = list(dict.fromkeys(texts))
    vectors = dict(zip(known, embed(model, tokenizer, known)))
    return [np.array([vectors[p["text"]] @ vectors[item["query"]] for p in item["passages"]])
            for item in items]


def word_scores(items: list) -> list:
    """BM25 with the term statistics of the whole collection."""
    texts = list(dict.fromkeys(p["text"] for item in items for p in item["passages"]))
    place, bm25 = {text: index for index, text in enumerate(texts)}, Bm25(texts)
    return [bm25.scores(item["query"])[[place[p["text"]] for p in item["passages"]]]
            for item in items]


def grades(item: dict) -> list:
    return [p["grade"] for p in item["passages"]]


def mean_ndcg(items: list, scores: list) -> float:
    return float(np.mean([ndcg(grades(item), list(found)) for item, found in zip(items, scores)]))


def calibration(items: list, logits: list) -> dict:
    """How often scores above 0.5 are right, and the expected calibration error in ten bins."""
    chance = 1 / (1 + np.exp(-np.concatenate(logits)))
    relevant = np.array([grade >= 2 for item in items for grade in grades(item)])
    bins, error = np.minimum((chance * 10).astype(int), 9), 0.0
    for index in range(10):
        chosen = bins == index
        if chosen.any():
            error += chosen.mean() * abs(chance[chosen].mean() - relevant[chosen].mean())
    above = chance > 0.5
    return {"precision at 0.5": float(relevant[above].mean()) if above.any() else None,
            "recall at 0.5": float(above[relevant].mean()), "ECE": float(error)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--collections", nargs="+", type=Path, required=True)
    parser.add_argument("--most", type=int, help="queries per collection")
    parser.add_argument("--window", type=int, default=512, help="tokens, query included")
    args = parser.parse_args()
    torch.set_num_threads(1)
    encoder, tokenizer = load_encoder(args.encoder)
    model = load_model(args.model) if args.model else None
    for path in args.collections:
        items = read_lines(path)[: args.most]
        figures = {"given": [[-i for i in range(len(item["passages"]))] for item in items],
                   "bm25": word_scores(items), "bi-encoder": bi_scores(encoder, tokenizer, items)}
        found = cross_scores(model, tokenizer, items, args.window) if model else None
        if model:
            figures["cross-encoder"] = found
        line = {name: round(mean_ndcg(items, scores), 4) for name, scores in figures.items()}
        print(path.stem, len(items), line, calibration(items, found) if model else "", flush=True)


if __name__ == "__main__":
    main()
