"""What the model is trained on: groups of a query and documents with the teacher's logits.

The teacher joins two things: the bi-encoder's cosine, so that the cross-encoder starts as good as
the bi-encoder, and labels (written grades, or that a heading belongs to its section), so that it
learns what the cosine does not see.
"""

import random
from pathlib import Path

import numpy as np
import torch

from common import Bm25, embed, read_lines

GROUP = 8
GRADE_LOGITS = [-4.0, -1.5, 1.2, 3.5]
# How many of the groups of written questions hold one that repeats the question: no answer.
ECHOES = 0.3


def cosine_logit(cosine: float) -> float:
    return max(-6.0, min(6.0, 14 * (cosine - 0.45)))


def is_dev(query: str) -> bool:
    """About an eighth of the written queries are never trained on, chosen by their letters."""
    return sum(map(ord, query)) % 8 == 0


def tokenize(tokenizer, texts: list, most: int) -> list:
    found = tokenizer(texts, add_special_tokens=False, truncation=True, max_length=most)
    return found["input_ids"]


class Pool:
    """One source's pairs with mined negatives; the last 1% of them are held out."""

    def __init__(self, mined: dict, tokenizer, most: int):
        self.queries = tokenize(tokenizer, mined["queries"], 64)
        self.texts = tokenize(tokenizer, mined["texts"], most)
        self.mined = mined
        self.dev = max(4, len(self.queries) // 100)

    def group(self, dev=False):
        count = len(self.queries)
        first, last = (count - self.dev, count) if dev else (0, count - self.dev)
        index = random.randrange(first, last)
        words, meaning = self.mined["by_words"][index], self.mined["by_meaning"][index]
        docs = [index, *random.sample(words, min(3, len(words)))]
        docs += random.sample(meaning, min(3, len(meaning)))
        while len(set(docs)) < GROUP:
            docs.append(random.randrange(count))
        docs = list(dict.fromkeys(docs))[:GROUP]
        vector = self.mined["query_vectors"][index].float()
        cosines = (self.mined["text_vectors"][docs].float() @ vector).tolist()
        logits = [max(cosine_logit(cosines[0]), 1.0) + 1.0]
        logits += [min(cosine_logit(cosine), 2.0) - 1.0 for cosine in cosines[1:]]
        labels = [1] + [0] * (GROUP - 1)
        return self.queries[index], [self.texts[i] for i in docs], logits, labels


class Written:
    """The questions with graded passages that were written for this project."""

    def __init__(self, items: list, model, tokenizer):
        self.items = items
        queries = [item["query"] for item in items]
        passages = [p["text"] for item in items for p in item["passages"]]
        self.owner = np.array([i for i, item in enumerate(items) for _ in item["passages"]])
        self.grades = [p["grade"] for item in items for p in item["passages"]]
        self.queries = tokenize(tokenizer, queries, 64)
        self.texts = tokenize(tokenizer, passages, 250)
        self.vectors = embed(model, tokenizer, passages)
        self.query_vectors = embed(model, tokenizer, queries)
        bm25 = Bm25(passages)
        self.by_words = []
        for index, query in enumerate(queries):
            scores = bm25.scores(query) - 1e6 * (self.owner == index)
            self.by_words.append(np.argsort(-scores)[:16].tolist())

    def graded(self):
        """A query's own passages, some of them in half of the cases, and other questions'."""
        index = random.randrange(len(self.items))
        own = np.flatnonzero(self.owner == index).tolist()
        docs = random.sample(own, min(len(own), random.choice([4, 5, GROUP, GROUP])))
        by_words = random.sample(self.by_words[index], GROUP // 4)
        others = dict.fromkeys(by_words + self.near(index, GROUP))
        group = self.make(index, (docs + list(others))[:GROUP])
        return echoed(group) if random.random() < ECHOES else group

    def near(self, index: int, count: int) -> list:
        cosines = self.vectors @ self.query_vectors[index] - 10 * (self.owner == index)
        return random.sample(np.argpartition(-cosines, 24)[:24].tolist(), count)

    def make(self, index: int, docs: list):
        cosines = self.vectors[docs] @ self.query_vectors[index]
        logits, labels = [], []
        for doc, cosine in zip(docs, cosines.tolist()):
            if self.owner[doc] == index:
                logits.append(GRADE_LOGITS[self.grades[doc]] + 3 * (cosine - 0.4))
                labels.append(self.grades[doc])
            else:
                logits.append(min(cosine_logit(cosine), 1.0) - 1.5)
                labels.append(0)
        return self.queries[index], [self.texts[i] for i in docs], logits, labels


class Distilled:
    """Everyday sentences against each other at many distances: the bi-encoder's cosine alone."""

    def __init__(self, written: Written, uses: dict, tokenizer):
        lines = tokenize(tokenizer, uses["queries"], 64)
        self.queries = written.queries + written.texts + lines
        self.query_vectors = np.concatenate(
            [written.query_vectors, written.vectors, uses["query_vectors"].float().numpy()])
        self.texts = written.texts + lines
        self.vectors = np.concatenate([written.vectors, uses["query_vectors"].float().numpy()])
        self.written = len(written.queries) + len(written.texts)
        self.passages = len(written.texts)

    def group(self):
        everyday = random.random() < 0.75
        first, last = (0, self.written) if everyday else (self.written, len(self.queries))
        index = random.randrange(first, last)
        size = self.passages if everyday else len(self.texts)
        cosines = self.vectors[:size] @ self.query_vectors[index]
        order = np.argsort(-cosines)
        ranks = [int(size ** random.random()) - 1 for _ in range(4 * GROUP)]
        docs = [int(order[rank]) for rank in dict.fromkeys(ranks) if cosines[order[rank]] < 0.999]
        docs = (docs + order[200:220].tolist())[:GROUP]
        logits = [cosine_logit(cosine) for cosine in cosines[docs].tolist()]
        return self.queries[index], [self.texts[i] for i in docs], logits, None


def written_items(paths: list, dev: bool) -> list:
    items = [item for path in paths if Path(path).exists() for item in read_lines(path)]
    return [item for item in items if is_dev(item["query"]) == dev]


def echoed(group):
    """The same group with its last document replaced by the question itself, or by its words."""
    query, docs, logits, labels = group
    words = random.choices(query, k=len(query) + random.randrange(8))
    is_whole = random.random() < 0.6
    echo, logit = (query, -1.5) if is_whole else (words, -2.5)
    return query, [*docs[:-1], echo], [*logits[:-1], logit], [*labels[:-1], 0]


def lengthened(group, filler: list, most=320):
    """The same group with every document inside a longer one."""
    query, docs, logits, labels = group
    longer = []
    for doc in docs:
        parts = [doc, *random.sample(filler, 4)]
        random.shuffle(parts)
        joined = [token for part in parts for token in part]
        start = min(sum(map(len, parts[: parts.index(doc)])), max(0, len(joined) - most))
        longer.append(joined[max(0, start - most // 2) :][:most] if len(joined) > most else joined)
    return query, longer, logits, labels


class Sampler:
    """Draws groups of all kinds by their shares."""

    def __init__(self, mined: dict, items: list, model, tokenizer, shares: dict, most: int):
        self.pools = {name: Pool(found, tokenizer, most) for name, found in mined.items()}
        self.uses, self.shares = mined["wordnet-uses"], shares
        self.model, self.tokenizer = model, tokenizer
        self.renew(items)

    def renew(self, items: list):
        """Takes the written items anew: they grow while the training runs."""
        self.written = Written(items, self.model, self.tokenizer)
        self.distilled = Distilled(self.written, self.uses, self.tokenizer)

    def group(self):
        kind = random.choices(list(self.shares), self.shares.values())[0]
        if kind == "written":
            found = self.written.graded()
        elif kind == "distilled":
            found = self.distilled.group()
        else:
            found = self.pools[kind].group()
        if random.random() < 0.008 and kind != "distilled":
            return lengthened(found, self.pools["packages"].texts)
        return found
