"""The recipe on a handful of pairs with a tiny random encoder: `python smoke.py FOLDER`.

The last line is JSON: how many tensors of each dtype it wrote.
"""

import json
import random
import runpy
import sys
from collections import Counter
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

HERE = Path(__file__).parent
TOPICS = ["tea", "rain", "bread", "bike", "moon", "river", "shoe", "cat", "clock", "garden"]
WORDS = ["how", "to", "the", "a", "of", "with", "old", "new", "mend", "make", "find", "keep"]


def tiny_encoder(folder: Path):
    """Two layers, with [CLS] and [SEP] at BERT's ids."""
    names = ["[PAD]", *[f"[unused{i}]" for i in range(99)], "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {name: index for index, name in enumerate([*names, *TOPICS, *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        unk_token="[UNK]").save_pretrained(folder)
    BertModel(BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=512)).save_pretrained(folder)


def sentence(topic: str) -> str:
    return " ".join(random.sample([topic, topic, *random.sample(WORDS, 6)], 8))


def write(path: Path, items: list):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in items))


def examples(folder: Path):
    """Pairs and graded questions: a passage is relevant if it is of the query's topic."""
    for source in ["wordnet-uses", "packages"]:
        pairs = [{"query": sentence(t), "text": sentence(t)} for t in TOPICS * 5]
        write(folder / f"pairs/{source}.jsonl", pairs)
    items = []
    for topic in TOPICS * 5:
        others = random.sample([t for t in TOPICS if t != topic], 4)
        passages = [{"text": sentence(topic), "grade": 3} for _ in range(2)]
        passages += [{"text": sentence(other), "grade": 0} for other in others]
        random.shuffle(passages)
        items.append({"query": sentence(topic), "passages": passages})
    write(folder / "written.jsonl", items)


def step(script: str, *args):
    sys.argv = [script, *map(str, args)]
    runpy.run_path(str(HERE / script), run_name="__main__")


def main():
    folder = Path(sys.argv[1])
    random.seed(3)
    torch.manual_seed(3)
    encoder, mined, written = folder / "encoder", folder / "mined.pt", folder / "written.jsonl"
    tiny_encoder(encoder)
    examples(folder)
    step("mine.py", "--encoder", encoder, "--pairs", folder / "pairs", "--out", mined)
    step("train.py", "--encoder", encoder, "--mined", mined, "--written", written,
         "--out", folder / "run", "--steps", 20, "--rate", 0.003, "--tokens", 2048)
    step("calibrate.py", "--model", folder / "run/last", "--encoder", encoder, "--mined", mined,
         "--written", written, "--out", folder / "calibrated")
    step("quantize.py", "--model", folder / "calibrated", "--encoder", encoder,
         "--out", folder / "weights")
    step("evaluate.py", "--model", folder / "weights", "--encoder", encoder,
         "--collections", written)
    tensors = load_file(folder / "weights/model.safetensors")
    print(json.dumps(Counter(str(value.dtype).split(".")[1] for value in tensors.values())))


if __name__ == "__main__":
    main()
