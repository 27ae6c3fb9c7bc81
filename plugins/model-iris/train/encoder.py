"""The text side: states of the frozen sentence encoder's last layer."""

import torch
from transformers import AutoModel, AutoTokenizer


class Texts:
    """Token states of all-MiniLM-L6-v2 and their mask; at most `longest` tokens of a text count."""

    def __init__(self, folder, device="cpu", longest=40):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval().to(device)
        self.device, self.longest = device, longest

    def tokens(self, texts):
        """Token ids and mask `[texts, tokens]`, padded to the longest."""
        batch = self.tokenizer(
            texts, padding=True, truncation=True, max_length=self.longest, return_tensors="pt"
        )
        return batch["input_ids"], batch["attention_mask"]

    @torch.no_grad()
    def states(self, ids, mask, exact=False):
        """States `[texts, tokens, 384]`; in 16 bits inside unless `exact`."""
        ids, mask = ids.to(self.device), mask.to(self.device)
        with torch.autocast(self.device, torch.bfloat16, enabled=not exact):
            states = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
        return states.float(), mask.float()

    def __call__(self, texts, exact=False):
        return self.states(*self.tokens(texts), exact)
