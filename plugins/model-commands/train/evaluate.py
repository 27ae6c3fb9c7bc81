"""Transcribes the held-out utterances with transformers: `python evaluate.py SPEECH MODEL`.

SPEECH has held.i16 and held.jsonl of synthesize.py: voices that the training never heard. Prints how
many are written exactly, by language, by voice, with noise, and where the language is not given.
"""

import json
import random
import sys
from collections import defaultdict

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration

from train import RATE, SAMPLES, Speech


def with_noise(wave, decibels, seed):
    noise = np.random.default_rng(seed).standard_normal(len(wave)).astype(np.float32)
    level = np.sqrt(np.mean(wave**2))
    return np.clip(wave + noise * level * 10 ** (-decibels / 20), -1, 1).astype(np.float32)


def main():
    speech, path = Speech(f"{sys.argv[1]}/held"), sys.argv[2]
    tokenizer = Tokenizer.from_file(f"{path}/tokenizer.json")
    model = WhisperForConditionalGeneration.from_pretrained(path).eval()
    extractor = WhisperFeatureExtractor.from_pretrained(path)

    def transcribed(waves, languages):
        inputs = extractor(waves, sampling_rate=RATE, return_tensors="pt").input_features
        more = {"language": languages} if languages else {}
        with torch.no_grad():
            out = model.generate(inputs, task="transcribe", do_sample=False, num_beams=1, **more)
        return [tokenizer.decode(row.tolist(), skip_special_tokens=True).strip() for row in out]

    def score(name, change, given=True):
        right, by = 0, defaultdict(lambda: [0, 0])
        wrong = []
        for first in range(0, len(speech.lines), 32):
            lines = speech.lines[first : first + 32]
            waves = [change(speech.wave(first + i), first + i) for i in range(len(lines))]
            texts = transcribed(waves, [line["language"] for line in lines] if given else None)
            for line, text in zip(lines, texts):
                is_right = text == line["text"]
                right += is_right
                for key in (line["language"], line["voice"].split("+")[1]):
                    by[key][0] += is_right
                    by[key][1] += 1
                if not is_right:
                    wrong.append((line["text"], text, line["voice"]))
        print(f"{name}: {right} of {len(speech.lines)}, {100 * right / len(speech.lines):.1f} %;", ", ".join(f"{key} {100 * a / b:.0f} % of {b}" for key, (a, b) in sorted(by.items())))
        for one in random.Random(1).sample(wrong, min(6, len(wrong))):
            print("   ", one)

    score("clean, language given", lambda wave, _: wave)
    score("clean, language found", lambda wave, _: wave, given=False)
    score("noise at 20 dB", lambda wave, i: with_noise(wave, 20, i))
    score("noise at 10 dB", lambda wave, i: with_noise(wave, 10, i))
    quiet = transcribed([np.zeros(SAMPLES, np.float32), 0.01 * np.random.default_rng(1).standard_normal(SAMPLES).astype(np.float32)], ["en", "en"])
    print("silence and noise:", quiet)


if __name__ == "__main__":
    main()
