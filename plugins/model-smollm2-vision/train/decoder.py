"""The decoder, SmolLM2-135M-Instruct, out of its GGUF file."""

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def opened(gguf):
    """The model in float32 and its tokenizer."""
    path = Path(gguf)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    return model, tokenizer


def embeddings_of(gguf):
    """A function from a word to the mean embedding of its tokens in the middle of a text."""
    model, tokenizer = opened(gguf)
    table = model.get_input_embeddings().weight.detach()
    return lambda word: table[tokenizer(" " + word, add_special_tokens=False).input_ids].mean(0)
