"""Writes the folder that the plugin serves: `python pack.py CHECKPOINT DECODER OUT [LORA ...]`.

The layout is that of diffusers. Matrices of the denoiser have 8 bits and a scale per row (the form
int-quantized of compressed-tensors: NAME I8 [rows, columns] and NAME_scale F32 [rows, 1]); what draws or
reads pixels, vectors, the decoder and the LoRAs have 16. A LoRA is a file that lora.py has written.
"""

import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from export import INDEX, SCHEDULER, write_json
from export_decoder import export_decoder
from sample import load

MOST_BYTES = 30_000_000
# 2 % of the weights, which with 8 bits cause three quarters of the error of a picture
KEPT = ("patch_embed.", "pos_embed.", "sketch_embed.", "sketch_out.", "proj_out.", "reference_embed")
WEIGHTS = "diffusion_pytorch_model.safetensors"


def packed(state):
    found = {}
    for name, value in state.items():
        if value.dim() != 2 or name.startswith(KEPT) or min(value.shape) < 16:
            found[name] = value.half().contiguous()
            continue
        scale = value.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        found[name] = (value / scale).round().clamp(-127, 127).to(torch.int8)
        found[f"{name}_scale"] = scale
    return found


def unpacked(tensors):
    """The weights as a runtime reads them, in fp32."""
    return {
        name: value.float() * tensors.get(f"{name}_scale", 1.0)
        for name, value in tensors.items()
        if not name.endswith("_scale")
    }


def write_denoiser(checkpoint, out):
    model = load(checkpoint)
    (out / "transformer").mkdir(parents=True)
    save_file(packed(model.state_dict()), out / "transformer" / WEIGHTS, metadata={"format": "pt"})
    write_json(out / "transformer" / "config.json", model.config)
    write_json(out / "scheduler" / "scheduler_config.json", SCHEDULER)
    write_json(out / "model_index.json", INDEX)


def write_loras(paths, out):
    (out / "loras").mkdir()
    for path in map(Path, paths):
        tensors = {name: value.half().contiguous() for name, value in load_file(path).items()}
        save_file(tensors, out / "loras" / path.name, metadata={"format": "pt"})


def main():
    checkpoint, decoder, out, *loras = sys.argv[1:]
    out = Path(out)
    shutil.rmtree(out, ignore_errors=True)
    write_denoiser(checkpoint, out)
    export_decoder(decoder, out)
    write_loras(loras, out)
    sizes = {str(path.relative_to(out)): path.stat().st_size for path in out.rglob("*") if path.is_file()}
    for name, size in sorted(sizes.items()):
        print(f"{size:>12,} {name}")
    print(f"{sum(sizes.values()):>12,} in all")
    if sum(sizes.values()) > MOST_BYTES:
        sys.exit(f"more than {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    main()
