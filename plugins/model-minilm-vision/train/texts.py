"""The text side: the frozen sentence encoder whose space the tower learns."""

import torch
from torch.nn import functional as F
from transformers import AutoModel, AutoTokenizer


class Texts:
    """Vectors `[len(texts), 384]` of length 1: the mean of the last layer, as the encoder's files say."""

    def __init__(self, folder, exact=False):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).eval()
        self.exact = exact
        self.known = {}

    @torch.no_grad()
    def encoded(self, texts):
        batch = self.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        with torch.autocast("cpu", torch.bfloat16, enabled=not self.exact):
            states = self.model(**batch).last_hidden_state.float()
        mask = batch["attention_mask"][..., None]
        return F.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)

    def __call__(self, texts):
        missing = sorted({text for text in texts if text not in self.known}, key=len)
        for start in range(0, len(missing), 64):
            part = missing[start : start + 64]
            self.known.update(zip(part, self.encoded(part)))
        vectors = torch.stack([self.known[text] for text in texts])
        if len(self.known) > 200_000:
            self.known.clear()
        return vectors
