"""Writes the shipped folder: int8 matrices with a scale per row, the rest in fp32.

    python quantize.py --model OUT/calibrated --encoder FOLDER --out ../weights

The form is compressed-tensors' `int-quantized`: NAME I8 [rows, columns] and NAME_scale F32
[rows, 1].
"""

import argparse
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

from weights import load_model

KEPT = ("classifier.weight", "token_type_embeddings.weight")


def quantized(state: dict) -> dict:
    found = {}
    for name, value in state.items():
        if value.dim() != 2 or name.endswith(KEPT):
            found[name] = value.contiguous()
            continue
        scale = value.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        found[name] = (value / scale).round().clamp(-127, 127).to(torch.int8)
        found[f"{name}_scale"] = scale
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    model = load_model(args.model)
    state = {name: value for name, value in model.state_dict().items() if value.is_floating_point()}
    save_file(quantized(state), args.out / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((Path(args.model) / "config.json").read_text())
    ours = ("transformers_version", "dtype", "_name_or_path", "_attn_implementation")
    kept = {key: value for key, value in config.items() if key not in ours}
    kept["architectures"] = ["BertForSequenceClassification"]
    kept["id2label"], kept["label2id"] = {"0": "relevant"}, {"relevant": 0}
    (args.out / "config.json").write_text(json.dumps(kept, indent=2) + "\n")
    for name in ["tokenizer.json", "tokenizer_config.json"]:
        shutil.copy(args.encoder / name, args.out / name)


if __name__ == "__main__":
    main()
