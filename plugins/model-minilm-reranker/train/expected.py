"""Writes what transformers says of the shipped weights: the test asks the server for the same.

    python expected.py --model ../weights --out ../testing/scores.json
"""

import argparse
import json
from pathlib import Path

import torch

from groups import tokenize
from train import score
from weights import load_model, load_tokenizer

EXAMPLES = {
    "how do I get red wine out of a white shirt?": [
        "Sprinkle salt on the stain at once, then soak the cotton in cold water and washing-up "
        "liquid before it goes into the machine.",
        "A white wine is served colder than a red one, and in a smaller glass.",
        "The shirt was introduced in the 1920s, and white is still the colour that sells best.",
        "My flight to Lisbon was delayed by three hours because of fog.",
    ],
    "What is the capital of Australia?": [
        "Sydney is the largest city of Australia and was its first British settlement.",
        "Parliament sits in Canberra, the seat of the federal government.",
        "The capital of Austria is Vienna.",
        "Kangaroos are found nowhere else in the wild.",
    ],
    "my laptop does not charge any more": [
        "Try another socket and another cable first; a battery that still does not fill has worn "
        "out and can be replaced.",
        "We charge ten euros a month for the laptop insurance.",
        "A notebook can be charged from a power bank of 60 watts or more.",
        "Bake the apples for half an hour and serve them with cream.",
    ],
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, tokenizer = load_model(args.model), load_tokenizer(args.model)
    found = []
    for query, documents in EXAMPLES.items():
        ids = tokenize(tokenizer, [query], 64)[0]
        logits = score(model, [(ids, doc) for doc in tokenize(tokenizer, documents, 445)])
        chances = torch.tensor(logits).sigmoid().tolist()
        found.append({"query": query, "documents": documents,
                      "scores": [round(chance, 6) for chance in chances]})
    args.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
