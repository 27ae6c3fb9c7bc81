"""What the text alone says, as a coarse picture."""

import torch
from torch import nn
from torch.nn import functional as F

from grid import position_features
from layers import Attention, Norm


class Sketch(nn.Module):
    """A picture of 4 x 4 x 3 values for each token of a square grid, from the text.

    A few slots read the text by attention; each slot's code is looked up in a table with weights of its
    own for every token: what the slot's thing looks like when it fills the grid. Where things stand is
    another matter, and learned once for all of them: each token of the grid reads tokens of the slots'
    pictures, by attention over slots times attention over places. So a thing that was only seen alone
    also has its looks beside others. All of it is trained on its own first, at a small part of the cost
    of the blocks, which then need not learn by heart what thousands of things look like.
    """

    def __init__(self, size, heads, config):
        super().__init__()
        self.tokens, self.values = config["sketch_grid"] ** 2, config["sketch_size"]
        self.slots, self.readers = config["sketch_slots"], config["sketch_readers"]
        self.key, hidden, narrow = 32, config["sketch_hidden"], 256
        self.grid = config["sketch_grid"]
        self.queries = nn.Parameter(torch.randn(self.slots, size) * 0.5)
        self.share = nn.Parameter(torch.tensor([1.0] + [0.5] * (self.slots - 1))[:, None])
        self.norm = Norm(size)
        self.attn = Attention(size, heads)
        self.linear_1 = nn.Linear(size, hidden)
        self.linear_2 = nn.Linear(hidden, size)
        self.linear_3 = nn.Linear(size, self.tokens * self.values)
        features = 6 * config["position_frequencies"]
        self.place = nn.Linear(features, narrow)
        self.layout = nn.Linear(size, narrow, bias=False)
        self.place_1 = nn.Linear(narrow, narrow)
        self.place_2 = nn.Linear(narrow, 1 + self.readers * (self.slots + self.key))
        self.place_keys = nn.Linear(features, self.key, bias=False)
        self.merge = nn.Linear(self.readers * self.values, self.values, bias=False)
        nn.init.zeros_(self.merge.weight)
        nn.init.zeros_(self.place_2.weight[0])

    def looks(self, text, mask, pooled):
        """Each slot's own picture `[batch, slots, tokens, values]`."""
        x = self.queries.to(pooled.dtype) + pooled[:, None]
        x = self.share.to(pooled.dtype) * pooled[:, None] + self.attn(self.norm(x), text, mask)
        code = F.silu(self.linear_2(F.silu(self.linear_1(x))))
        return self.linear_3(code).unflatten(-1, (self.tokens, self.values))

    def forward(self, text, mask, pooled):
        """`[batch, tokens, values]`, values as (row, column, channel)."""
        looks = self.looks(text, mask, pooled)
        features = position_features(self.grid, self.grid).to(pooled.device)
        x = F.silu(self.place(features) + self.layout(pooled)[:, None])
        x = self.place_2(F.silu(self.place_1(x)))
        own = 1 + x[..., :1]
        x = x[..., 1:].unflatten(-1, (self.readers, self.slots + self.key)).flatten(1, 2)
        slots = x[..., : self.slots].softmax(-1)
        places = (x[..., self.slots :] @ self.place_keys(features).T).softmax(-1)
        reading = (slots[..., None] * places[..., None, :]).flatten(2).to(looks.dtype)
        read = reading @ looks.flatten(1, 2)
        read = read.unflatten(1, (self.tokens, self.readers)).flatten(2)
        return own.to(looks.dtype) * looks[:, 0] + self.merge(read)
