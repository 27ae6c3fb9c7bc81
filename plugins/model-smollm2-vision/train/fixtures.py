"""Writes pictures and clips of the kept-out style with questions: `python fixtures.py DATA WEIGHTS GGUF OUT`.

Beside each question stand the true answer and what this model says in PyTorch.
"""

import json
import random
import sys
from pathlib import Path

import av
import numpy as np
import torch
from PIL import Image

from evaluate import served
from questions import asked_of, asked_of_clip
from scenes import Scenes
from train_chat import Packed, answers
from train_tower import normalized


def bytes_of(picture):
    return (picture.permute(1, 2, 0) * 255).round().byte().numpy()


def clip(path, pictures):
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=5, options={"crf": "24"})
        stream.width = stream.height = 128
        stream.pix_fmt = "yuv420p"
        for picture in pictures:
            for _ in range(5):
                for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                    file.mux(packet)
        for packet in stream.encode():
            file.mux(packet)


def main():
    data, weights, gguf, out = *sys.argv[1:4], Path(sys.argv[4])
    out.mkdir(exist_ok=True)
    model, tokenizer, tower, projector = served(weights, gguf)
    packed, dice = Packed(tokenizer), random.Random(31)
    scenes = Scenes(f"{data}/held", 32, trains=False)
    asked = []

    def ask(file, pictures, pair):
        read = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 255
        with torch.no_grad():
            states = tower(normalized(read))
        said = answers(model, tokenizer, packed, projector, states, [pair], False)[0]
        asked.append({"file": file, "kind": pair[0], "question": pair[1], "answer": pair[2], "said": said})

    for number in range(24):
        picture, _, scene = scenes.one()
        pixels = bytes_of(picture)
        Image.fromarray(pixels).quantize(64).convert("RGB").save(out / f"{number}.png", optimize=True)
        ask(f"{number}.png", [np.asarray(Image.open(out / f"{number}.png").convert("RGB"))], dice.choice(asked_of(scene, dice, scenes.things, True)))
    for number in range(4):
        found, order = [], []
        while len(order) < 2:
            picture, _, scene = scenes.one()
            if len(scene) == 1 and scene[0]["thing"] not in order:
                order.append(scene[0]["thing"])
                found.append(bytes_of(picture))
        clip(out / f"clip-{number}.mp4", found)
        ask(f"clip-{number}.mp4", found, asked_of_clip(order, dice, True)[number % 2])
    (out / "asked.json").write_text(json.dumps(asked, indent=2) + "\n")
    print(sum(one["said"] == one["answer"] for one in asked), "of", len(asked))


if __name__ == "__main__":
    main()
