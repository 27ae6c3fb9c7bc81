"""The layers of the denoiser."""

import torch
from torch import nn
from torch.nn import functional as F

from grid import rotate


class Norm(nn.Module):
    """Layer normalization without a bias; without a scale where `affine` is false."""

    def __init__(self, size, affine=True):
        super().__init__()
        self.size = (size,)
        self.weight = nn.Parameter(torch.ones(size)) if affine else None

    def forward(self, x):
        weight = None if self.weight is None else self.weight.to(x.dtype)
        return F.layer_norm(x, self.size, weight, None, 1e-6)


class Attention(nn.Module):
    """Attention with normalized queries and keys; over `context` where one is given."""

    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(size, size, bias=False)
        self.to_k = nn.Linear(size, size, bias=False)
        self.to_v = nn.Linear(size, size, bias=False)
        self.to_out = nn.ModuleList([nn.Linear(size, size)])
        self.norm_q = Norm(size // heads)
        self.norm_k = Norm(size // heads)

    def forward(self, x, context=None, mask=None, rope=None):
        context = x if context is None else context
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        query = self.norm_q(split(self.to_q(x)))
        key = self.norm_k(split(self.to_k(context)))
        if rope is not None:
            query, key = rotate(query, *rope), rotate(key, *rope)
        value = split(self.to_v(context))
        # written out: PyTorch's fused form takes four times as long to go backward over so few tokens
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
        weights = (scores if mask is None else scores + mask).softmax(-1)
        result = weights.to(value.dtype) @ value
        return self.to_out[0](result.transpose(1, 2).flatten(2))


class Projected(nn.Module):
    def __init__(self, size, inner):
        super().__init__()
        self.proj = nn.Linear(size, inner)

    def forward(self, x):
        return F.gelu(self.proj(x), approximate="tanh")


class FeedForward(nn.Module):
    """Two linear layers about GELU in its tanh form."""

    def __init__(self, size, ratio):
        super().__init__()
        self.net = nn.ModuleList(
            [Projected(size, ratio * size), nn.Identity(), nn.Linear(ratio * size, size)]
        )

    def forward(self, x):
        return self.net[2](self.net[0](x))


class Mlp(nn.Module):
    def __init__(self, size, inner, out):
        super().__init__()
        self.linear_1 = nn.Linear(size, inner)
        self.linear_2 = nn.Linear(inner, out)

    def forward(self, x):
        return self.linear_2(F.silu(self.linear_1(x)))


class Refiner(nn.Module):
    """A plain transformer layer over the text's states."""

    def __init__(self, size, heads, ratio):
        super().__init__()
        self.norm1, self.attn, self.norm2 = Norm(size), Attention(size, heads), Norm(size)
        self.ff = FeedForward(size, ratio)

    def forward(self, x, mask):
        x = x + self.attn(self.norm1(x), mask=mask)
        return x + self.ff(self.norm2(x))


class Block(nn.Module):
    """Self-attention over canvas and references, attention to the text (in some blocks), an MLP."""

    def __init__(self, size, heads, ratio, modulation, cross):
        super().__init__()
        self.modulation = nn.Linear(modulation, 6 * size)
        self.norm1, self.norm3 = Norm(size, affine=False), Norm(size, affine=False)
        self.attn1 = Attention(size, heads)
        self.norm2 = Norm(size) if cross else None
        self.attn2 = Attention(size, heads) if cross else None
        self.ff = FeedForward(size, ratio)

    def forward(self, x, condition, text, mask, rope):
        shift1, scale1, gate1, shift2, scale2, gate2 = (
            self.modulation(condition)[:, None].to(x.dtype).chunk(6, -1)
        )
        x = x + gate1 * self.attn1(self.norm1(x) * (1 + scale1) + shift1, rope=rope)
        if self.attn2 is not None:
            x = x + self.attn2(self.norm2(x), context=text, mask=mask)
        return x + gate2 * self.ff(self.norm3(x) * (1 + scale2) + shift2)
