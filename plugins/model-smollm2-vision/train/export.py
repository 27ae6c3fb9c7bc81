"""Writes what is served: `python export.py CHAT LORA OUT`, of train_chat.py's chat.pt and folder lora."""

import json
import sys

import torch
from safetensors.torch import load_file, save_file

from scenes import EDGE
from tower import HEAD, STEM, layout


def main():
    chat, lora, out = sys.argv[1:4]
    kept = torch.load(chat)
    half = lambda tensor: tensor.detach().half().contiguous()
    tensors = {f"vision_tower.{name}": half(value) for name, value in kept["tower"].items()}
    tensors |= {f"multi_modal_projector.{name}": half(value) for name, value in kept["projector"].items()}
    save_file(tensors, f"{out}/model.safetensors")
    save_file({name: half(value) for name, value in load_file(f"{lora}/adapter_model.safetensors").items()}, f"{out}/adapter_model.safetensors")
    made = json.load(open(f"{lora}/adapter_config.json"))
    adapter = {name: made[name] for name in ("peft_type", "r", "lora_alpha", "task_type")} | {"target_modules": sorted(made["target_modules"])}
    tower = {"model_type": "efficientnet_lite", "image_size": EDGE, "num_channels": 3, "stem_channels": STEM, "blocks": layout(), "head_channels": HEAD}
    config = {"model_type": "llava", "_name_or_path": "rakit/smollm2-vision", "projector_hidden_act": "gelu", "vision_config": tower}
    shape = {"height": EDGE, "width": EDGE}
    third = [0.5, 0.5, 0.5]
    preprocessor = {
        "do_convert_rgb": True, "do_resize": True, "size": {"longest_edge": EDGE}, "resample": 3, "do_pad": True, "pad_size": shape, "do_center_crop": False,
        "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": third, "image_std": third,
    }
    for name, content in {"config": config, "preprocessor_config": preprocessor, "adapter_config": adapter}.items():
        with open(f"{out}/{name}.json", "w") as file:
            file.write(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
