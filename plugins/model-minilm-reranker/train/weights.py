"""Reads the model's weights: a training checkpoint, or the shipped int8 safetensors."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification


def dequantized(tensors: dict) -> dict:
    """int-quantized tensors as floats: NAME times NAME_scale, row by row."""
    plain = {name: value for name, value in tensors.items() if not name.endswith("_scale")}
    return {name: value.float() * tensors[f"{name}_scale"].float()
            if f"{name}_scale" in tensors else value.float() for name, value in plain.items()}


def load_model(folder: str):
    """A cross-encoder in fp32 from state.pt or model.safetensors."""
    config = BertConfig.from_pretrained(folder)
    config.quantization_config = None
    config._attn_implementation = "eager"
    model = BertForSequenceClassification(config)
    checkpoint = Path(folder) / "state.pt"
    state = (torch.load(checkpoint) if checkpoint.exists()
             else dequantized(load_file(Path(folder) / "model.safetensors")))
    model.load_state_dict(state, strict=False)
    return model.eval()


def load_tokenizer(folder: str):
    return AutoTokenizer.from_pretrained(folder)
