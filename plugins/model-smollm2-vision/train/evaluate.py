"""Asks about pictures in the style that is kept out: `python evaluate.py DATA WEIGHTS GGUF QUESTIONS`.

The templates are those of the test, too. Prints how many answers are right to the word, by kind, and
the same where the picture is another one than the question is about.
"""

import random
import sys

import torch
from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
from safetensors.torch import load_file

from decoder import opened
from scenes import Scenes
from tower import Projector, Tower
from train_chat import shown, tested


def served(weights, gguf):
    """Decoder with LoRA, tokenizer, tower and projector of the served files."""
    decoder, tokenizer = opened(gguf)
    state = {name: value.float() for name, value in load_file(f"{weights}/model.safetensors").items()}
    part = lambda prefix: {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    tower, projector = Tower(), Projector(decoder.config.hidden_size)
    tower.load_state_dict(part("vision_tower."))
    projector.load_state_dict(part("multi_modal_projector."))
    model = get_peft_model(decoder, LoraConfig.from_pretrained(weights))
    lora = {name: value.float() for name, value in load_file(f"{weights}/adapter_model.safetensors").items()}
    set_peft_model_state_dict(model, lora)
    return model.eval(), tokenizer, tower.eval(), projector.eval()


def main():
    data, weights, gguf, questions = *sys.argv[1:4], int(sys.argv[4])
    model, tokenizer, tower, projector = served(weights, gguf)
    held = Scenes(f"{data}/held", 21, trains=False)
    by, wrong = tested(model, tokenizer, tower, projector, held, held.things, 22, questions)
    print("held-out style and templates:", shown(by))
    for question, answer, said in random.Random(1).sample(wrong, min(15, len(wrong))):
        print(f"   {question} {answer} > {said}")

    class Blind(torch.nn.Module):
        def forward(self, pixels):
            return tower(torch.ones_like(pixels))

    by, _ = tested(model, tokenizer, Blind(), projector, held, held.things, 22, questions // 4)
    print("the same of a white picture:", shown(by))


if __name__ == "__main__":
    main()
