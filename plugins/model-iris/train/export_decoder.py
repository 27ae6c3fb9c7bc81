"""Writes the decoder in 16 bits: `python export_decoder.py CHECKPOINT OUT` makes OUT/decoder (config, weights)."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file


def export_decoder(checkpoint, out):
    out = Path(out) / "decoder"
    saved = torch.load(checkpoint, map_location="cpu")
    out.mkdir(parents=True, exist_ok=True)
    weights = {name: value.half().contiguous() for name, value in saved["ema"].items()}
    save_file(weights, out / "diffusion_pytorch_model.safetensors")
    (out / "config.json").write_text(json.dumps(saved["config"], indent=2) + "\n")


if __name__ == "__main__":
    export_decoder(*sys.argv[1:])
