"""Trains the speech model from scratch: `python train.py SPEECH OUT MINUTES`.

SPEECH has train.i16 and train.jsonl of synthesize.py. OUT gets a checkpoint in the layout of
transformers (config.json, generation_config.json, preprocessor_config.json, tokenizer.json,
model.safetensors), every few minutes and at the end.

The decoder learns words by cross entropy; the encoder learns them by CTC, too (Watanabe et al.,
arXiv 1609.06773), without which attention finds its alignment far later. The CTC head is thrown away.
"""

import json
import math
import random
import sys
import time

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

from phrases import words

RATE = 16_000
SECONDS = 4
SAMPLES = RATE * SECONDS
LANGUAGES = ["en", "id", "es"]
HOP = 320
WIDTH, ENCODER, DECODER, HEADS = 128, 4, 2, 4
MOST_TOKENS = 16
CLEAN = 0.12  # the share of the time in which the sounds have no noise and no holes


def tokenizer_of():
    vocabulary = {f"▁{word}": i for i, word in enumerate(words())}
    vocabulary["<unk>"] = len(vocabulary)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    specials = ["<|endoftext|>", "<|startoftranscript|>", *[f"<|{name}|>" for name in LANGUAGES], "<|transcribe|>"]
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in specials])
    return tokenizer


def model_of(tokenizer):
    id_of = tokenizer.token_to_id
    end = id_of("<|endoftext|>")
    config = WhisperConfig(
        vocab_size=tokenizer.get_vocab_size(), num_mel_bins=80, d_model=WIDTH, encoder_layers=ENCODER, decoder_layers=DECODER, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
        encoder_ffn_dim=3 * WIDTH, decoder_ffn_dim=3 * WIDTH, max_source_positions=SAMPLES // HOP // 2, max_target_positions=MOST_TOKENS, decoder_start_token_id=id_of("<|startoftranscript|>"),
        eos_token_id=end, pad_token_id=end, bos_token_id=end, suppress_tokens=None, begin_suppress_tokens=None, dropout=0.05,
    )
    model = WhisperForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        decoder_start_token_id=config.decoder_start_token_id, eos_token_id=end, pad_token_id=end, bos_token_id=end, max_length=MOST_TOKENS, is_multilingual=True,
        lang_to_id={f"<|{name}|>": id_of(f"<|{name}|>") for name in LANGUAGES}, task_to_id={"transcribe": id_of("<|transcribe|>")},
        suppress_tokens=[id_of(text) for text in ("<unk>", "<|startoftranscript|>", "<|transcribe|>", *[f"<|{name}|>" for name in LANGUAGES])],
    )
    return model


class Speech:
    def __init__(self, path):
        self.samples = np.memmap(f"{path}.i16", "<i2", "r")
        self.lines = [json.loads(line) for line in open(f"{path}.jsonl")]

    def wave(self, index):
        line = self.lines[index]
        return self.samples[line["first"] : line["first"] + line["samples"]].astype(np.float32) / 32768


class Noise:
    """White noise and noise that falls with the frequency, made once and read from any place."""

    def __init__(self):
        white = np.random.default_rng(1).standard_normal(200 * SAMPLES).astype(np.float32)
        steps = np.cumsum(white, dtype=np.float64)
        brown = (steps - np.convolve(steps, np.ones(400) / 400, "same")).astype(np.float32)
        self.kinds = [one / one.std() for one in (white, brown)]

    def __call__(self, dice):
        kind, first = dice.choice(self.kinds), dice.randrange(0, 199 * SAMPLES)
        return kind[first : first + SAMPLES]


def placed(wave, dice, noise):
    """The sound somewhere in four seconds, louder or softer, with noise behind it if there is any."""
    out = np.zeros(SAMPLES, np.float32)
    if wave is not None:
        first = dice.randrange(0, SAMPLES - len(wave) + 1)
        out[first : first + len(wave)] = wave
    level = math.sqrt(float(np.mean(wave**2))) if wave is not None else 0.05
    if noise and dice.random() < 0.85:
        out += noise(dice) * level * 10 ** (-dice.uniform(3, 40) / 20)
    return np.clip(out * 10 ** dice.uniform(-1, 0.2), -1, 1)


class Mel:
    """Whisper's frames of a batch, as its feature extractor makes them."""

    def __init__(self, extractor):
        self.filters = torch.tensor(np.array(extractor.mel_filters), dtype=torch.float32).T
        self.window = torch.hann_window(400)

    def __call__(self, waves):
        power = torch.stft(waves, 400, HOP, window=self.window, return_complex=True)[..., :-1].abs() ** 2
        frames = (self.filters @ power).clamp(min=1e-10).log10()
        frames = torch.maximum(frames, frames.amax((1, 2), keepdim=True) - 8)
        return (frames + 4) / 4


def hidden(frames, dice):
    """SpecAugment (Park et al., arXiv 1904.08779): a band of frequencies and one of time is silence."""
    for one in frames:
        floor = one.min()
        band, first = dice.randrange(0, 12), dice.randrange(0, 68)
        one[first : first + band] = floor
        length, start = dice.randrange(0, 13), dice.randrange(0, 187)
        one[:, start : start + length] = floor
    return frames


def main():
    speech, out, minutes = Speech(f"{sys.argv[1]}/train"), sys.argv[2], float(sys.argv[3])
    torch.manual_seed(1)
    dice = random.Random(1)
    tokenizer = tokenizer_of()
    model = model_of(tokenizer)
    extractor = WhisperFeatureExtractor(feature_size=80, chunk_length=SECONDS, hop_length=HOP)
    mel, noise = Mel(extractor), Noise()
    blank = tokenizer.token_to_id("<unk>")
    head = torch.nn.Linear(WIDTH, blank + 1)
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01)
    id_of = tokenizer.token_to_id
    start, task, end = id_of("<|startoftranscript|>"), id_of("<|transcribe|>"), id_of("<|endoftext|>")
    count, size, began, saved = 0, 32, time.time(), time.time()
    mean = [0.0, 0.0]

    def save():
        model.eval()
        model.save_pretrained(out)
        model.generation_config.save_pretrained(out)
        extractor.save_pretrained(out)
        tokenizer.save(f"{out}/tokenizer.json")
        model.train()

    model.train()
    while time.time() - began < minutes * 60:
        share = (time.time() - began) / (minutes * 60)
        rate = 1.5e-3 * min(1, (count + 1) / 200) * (0.5 + 0.5 * math.cos(math.pi * share)) + 1e-6
        for group in optimizer.param_groups:
            group["lr"] = rate
        clean = share < CLEAN
        waves, texts, languages = [], [], []
        for _ in range(size):
            index = dice.randrange(len(speech.lines))
            line = speech.lines[index]
            silent = dice.random() < 0.03
            waves.append(placed(None if silent else speech.wave(index), dice, None if clean else noise))
            texts.append([] if silent else tokenizer.encode(line["text"], add_special_tokens=False).ids)
            languages.append(id_of(f"<|{line['language']}|>"))
        frames = mel(torch.from_numpy(np.stack(waves)).float())
        frames = frames if clean else hidden(frames, dice)
        rows = [[start, language, task, *text, end] for text, language in zip(texts, languages)]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [end] * (longest - len(row)) for row in rows])
        labels = torch.tensor([row[1:] + [-100] * (longest - len(row)) for row in rows])
        states = model.model.encoder(frames).last_hidden_state
        decoded = model.model.decoder(input_ids=ids[:, :-1], encoder_hidden_states=states).last_hidden_state
        said = torch.nn.functional.cross_entropy(model.proj_out(decoded).flatten(0, 1), labels.flatten(), ignore_index=-100, label_smoothing=0.05)
        log_probs = head(states).log_softmax(-1).transpose(0, 1)
        flat = torch.tensor([token for text in texts for token in text])
        lengths = torch.tensor([len(text) for text in texts])
        ctc = torch.nn.functional.ctc_loss(log_probs, flat, torch.full((size,), states.shape[1]), lengths, blank=blank, zero_infinity=True)
        loss = said + 0.5 * ctc
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        count += 1
        mean = [0.98 * mean[0] + 0.02 * said.item(), 0.98 * mean[1] + 0.02 * ctc.item()]
        if count % 50 == 0:
            print(f"{count} steps, {time.time() - began:.0f} s, said {mean[0]:.3f}, ctc {mean[1]:.3f}", flush=True)
        if time.time() - saved > 180:
            save()
            saved = time.time()
    save()


if __name__ == "__main__":
    main()
