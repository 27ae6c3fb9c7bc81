"""Finds hard negatives for the collected pairs and keeps the bi-encoder's vectors.

    python mine.py --encoder FOLDER --pairs OUT/pairs --out OUT/mined.pt

For each query: the best 16 other passages of its source by BM25 and 16 of the best 40 by cosine.
"""

import argparse
import random
from pathlib import Path

import numpy as np
import torch

from common import Bm25, embed, load_encoder, read_lines


def mine(model, tokenizer, pairs: list):
    queries, texts = [p["query"] for p in pairs], [p["text"] for p in pairs]
    query_vectors, text_vectors = (embed(model, tokenizer, x) for x in (queries, texts))
    bm25 = Bm25(texts)
    by_words, by_meaning = [], []
    for index, query in enumerate(queries):
        scores, near = bm25.scores(query), text_vectors @ query_vectors[index]
        scores[index] = near[index] = -1
        depth = min(40, len(texts) - 1)
        top = np.argpartition(-scores, depth - 1)[:depth]
        by_words.append(top[np.argsort(-scores[top])][:16])
        close = np.argpartition(-near, depth - 1)[:depth].tolist()
        by_meaning.append(random.sample(close, min(16, depth)))
    return {
        "queries": queries, "texts": texts,
        "query_vectors": torch.tensor(query_vectors).half(),
        "text_vectors": torch.tensor(text_vectors).half(),
        "by_words": [list(map(int, row)) for row in by_words], "by_meaning": by_meaning,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    random.seed(17)
    torch.set_num_threads(1)
    model, tokenizer = load_encoder(args.encoder)
    model = model.bfloat16()
    found = {}
    for path in sorted(args.pairs.glob("*.jsonl")):
        found[path.stem] = mine(model, tokenizer, read_lines(path))
        print(path.stem, len(found[path.stem]["queries"]), flush=True)
    torch.save(found, args.out)


if __name__ == "__main__":
    main()
