"""Writes a trained tower as the folder that is served: `python export.py TOWER.pt OUT [SIZE]`."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tower import HEAD, STEM, Tower, layout


def config(outputs, size):
    blocks = [
        {
            "kernel_size": block["kernel"],
            "stride": block["stride"],
            "expand_ratio": block["expand"],
            "in_channels": block["in"],
            "out_channels": block["out"],
        }
        for block in layout()
    ]
    return {
        "model_type": "efficientnet_lite",
        "_name_or_path": "rakit/minilm-vision",
        "image_size": size,
        "num_channels": 3,
        "stem_channels": STEM,
        "blocks": blocks,
        "head_channels": HEAD,
        "projection_dim": outputs,
    }


def preprocessor(size):
    square = {"height": size, "width": size}
    return {
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"longest_edge": size},
        "resample": 3,
        "do_pad": True,
        "pad_size": square,
        "do_center_crop": False,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }


def read_tower(folder):
    """The tower of an exported folder, in fp32."""
    weights = load_file(Path(folder) / "model.safetensors")
    tower = Tower(weights["projection.weight"].shape[0])
    tower.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return tower.eval()


def export(state, out, size):
    out.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.half().contiguous() for name, tensor in state.items()}
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    outputs = state["projection.weight"].shape[0]
    files = {"config": config(outputs, size), "preprocessor_config": preprocessor(size)}
    for name, value in files.items():
        (out / f"{name}.json").write_text(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    export(torch.load(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 128)
