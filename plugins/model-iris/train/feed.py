"""Batches of composed samples, made in a process of their own."""

import random

import numpy as np
import torch
from transformers import AutoTokenizer

from edits import Editor
from scenes import Composer, Pictures

GRIDS = [(7, 9), (9, 7), (6, 10), (10, 6), (6, 11), (11, 6)]
LENGTHS = (12, 20, 40)  # texts are padded to one of these, so that few shapes are compiled


class Buckets:
    """Collects samples until so many of one grid and one length of text make a batch."""

    def __init__(self, tokenizer, size):
        self.tokenizer, self.size, self.waiting = tokenizer, size, {}

    def add(self, text, picture, sources=()):
        """A full batch (token ids, mask, pictures, sources), or None as long as none is full."""
        ids = self.tokenizer(text, truncation=True, max_length=LENGTHS[-1])["input_ids"]
        length = next(length for length in LENGTHS if length >= len(ids))
        key = (length, picture.shape, len(sources))
        bucket = self.waiting.setdefault(key, [])
        bucket.append((ids, picture, sources))
        size = self.size // (1 + len(sources))
        if len(bucket) < size:
            return None
        del self.waiting[key]
        padded, mask = np.zeros((2, size, length), np.int64)
        for row, (ids, _, _) in enumerate(bucket):
            padded[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        pictures = np.stack([picture for _, picture, _ in bucket])
        return padded, mask, pictures, [np.stack(same) for same in zip(*[row[2] for row in bucket])]


def produce(queue, options, seed):
    """Composes batches for ever: texts' tokens, pictures as bytes."""
    torch.set_num_threads(1)
    composer = Composer(Pictures(options.data, options.look), seed)
    editor = Editor(composer, seed)
    buckets = Buckets(AutoTokenizer.from_pretrained(options.encoder), options.batch)
    dice = random.Random(seed)
    fixed = [composer.sample() for _ in range(options.overfit)]
    while True:
        rows, columns = dice.choice(GRIDS) if dice.random() < 0.08 else (8, 8)
        size = (columns * 16, rows * 16)
        if dice.random() < options.edits:
            sample = editor.sample(*size)
        else:
            sample = dice.choice(fixed) if fixed else composer.sample(*size)
        text, *pictures = sample
        batch = buckets.add("" if dice.random() < 0.1 else text, *pictures)
        if batch is not None:
            queue.put(batch)
