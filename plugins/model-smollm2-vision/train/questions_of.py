"""Writes held-out pictures with questions: `python questions_of.py DATA OUT COUNT`, for ask.mjs."""

import json
import random
import sys
from pathlib import Path

from PIL import Image

from fixtures import bytes_of, clip
from scenes import Scenes
from train_chat import sample


def main():
    data, out, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    out.mkdir(exist_ok=True)
    dice, asked = random.Random(22), []
    scenes = Scenes(f"{data}/held", 21, trains=False)
    while len(asked) < count:
        pictures, pairs = sample(scenes, dice, scenes.things, True, 2)
        pixels = [bytes_of(picture) for picture in pictures]
        name = f"{len(asked)}.{'mp4' if len(pixels) > 1 else 'png'}"
        if len(pixels) > 1:
            clip(out / name, pixels)
        else:
            Image.fromarray(pixels[0]).save(out / name)
        asked += [{"file": name, "kind": kind, "question": question, "answer": answer} for kind, question, answer in pairs]
    (out / "asked.json").write_text(json.dumps(asked, indent=2) + "\n")


if __name__ == "__main__":
    main()
