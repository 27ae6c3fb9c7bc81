"""Prompts that bench/pictures.ts asks for, and drawings of them: `python composed.py DATA OUT`.

OUT/prompts.json has the prompts with what each must show; half of the composed ones are compositions that
`held_out` keeps from the training. OUT/right and OUT/wrong have a true and a deliberately wrong drawing of
each composed prompt, for checks of the checker; OUT/sprites has every thing, with their names in index.json.
"""

import json
import random
import sys
from dataclasses import replace
from pathlib import Path

from PIL import Image

import layouts
from scenes import Item, Pictures, Scene, held_out
from texts import CORNERS, NUMBERS, plural, with_article

BARE = """cat dog elephant lion tiger horse cow pig rabbit fox bear penguin owl frog turtle snake fish
whale octopus crab butterfly bee snail shark
apple banana grapes strawberry watermelon pineapple carrot tomato egg hamburger pizza
ice cream|cookie|doughnut|birthday cake|lemon
car bus truck train bicycle motorcycle airplane helicopter rocket sailboat tractor ambulance
house castle church mountain volcano
tree palm tree|cactus|rose|sunflower|tulip
guitar piano drum trumpet violin umbrella clock key hammer scissors pencil book camera television
chair bed door light bulb|balloon|gift|crown|glasses|hat|bell|anchor|trophy
sun moon star heart cloud rainbow snowflake
robot ghost smiling face|sad face"""
TINTED = """car apple cat dog house tree balloon star fish bird butterfly umbrella chair key bell mushroom rose
tulip banana lemon pear carrot elephant horse rabbit pig frog turtle snake owl bear fox lion dolphin whale octopus
crab snail dragon dress backpack handbag teapot necktie scarf bucket hammer crown cloud moon sun cactus dinosaur
chicken cow deer duck eagle egg feather flamingo giraffe goat gorilla hamster hedgehog kangaroo koala lizard lobster
mango melon monkey moose mouse onion otter ox penguin pineapple potato pumpkin sauropod scorpion seal shark sheep
shield shrimp sloth squid strawberry sunflower swan tomato turkey unicorn violin wolf worm bat bee ant ladybug
door bed candle cookie coat jeans shorts socks kimono candy compass camera drum envelope helicopter
motorcycle rocket school tractor trophy trumpet tent umbrella anchor gear brick wheel leopard tiger dodo zebra
camel donkey beaver badger raccoon crocodile""".split()
# of one piece each, so that pieces are things
COUNTED = """apple cat dog house tree balloon star fish bird banana lemon pear carrot elephant horse rabbit
pig frog turtle owl bear fox duck chicken mushroom umbrella chair key bell car snail strawberry tomato egg
crown teapot backpack handbag rocket penguin""".split()
# things that everybody knows by their colour
OWN = {
    "banana": "yellow", "lemon": "yellow", "strawberry": "red", "tomato": "red", "cactus": "green",
    "tree": "green", "crocodile": "green", "carrot": "orange", "fox": "orange", "pig": "pink",
    "flamingo": "pink", "dolphin": "blue", "whale": "blue", "elephant": "gray", "koala": "gray",
    "star": "yellow", "lobster": "red", "apple": "red", "broccoli": "green", "cucumber": "green",
    "grapes": "purple", "moon": "yellow", "rhinoceros": "gray", "shamrock": "green", "trumpet": "yellow",
    "mushroom": "red", "bell": "yellow", "kangaroo": "orange", "jellyfish": "blue", "dinosaur": "green",
}  # fmt: skip
COLOURS = ["red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "gray", "turquoise"]
# pairs that a glance doesn't mix up
APART = [("red", "blue"), ("yellow", "blue"), ("green", "purple"), ("orange", "turquoise"), ("red", "green"),
         ("pink", "green"), ("yellow", "purple"), ("black", "orange"), ("blue", "orange"), ("pink", "black"),
         ("red", "black"), ("green", "yellow"), ("gray", "red"), ("gray", "yellow"), ("gray", "green")]  # fmt: skip
WORDS = {
    "left": "{} to the left of {}",
    "right": "{} to the right of {}",
    "above": "{} above {}",
    "below": "{} below {}",
}
OPPOSITE = {"left": "right", "right": "left", "above": "below", "below": "above"}


class Prompts:
    def __init__(self, things, seed=19):
        self.things, self.dice, self.seen = things, random.Random(seed), set()
        self.index = {}
        for at, thing in enumerate(things):
            for name, weight in thing.english:
                if weight >= 5:
                    self.index.setdefault(name, at)

    def held(self, name, colour):
        return held_out(colour, self.things[self.index[name]].key)

    def colourings(self, names, unseen):
        """(name, colour) in a drawn order: colours that the thing doesn't have by itself."""
        found = []
        for name in names:
            thing = self.things[self.index[name]]
            for colour in COLOURS:
                ok = thing.share > 0.45 and colour != thing.colour
                if ok and self.held(name, colour) == unseen:
                    found.append((name, colour))
        self.dice.shuffle(found)
        return found

    def item(self, name, colour=None):
        return Item(self.index[name], "main", colour)

    def colours(self, count, unseen):
        for name, colour in self.colourings(TINTED, unseen)[:count]:
            scene = Scene("single", (self.item(name, colour),))
            others = [other for other in COLOURS if other not in (colour, self.things[self.index[name]].colour)]
            wrong = replace(scene, items=(self.item(name, self.dice.choice(others)),))
            yield f"a {colour} {name}", {"kind": "colour", "colour": colour}, scene, wrong

    def counts(self, each, unseen):
        coloured = self.colourings(COUNTED, True)
        self.dice.shuffle(COUNTED)
        for at in range(6 * each):
            number = at % 6 + 1
            name, colour = coloured[at % len(coloured)] if unseen else (COUNTED[at], None)
            word = {1: "one", **NUMBERS["en"]}[number]
            said = name if number == 1 else plural(name)
            item = self.item(name, colour)
            others = [n for n in range(1, 7) if n != number and abs(n - number) < 3]
            text = f"{word} {colour} {said}" if colour else f"{word} {said}"
            scene = Scene("count", (item,), number)
            yield text, {"kind": "count", "count": number}, scene, replace(scene, count=self.dice.choice(others))

    def pairs(self, each, unseen, own):
        """Two things in a relation, known by colours that they are given or have."""
        pool = OWN if own else [name for name in TINTED if self.things[self.index[name]].share > 0.45]
        for at in range(4 * each):
            kind = list(WORDS)[at % 4]
            while True:
                names = self.dice.sample(sorted(pool), 2)
                colours = [OWN[n] for n in names] if own else list(self.dice.choice(APART))
                if self.dice.random() < 0.5 and not own:
                    colours.reverse()
                keys = [self.things[self.index[name]].key for name in names]
                kept = held_out(*keys)
                kept_colour = not own and any(self.held(n, c) for n, c in zip(names, colours))
                apart = tuple(colours) in APART or tuple(colours[::-1]) in APART
                new = (kind, *sorted(names)) not in self.seen
                if new and apart and kept == unseen and (unseen or not kept_colour):
                    break
            self.seen.add((kind, *sorted(names)))
            items = tuple(self.item(n, None if own else c) for n, c in zip(names, colours))
            said = [f"a {n}" if own else f"a {c} {n}" for n, c in zip(names, colours)]
            truth = {"kind": "pair", "relation": kind, "colours": colours}
            wrong = [Scene(OPPOSITE[kind], items), Scene("above" if kind in ("left", "right") else "left", items)]
            yield WORDS[kind].format(*said), truth, Scene(kind, items), wrong[at // 4 % 2]

    def corners(self, count, unseen):
        """One thing in a half or a quarter of the picture."""
        names = list(layouts.CORNERS)
        coloured = self.colourings(TINTED, True)
        plain = self.dice.sample(COUNTED, count)
        for at in range(count):
            where = names[at % len(names)]
            name, colour = coloured[at] if unseen else (plain[at], None)
            item = self.item(name, colour)
            said = f"a {colour} {name}" if colour else f"a {name}"
            others = [other for other in names if other != where]
            truth = {"kind": "corner", "where": where}
            scene = Scene("corner", (item,), where=where)
            wrong = replace(scene, where=self.dice.choice(others))
            yield f"{said} {CORNERS[where][0]}", truth, scene, wrong

    def composed(self):
        for unseen in (False, True):
            for made in (
                self.colours(35, unseen),
                self.counts(5, unseen),
                self.pairs(3, unseen, True),
                self.pairs(3, unseen, False),
                self.corners(11, unseen),
            ):
                for text, truth, right, wrong in made:
                    yield {"prompt": with_article(text), **truth, "unseen": unseen}, right, wrong

    def bare(self):
        names = [part for line in BARE.split("\n") for part in split_names(line)]
        return [(with_article(f"a {name}"), self.index[name]) for name in names]


def split_names(line):
    """Words of a line; with bars, the last word of the first part begins a name of two words."""
    first, *rest = line.split("|")
    words = first.split(" ")
    if rest and len(words) > 1:
        words[-2:] = [" ".join(words[-2:])]
    return words + rest


def save(picture, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)


def main():
    data, out = sys.argv[1], Path(sys.argv[2])
    pictures = Pictures(data)
    prompts = Prompts(pictures.things)
    composed = list(prompts.composed())
    for at, (_, right, wrong) in enumerate(composed):
        save(pictures.draw(right, 256, 256), out / "right" / f"{at}.png")
        save(pictures.draw(wrong, 256, 256), out / "wrong" / f"{at}.png")
    names = []
    for at, thing in enumerate(pictures.things):
        style = "main" if "main" in thing.styles else next(iter(thing.styles))
        save(pictures.draw(Scene("single", (Item(at, style),)), 128, 128), out / "sprites" / f"{at}.png")
        names.append([name for name, _ in sorted(thing.english, key=lambda pair: -pair[1])])
    (out / "sprites" / "index.json").write_text(json.dumps(names))
    bare = [{"prompt": text, "thing": at} for text, at in prompts.bare()]
    lines = [json.dumps(entry) for entry in bare]
    checked = [json.dumps(entry) for entry, _, _ in composed]
    (out / "prompts.json").write_text(
        '{\n"bare": [\n' + ",\n".join(lines) + '\n],\n"composed": [\n' + ",\n".join(checked) + "\n]\n}\n"
    )
    print(len(bare), "bare prompts,", len(composed), "composed,", len(names), "things")


if __name__ == "__main__":
    main()
