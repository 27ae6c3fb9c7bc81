"""Writes sts.json: pairs of sentences with a score of 0 to 5, and the cosines that transformers gives them.

python bench/embed/make-sts.py PAIRS.jsonl MODEL_FOLDER > bench/embed/sts.json
"""

import json
import sys

import torch
from transformers import AutoModel, AutoTokenizer

pairs_file, folder = sys.argv[1:]
pairs = [json.loads(line) for line in open(pairs_file, encoding="utf8")]
torch.set_num_threads(1)
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder).eval()


def vector(text):
    batch = tokenizer(text, return_tensors="pt", truncation=True, max_length=256)
    with torch.no_grad():
        mean = model(**batch).last_hidden_state[0].mean(0)
    return mean / mean.norm()


rows = [
    {**pair, "cosine": round(float(vector(pair["a"]) @ vector(pair["b"])), 6)} for pair in pairs
]
text = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
print(f"[\n{text}\n]")
