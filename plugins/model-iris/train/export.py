"""Writes a checkpoint in the diffusers layout: `python export.py CHECKPOINT OUT [ENCODER]`.

OUT/model_index.json, OUT/scheduler, OUT/transformer (fp32 safetensors, diffusers-like names); with an
encoder also OUT/REFERENCE.safetensors: inputs and outputs of single steps, to check other runtimes by.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from sample import load

INDEX = {
    "_class_name": "IrisPipeline",
    "transformer": ["rakit", "IrisTransformer"],
    "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
    "decoder": ["rakit", "IrisDecoder"],
    "text_encoder": ["transformers", "BertModel"],
    "tokenizer": ["transformers", "BertTokenizerFast"],
}
SCHEDULER = {
    "_class_name": "FlowMatchEulerDiscreteScheduler",
    "num_train_timesteps": 1000,
    "shift": 3.0,
    "prediction_type": "sample",
}
TEXTS = ["a red cat to the left of a tree"]


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


@torch.no_grad()
def references(model, encoder):
    """One step each: a square, another grid, and two references; timestep counts to 1000."""
    from encoder import Texts

    text, mask = Texts(encoder)(TEXTS, exact=True)
    generator = torch.Generator().manual_seed(3)
    tensors = {"text": text, "mask": mask}
    for name, height, width, count, timestep in (
        ("square", 128, 128, 0, 1000.0),
        ("wide", 112, 144, 0, 750.0),
        ("edit", 128, 128, 2, 500.0),
    ):
        z = torch.randn(1, 3, height, width, generator=generator)
        pictures = [torch.rand(1, 3, height, width, generator=generator) * 2 - 1 for _ in range(count)]
        level = torch.tensor([timestep])
        tensors |= {f"{name}.z": z, f"{name}.timestep": level}
        tensors |= {f"{name}.reference.{i}": picture for i, picture in enumerate(pictures)}
        tensors[f"{name}.x"] = model(z, level, text, mask, pictures).contiguous()
    return tensors


def main():
    checkpoint, out, *encoder = sys.argv[1:]
    out = Path(out)
    model = load(checkpoint)
    weights = {name: value.contiguous() for name, value in model.state_dict().items()}
    (out / "transformer").mkdir(parents=True, exist_ok=True)
    save_file(weights, out / "transformer" / "diffusion_pytorch_model.safetensors")
    write_json(out / "transformer" / "config.json", model.config)
    write_json(out / "scheduler" / "scheduler_config.json", SCHEDULER)
    write_json(out / "model_index.json", INDEX)
    if encoder:
        save_file(references(model, encoder[0]), out / "REFERENCE.safetensors")


if __name__ == "__main__":
    main()
