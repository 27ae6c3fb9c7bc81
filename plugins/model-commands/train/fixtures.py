"""Writes held-out utterances for the tests: `python fixtures.py SPEECH OUT`; every 75th of each language."""

import json
import sys
import wave
from pathlib import Path

from train import RATE, Speech


def main():
    speech, out = Speech(f"{sys.argv[1]}/held"), Path(sys.argv[2])
    spoken = []
    for language in ("en", "id", "es"):
        own = [index for index, line in enumerate(speech.lines) if line["language"] == language]
        for index in own[37::75]:
            line, name = speech.lines[index], f"{language}-{index}.wav"
            samples = speech.samples[line["first"] : line["first"] + line["samples"]]
            with wave.open(str(out / name), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(RATE)
                file.writeframes(samples.tobytes())
            spoken.append({"file": name, "language": language, "text": line["text"], "voice": line["voice"]})
    (out / "spoken.json").write_text(json.dumps(spoken, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
