"""The mean of the weights of several checkpoints (Wortsman et al., arXiv:2203.05482).

    python average.py OUT/run/mean OUT/documentation/mean OUT/echoes/mean --out OUT/averaged

Checkpoints of one start that were trained on different mixtures: the mean keeps most of each.
"""

import argparse
from pathlib import Path

import torch

from weights import load_model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoints", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    models = [load_model(folder) for folder in args.checkpoints]
    states = [model.state_dict() for model in models]
    mean = {name: sum(state[name] for state in states) / len(states) for name in states[0]}
    args.out.mkdir(parents=True, exist_ok=True)
    models[0].config.save_pretrained(args.out)
    torch.save(mean, args.out / "state.pt")


if __name__ == "__main__":
    main()
