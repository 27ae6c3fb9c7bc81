"""Trains projector and LoRA so that the decoder answers: `python train_chat.py DATA TOWER GGUF OUT MINUTES [LORA]`.

TOWER is the file of train_tower.py; the tower stays as it is. LORA is the folder of a run that is to go on. The questions about a picture share its
rows: each attends to the prompt before it and to itself alone.
"""

import math
import random
import sys
import time

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch.nn import functional as F

from decoder import opened
from questions import asked_of, asked_of_clip
from scenes import Scenes
from tower import Projector, Tower
from train_tower import normalized

BEFORE = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\n"
AFTER = "<|im_end|>\n<|im_start|>assistant\n"
ROWS = 16


def sample(scenes, dice, things, held, most):
    """Pictures `[N, 3, EDGE, EDGE]` and what is asked of them. N is 1, or more where it is a clip."""
    if dice.random() < 0.12:
        found, order = [], []
        for _ in range(dice.choice([2, 2, 3])):
            while True:
                picture, _, scene = scenes.one()
                if len(scene) == 1 and scene[0]["thing"] not in order:
                    break
            order.append(scene[0]["thing"])
            found += [picture] * dice.choice([1, 1, 2])
        return torch.stack(found[:4]), asked_of_clip(order, dice, held) if len(found) <= 4 else asked_of_clip(order[: 1 + (len(found[:4]) > 2)], dice, held)[:1]
    picture, _, scene = scenes.one()
    asked = asked_of(scene, dice, things, held)
    return picture[None], dice.sample(asked, min(most, len(asked)))


class Packed:
    """Sequences of tokens; -1 is the next row of a picture, and `parts` says what attends to what."""

    def __init__(self, tokenizer):
        self.ids_of = lambda text: tokenizer(text, add_special_tokens=False).input_ids
        self.before, self.after, self.end = self.ids_of(BEFORE), self.ids_of(AFTER), self.ids_of("<|im_end|>")

    def __call__(self, frames, asked, text_first):
        rows = [-1 - i for i in range(ROWS * frames)]
        ids = [*self.before, *([] if text_first else rows)]
        parts, places, labels = [0] * len(ids), list(range(len(ids))), [-100] * len(ids)
        shared = len(ids)
        for number, (_, question, answer) in enumerate(asked):
            said = [*self.ids_of(answer), *self.end]
            prompt = [*self.ids_of(question), *(rows if text_first else []), *self.after]
            ids += prompt + said
            parts += [number + 1] * (len(prompt) + len(said))
            places += range(shared, shared + len(prompt) + len(said))
            labels += [-100] * len(prompt) + said
        return ids, parts, places, labels


def collated(made):
    longest = max(len(one[0]) for one in made)
    pad = lambda rows, value: torch.tensor([row + [value] * (longest - len(row)) for row in rows])
    ids, parts, places, labels = (pad([one[i] for one in made], value) for i, value in enumerate((0, -1, 0, -100)))
    causal = torch.ones(longest, longest, dtype=torch.bool).tril()
    sees = causal & ((parts[:, None, :] == 0) | (parts[:, None, :] == parts[:, :, None]))
    mask = torch.where(sees, 0.0, torch.finfo(torch.float32).min)[:, None]
    return ids, mask, places, labels


def embedded(model, ids, rows):
    """Embeddings of tokens with the rows of pictures, a list of `[n, width]`, in their places."""
    table = model.get_input_embeddings()
    found = table(ids.clamp(min=0))
    for index, own in enumerate(rows):
        at = (ids[index] < 0).nonzero()[:, 0]
        found[index, at] = own[-1 - ids[index, at]].to(found.dtype)
    return found


def answers(model, tokenizer, packed, projector, states, asked, text_first):
    """What the model says to each question, greedily."""
    found = []
    with torch.no_grad():
        rows = projector(states).flatten(0, 1)
        for one in asked:
            ids, *_ = packed(len(states), [(one[0], one[1], "")], text_first)
            ids = torch.tensor([ids[:-1]])  # without the end of an empty answer
            start = ids.shape[1]
            inputs = embedded(model, ids, [rows])
            out = model.generate(inputs_embeds=inputs, attention_mask=torch.ones(1, start, dtype=torch.long), max_new_tokens=16, do_sample=False, pad_token_id=2, eos_token_id=2)
            found.append(tokenizer.decode(out[0], skip_special_tokens=True).strip())
    return found


def tested(model, tokenizer, tower, projector, scenes, things, seed, questions):
    """Exact answers about the held-out style in held-out templates, by kind."""
    dice, packed, by, wrong = random.Random(seed), Packed(tokenizer), {}, []
    model.eval()
    while sum(b for _, b in by.values()) < questions:
        pictures, asked = sample(scenes, dice, things, True, 2)
        with torch.no_grad():
            states = tower(normalized(pictures))
        said = answers(model, tokenizer, packed, projector, states, asked, dice.random() < 0.3)
        for (kind, question, answer), text in zip(asked, said):
            own = by.setdefault(kind, [0, 0])
            own[0] += text == answer
            own[1] += 1
            if text != answer:
                wrong.append((question, answer, text))
    model.train()
    return by, wrong


def shown(by):
    right, all_ = sum(a for a, _ in by.values()), sum(b for _, b in by.values())
    return f"{100 * right / all_:.1f} % of {all_};" + ", ".join(f" {kind} {100 * a / b:.0f} % of {b}" for kind, (a, b) in sorted(by.items()))


def main():
    data, tower_file, gguf, out, minutes = *sys.argv[1:5], float(sys.argv[5])
    torch.manual_seed(2)
    dice = random.Random(3)
    train, held = Scenes(f"{data}/train", 11), Scenes(f"{data}/held", 12, trains=False)
    kept = torch.load(tower_file)
    tower = Tower()
    tower.load_state_dict(kept["tower"])
    tower.requires_grad_(False).to(memory_format=torch.channels_last)
    decoder, tokenizer = opened(gguf)
    projector = Projector(decoder.config.hidden_size)
    projector.load_state_dict(kept["projector"])
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    kept_lora = sys.argv[6] if len(sys.argv) > 6 else None
    model = PeftModel.from_pretrained(decoder, kept_lora, is_trainable=True) if kept_lora else get_peft_model(decoder, LoraConfig(r=8, lora_alpha=16, target_modules=targets, task_type="CAUSAL_LM"))
    body, head = model.base_model.model.model, model.base_model.model.lm_head
    packed = Packed(tokenizer)
    loras = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW([{"params": loras, "lr": 1e-3}, {"params": projector.parameters(), "lr": 3e-4}], betas=(0.9, 0.98), weight_decay=0.0)
    most = [group["lr"] for group in optimizer.param_groups]
    began, saved, count, size, mean, tokens = time.time(), time.time(), 0, 6, 0.0, 0

    def save():
        model.save_pretrained(f"{out}/lora")
        torch.save({**kept, "projector": projector.state_dict()}, f"{out}/chat.pt")

    while time.time() - began < minutes * 60:
        share = (time.time() - began) / (minutes * 60)
        for group, rate in zip(optimizer.param_groups, most):
            group["lr"] = rate * min(1, (count + 1) / 60) * (0.5 + 0.5 * math.cos(math.pi * share)) + 1e-6
        samples = [sample(train, dice, train.things, False, 5) for _ in range(size)]
        text_first = [dice.random() < 0.25 for _ in samples]
        made = [packed(len(p), asked[:2] if first and len(p) == 1 else asked[:1] if first else asked, first) for (p, asked), first in zip(samples, text_first)]
        ids, mask, places, labels = collated(made)
        with torch.no_grad():
            states = tower(normalized(torch.cat([p for p, _ in samples])))
        rows = [own.flatten(0, 1) for own in projector(states).split([len(p) for p, _ in samples])]
        with torch.autocast("cpu", torch.bfloat16):
            hidden = body(inputs_embeds=embedded(model, ids, rows), attention_mask=mask, position_ids=places, use_cache=False).last_hidden_state
            wanted = labels[:, 1:]
            here = wanted != -100
            logits = head(hidden[:, :-1][here])
        loss = F.cross_entropy(logits.float(), wanted[here])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*loras, *projector.parameters()], 1.0)
        optimizer.step()
        count, tokens = count + 1, tokens + ids.numel()
        mean = 0.97 * mean + 0.03 * loss.item()
        if count % 20 == 0:
            took = time.time() - began
            print(f"{count} steps, {took:.0f} s, loss {mean / (1 - 0.97**count):.3f}, {tokens / took:.0f} tokens/s", flush=True)
        if time.time() - saved > 600:
            by, wrong = tested(model, tokenizer, tower, projector, held, train.things, count, 60)
            print("held-out:", shown(by), wrong[:5], flush=True)
            save()
            saved = time.time()
    save()
    by, wrong = tested(model, tokenizer, tower, projector, held, train.things, 1, 300)
    print("held-out:", shown(by))
    for one in wrong[:20]:
        print("  ", one)


if __name__ == "__main__":
    main()
