"""Speaks utterances with espeak-ng: `python synthesize.py OUT COUNT {train|held} [SEED]`.

OUT.i16 has the samples of all at 16 kHz, one after the other; OUT.jsonl a line each: text, language,
voice, first sample, number of samples. The held-out voices are never in the training's.
"""

import json
import random
import subprocess
import sys
import wave
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np

from phrases import utterance

RATE = 16_000
LONGEST = int(3.8 * RATE)
VOICES = {"en": ["en-us", "en-gb", "en-gb-x-rp", "en-029"], "id": ["id"], "es": ["es", "es-419"]}
# another accent of English besides held-out speakers
HELD_VOICES = {"en": ["en-us", "en-gb", "en-gb-scotland"], "id": ["id"], "es": ["es", "es-419"]}
HELD = "m5 f4 m8 klatt3 Andy linda paul miguel steph2 john anika david".split()
TRAINED = """m1 m2 m3 m4 m6 m7 f1 f2 f3 f5 croak klatt klatt2 klatt4 Alex Alicia Andrea Annie Denis Diogo Gene
Gene2 Henrique Hugo Jacky Lee Marco Mario Michael Mike Mr Nguyen Tweaky aunty adam antonio belinda benjamin
boris caleb ed edward edward2 grandma grandpa gustave iven iven2 iven3 kaukovalta marcelo max michel norbert
pablo pedro quincy rob robert sandro shelby steph steph3 travis victor zac anikaRobot UniRobot""".split()


def resampled(samples, rate):
    """Samples at 16 kHz, by cutting or padding the spectrum."""
    count = round(len(samples) * RATE / rate)
    spectrum = np.fft.rfft(samples)[: count // 2 + 1]
    return np.fft.irfft(spectrum, count) * (count / len(samples))


def spoken(text, voice, speed, pitch, spread):
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "-a", "100"]
    command += ["-P", str(spread)] if spread else []
    wav = subprocess.run([*command, "--stdout", text], capture_output=True, check=True).stdout
    with wave.open(BytesIO(wav)) as file:
        rate, raw = file.getframerate(), file.readframes(2**30)
    samples = np.frombuffer(raw[: len(raw) // 2 * 2], "<i2").astype(np.float32)
    loud = np.flatnonzero(np.abs(samples) > 150)
    if len(loud) < rate // 20:
        return None
    samples = resampled(samples[loud[0] : loud[-1] + 1], rate)
    return np.clip(samples, -32768, 32767).astype("<i2")


def plan(dice, held):
    language = dice.choice(["en", "id", "es"])
    base = dice.choice((HELD_VOICES if held else VOICES)[language])
    variant = dice.choice(HELD if held else TRAINED)
    speed = dice.randint(130, 215)
    return language, utterance(language, dice), f"{base}+{variant}", speed, dice.randint(25, 75)


def say(planned):
    _, text, voice, speed, pitch = planned
    try:
        return spoken(text, voice, speed, pitch, 0)
    except (subprocess.CalledProcessError, EOFError, wave.Error):
        return None


def main():
    out, count, held = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "held"
    dice = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 7 + held)
    plans = [plan(dice, held) for _ in range(count)]
    first = 0
    with open(f"{out}.i16", "wb") as bytes_, open(f"{out}.jsonl", "w") as lines:
        with ThreadPoolExecutor(2) as pool:
            for planned, samples in zip(plans, pool.map(say, plans)):
                if samples is None or len(samples) > LONGEST:
                    continue
                samples.tofile(bytes_)
                language, text, voice, speed, pitch = planned
                line = {"text": text, "language": language, "voice": voice, "speed": speed}
                line |= {"pitch": pitch, "first": first, "samples": len(samples)}
                lines.write(json.dumps(line) + "\n")
                first += len(samples)
    print(out, first / RATE / 60, "minutes")


if __name__ == "__main__":
    main()
