"""The denoiser: a diffusion transformer over large patches of pixels that predicts the clean picture.

Prediction of x from patches through a linear bottleneck is after "Back to Basics: Let Denoising Generative
Models Denoise" (arXiv:2511.13720); the modulation is adaLN-zero of DiT (arXiv:2212.09748), conditioned by
the timestep and the pooled text. Parameter names are those of diffusers where it has the part.
"""

import torch
from torch import nn
from torch.nn import functional as F

from grid import (
    enlarging,
    patchify,
    position_features,
    rotary,
    sketch_map,
    timestep_features,
    unpatchify,
)
from layers import Block, Mlp, Norm, Refiner
from sketch_layer import Sketch

CONFIG = {
    "_class_name": "IrisTransformer",
    "patch_size": 16,
    "in_channels": 3,
    "hidden_size": 384,
    "num_attention_heads": 6,
    "num_layers": 8,
    "cross_attention_every": 2,
    "num_refiner_layers": 2,
    "mlp_ratio": 4,
    "bottleneck_size": 128,
    "modulation_size": 128,
    "text_size": 384,
    "max_references": 5,
    "sketch_grid": 8,
    "sketch_size": 48,
    "sketch_hidden": 512,
    "sketch_slots": 4,
    "sketch_readers": 4,
    "position_frequencies": 16,
    "rope_theta": 100.0,
}


class IrisTransformer(nn.Module):
    """x = f(z_t, t, text, references): pictures `[batch, 3, H, W]` in [-1, 1], H and W multiples of 16.

    `timestep` is t * 1000 (1000 is noise), `text` `[batch, tokens, 384]` with `mask` `[batch, tokens]`
    (1 where a token is), `references` a list of up to 5 pictures of the canvas' size.
    """

    def __init__(self, **changes):
        super().__init__()
        self.config = config = {**CONFIG, **changes}
        size, heads, ratio = (config[k] for k in ("hidden_size", "num_attention_heads", "mlp_ratio"))
        patch = config["patch_size"] ** 2 * config["in_channels"]
        narrow, modulation = config["bottleneck_size"], config["modulation_size"]
        self.patch_embed = nn.Sequential(nn.Linear(patch, narrow, bias=False), nn.Linear(narrow, size))
        self.pos_embed = nn.Linear(6 * config["position_frequencies"], size, bias=False)
        self.reference_embed = nn.Parameter(torch.randn(config["max_references"], size) * 0.02)
        self.time_embed = Mlp(256, size, size)
        self.text_embed = nn.Linear(config["text_size"], size)
        self.text_refiner = nn.ModuleList(
            [Refiner(size, heads, ratio) for _ in range(config["num_refiner_layers"])]
        )
        self.text_norm = Norm(size)
        self.pooled_embed = Mlp(size, size, size)
        self.sketch = Sketch(size, heads, config)
        self.sketch_embed = nn.Linear(config["sketch_size"], size, bias=False)
        self.sketch_out = nn.Linear(config["sketch_size"], patch, bias=False)
        self.modulation = nn.Linear(size, modulation)
        every = config["cross_attention_every"]
        self.blocks = nn.ModuleList(
            [
                Block(size, heads, ratio, modulation, cross=index % every == 0)
                for index in range(config["num_layers"])
            ]
        )
        self.norm_out = Norm(size, affine=False)
        self.modulation_out = nn.Linear(modulation, 2 * size)
        self.proj_out = nn.Linear(size, patch)
        self.reset()

    def reset(self):
        """Blocks begin as the identity (adaLN-zero), the picture as the sketch."""
        for block in self.blocks:
            nn.init.zeros_(block.modulation.weight)
            nn.init.zeros_(block.modulation.bias)
            if block.attn2 is not None:
                nn.init.zeros_(block.attn2.to_out[0].weight)
        nn.init.zeros_(self.sketch_embed.weight)
        self.sketch_out.weight.data.copy_(enlarging())
        for layer in (self.modulation_out, self.proj_out):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def encode_text(self, text, mask):
        """Refined states `[batch, tokens, size]`, their mean `[batch, size]` and the mask to add."""
        far = torch.zeros(mask.shape, dtype=torch.float32, device=mask.device)
        far = far.masked_fill(mask == 0, -1e4)[:, None, None]
        x = self.text_embed(text)
        far = far.to(x.dtype)
        for layer in self.text_refiner:
            x = layer(x, far)
        x = self.text_norm(x)
        weights = (mask / mask.sum(1, keepdim=True))[..., None].to(x.dtype)
        return x, (x * weights).sum(1), far

    def embed(self, pictures, places):
        return self.patch_embed(patchify(pictures, self.config["patch_size"])) + places

    def forward(self, z, timestep, text, mask, references=(), with_sketch=False):
        size = self.config["patch_size"]
        height, width = z.shape[2] // size, z.shape[3] // size
        features = position_features(height, width, self.config["position_frequencies"])
        places = self.pos_embed(features.to(z.device))
        text, pooled, far = self.encode_text(text, mask)
        sketch = self.sketch(text, far, pooled)
        across = sketch_map(height, width, self.config["sketch_grid"]).to(sketch)
        coarse = across @ sketch
        x = self.embed(z, places) + self.sketch_embed(coarse)
        for index, picture in enumerate(references):
            embedded = self.embed(picture, places) + self.reference_embed[index].to(x.dtype)
            x = torch.cat([x, embedded], 1)
        head = self.config["hidden_size"] // self.config["num_attention_heads"]
        rope = [
            turn.repeat(1 + len(references), 1).to(x) for turn in rotary(height, width, head)
        ]
        time = self.time_embed(timestep_features(timestep))
        condition = F.silu(self.modulation(F.silu(time + self.pooled_embed(pooled))))
        for block in self.blocks:
            x = block(x, condition, text, far, rope)
        x = x[:, : height * width]
        shift, scale = self.modulation_out(condition)[:, None].to(x.dtype).chunk(2, -1)
        x = self.proj_out(self.norm_out(x) * (1 + scale) + shift) + self.sketch_out(coarse)
        x = unpatchify(x.float(), height, width, size)
        return (x, sketch) if with_sketch else x
