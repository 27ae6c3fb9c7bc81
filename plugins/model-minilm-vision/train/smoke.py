"""Runs the whole recipe on next to nothing: `python smoke.py FOLDER` proves that it still works.

Eight drawn pictures, random weights under the published names, a text encoder of one tiny layer:
one step of training, then the export and its figures.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

import evaluate
import export
import train
import words
from tower import HEAD, STEM, Tower, layout

NAMES = ["apple", "circle", "house", "river", "train", "violin", "window", "zebra"]


def published_state():
    """Random weights under the names of `efficientnet-lite0-*.pth`."""
    state = {}

    def put(conv, norm, outputs, inputs, kernel=1):
        state[f"{conv}.weight"] = torch.randn(outputs, inputs, kernel, kernel) * 0.1
        for name in ("weight", "bias", "running_mean", "running_var"):
            state[f"{norm}.{name}"] = torch.rand(outputs) + 0.5

    put("_conv_stem", "_bn0", STEM, 3, 3)
    for index, block in enumerate(layout()):
        name, wide = f"_blocks.{index}", block["in"] * block["expand"]
        if block["expand"] > 1:
            put(f"{name}._expand_conv", f"{name}._bn0", wide, block["in"])
        put(f"{name}._depthwise_conv", f"{name}._bn1", wide, 1, block["kernel"])
        put(f"{name}._project_conv", f"{name}._bn2", block["out"], wide)
    put("_conv_head", "_bn1", HEAD, layout()[-1]["out"])
    return state | {"_fc.weight": torch.randn(8, HEAD), "_fc.bias": torch.zeros(8)}


def write_text_model(folder):
    folder.mkdir()
    letters = [chr(code) for code in range(97, 123)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = special + letters + [f"##{letter}" for letter in letters]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(vocabulary), intermediate_size=32, **sizes)
    BertModel(config).save_pretrained(folder)


def write_pictures(data):
    dice = np.random.default_rng(1)
    for file, char in (("sprites", "x"), ("heldout", "x"), ("clipart", None)):
        dice.integers(0, 256, (8, 160, 160, 4), dtype=np.uint8).tofile(data / f"{file}.bin")
        lines = []
        for name in NAMES:
            line = {"set": file, "name": name, "mono": name == "circle", "char": char}
            if char:
                line["english"] = {"name": name, "words": [name]}
            else:
                line |= {"set": "openclipart", "name": f"things/{name}_an_author_01.png"}
            lines.append(json.dumps(line))
        (data / f"{file}.jsonl").write_text("\n".join(lines) + "\n")


def write_words(folder):
    """A WordNet of eight nouns and a list of eight classes."""
    synsets = [f"n{index:08d}" for index in range(8)]
    (folder / "index.noun").write_text("".join(f"{name} n 1\n" for name in NAMES))
    rows = [f"{s[1:]} 06 n 01 {name} 0 000 | a thing\n" for s, name in zip(synsets, NAMES)]
    (folder / "data.noun").write_text("".join(rows))
    (folder / "imagenet_synsets.txt").write_text("\n".join(synsets))
    lemmas = [f"{s}\t{name}" for s, name in zip(synsets, NAMES)]
    (folder / "imagenet_synset_to_lemma.txt").write_text("\n".join(lemmas))


def main(folder):
    folder.mkdir(parents=True)
    write_pictures(folder)
    write_words(folder)
    write_text_model(folder / "text")
    torch.save(published_state(), folder / "imagenet.pth")
    words.WORDNET = folder
    given = {"data": folder, "text-model": folder / "text"}
    trained = {"imagenet": folder / "imagenet.pth", "synsets": folder / "imagenet_synsets.txt"}
    trained |= {"out": folder / "run", "steps": 1, "batch": 4, "sizes": "32:1", "bank": 4}
    trained |= {"start-pictures": 4, "first-block": 15}
    run(train.main, given | trained)
    state = torch.load(folder / "run" / "final.pt")
    start = torch.load(folder / "run" / "start.pt")
    changed = [name for name in state if not torch.equal(state[name], start[name])]
    export.export(state, folder / "weights", 32)
    run(evaluate.main, given | {"weights": folder / "weights", "baseline": True})
    shapes = {name: list(tensor.shape) for name, tensor in Tower(32).state_dict().items()}
    print(json.dumps({"changed": changed, "shapes": shapes}))


def run(command, options):
    sys.argv = ["smoke"]
    for name, value in options.items():
        sys.argv += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    command()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
