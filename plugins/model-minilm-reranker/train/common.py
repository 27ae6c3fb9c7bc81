"""What the scripts share: the encoder, BM25, nDCG, files."""

import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer


def read_lines(path: Path) -> list:
    """The objects of a JSON-lines file; a last line that is still being written is left out."""
    found = []
    for line in Path(path).read_text("utf8").split("\n"):
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def load_encoder(folder: str):
    """The sentence encoder and its tokenizer, for vectors as its authors pool them."""
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    return model, AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
def embed(model, tokenizer, texts: list, max_length=256, tokens=8192) -> np.ndarray:
    """Normalized mean-pooled vectors, float32 [texts, width]."""
    ids = [tokenizer(text, truncation=True, max_length=max_length)["input_ids"] for text in texts]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    found = np.zeros((len(ids), model.config.hidden_size), np.float32)
    dtype = model.embeddings.word_embeddings.weight.dtype
    while order:
        size = max(1, min(256, tokens // len(ids[order[min(255, len(order) - 1)]])))
        part, order = order[:size], order[size:]
        width = max(len(ids[i]) for i in part)
        batch = torch.tensor([ids[i] + [0] * (width - len(ids[i])) for i in part])
        mask = torch.tensor([[1] * len(ids[i]) + [0] * (width - len(ids[i])) for i in part])
        hidden = model(input_ids=batch, attention_mask=mask).last_hidden_state
        sums = (hidden * mask[:, :, None].to(dtype)).sum(1).float()
        found[part] = torch.nn.functional.normalize(sums, dim=1).numpy()
    return found


def terms(text: str) -> list:
    return re.findall(r"\w+", text.lower())


class Bm25:
    """Okapi BM25 over a list of texts (k1 1.2, b 0.75)."""

    def __init__(self, texts: list, k1=1.2, b=0.75):
        counts = [Counter(terms(text)) for text in texts]
        lengths = np.array([sum(count.values()) for count in counts], np.float32)
        norms = k1 * (1 - b + b * lengths / max(1.0, lengths.mean()))
        postings = defaultdict(list)
        for index, count in enumerate(counts):
            for term, times in count.items():
                postings[term].append((index, times))
        self.size, self.postings = len(texts), {}
        for term, found in postings.items():
            at = np.array([index for index, _ in found])
            times = np.array([times for _, times in found], np.float32)
            idf = math.log(1 + (self.size - len(at) + 0.5) / (len(at) + 0.5))
            self.postings[term] = (at, idf * times * (k1 + 1) / (times + norms[at]))

    def scores(self, query: str) -> np.ndarray:
        found = np.zeros(self.size, np.float32)
        for term in terms(query):
            if term in self.postings:
                at, weights = self.postings[term]
                found[at] += weights
        return found


def ndcg(grades: list, scores: list, depth=10) -> float:
    """nDCG with gains 2^grade - 1; equal scores count as ordered worst first."""
    order = sorted(range(len(grades)), key=lambda i: (-scores[i], grades[i]))
    gain = [2 ** grades[i] - 1 for i in order][:depth]
    best = sorted((2**grade - 1 for grade in grades), reverse=True)[:depth]
    discounted = lambda gains: sum(g / math.log2(rank + 2) for rank, g in enumerate(gains))
    return discounted(gain) / discounted(best) if sum(best) else 0.0
