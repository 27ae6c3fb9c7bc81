"""Edits of scenes: an instruction, the pictures it speaks of, and the picture it asks for."""

import random
from dataclasses import replace

from backgrounds import PLACES
from recolour import INDONESIAN
from scenes import Item, Scene
from texts import named, with_article

WORDS = {
    "colour": {
        "en": ["make it {c}", "make the {n} {c}", "change the color to {c}", "turn the {n} {c}",
               "a {c} {n}", "recolor it {c}"],
        "id": ["buat menjadi {c}", "ubah warnanya menjadi {c}", "jadikan {n} {c}"],
    },
    "add": {
        "en": ["add a {n} on the {s}", "put a {n} on the {s}"],
        "id": ["tambahkan {n} di sebelah {s}"],
    },
    "remove": {"en": ["remove the {n}", "delete the {n}", "without the {n}"], "id": ["hapus {n}"]},
    "replace": {
        "en": ["replace the {n} by a {m}", "replace the {n} with a {m}", "change the {n} into a {m}"],
        "id": ["ganti {n} dengan {m}", "ubah {n} menjadi {m}"],
    },
    "plain": {
        "en": ["change the background to {c}", "put it on a {c} background", "make the background {c}"],
        "id": ["ubah latar belakang menjadi {c}", "jadikan latar belakang {c}"],
    },
    "place": {
        "en": ["put it {p}", "place the {n} {p}", "show it {p}", "the same {n} {p}"],
        "id": ["letakkan {p}", "tempatkan {n} {p}"],
    },
    "white": {"en": ["remove the background", "make the background white"],
              "id": ["hapus latar belakang"]},
    "blend": {
        "en": {"and": ["put these together", "combine them", "put them side by side",
                       "the first one next to the second one"],
               "left": ["the first one to the left of the second one"],
               "right": ["the first one to the right of the second one"],
               "above": ["the first one above the second one", "put the first on top of the second"],
               "below": ["the first one below the second one"],
               "list": ["put these together", "combine all of them", "show all of these together"]},
        "id": {"and": ["gabungkan keduanya", "letakkan berdampingan"],
               "left": ["yang pertama di sebelah kiri yang kedua"],
               "right": ["yang pertama di sebelah kanan yang kedua"],
               "above": ["yang pertama di atas yang kedua"],
               "below": ["yang pertama di bawah yang kedua"],
               "list": ["gabungkan semuanya"]},
    },
}  # fmt: skip
SIDES = {"left": "kiri", "right": "kanan"}


class Editor:
    """Draws edits by lot: (instruction, source scenes, goal scene); a lone source may be noised."""

    def __init__(self, composer, seed=0):
        self.composer, self.things = composer, composer.things
        self.dice = random.Random(seed)

    def words(self, key, **items):
        """One way to say it, with names of items, colours, sides and places filled in."""
        known = [v for v in items.values() if isinstance(v, Item)]
        local = self.dice.random() < 0.18 and all(self.things[i.thing].indonesian for i in known)
        language = "id" if local else "en"
        said = {}
        for letter, value in items.items():
            if letter == "kind":
                continue
            if isinstance(value, Item):
                said[letter] = named(value, self.things, self.dice, language, False)
            elif letter == "p":
                said[letter] = self.dice.choice(PLACES[value][1 if local else 0])
            else:
                said[letter] = {**INDONESIAN, **SIDES}[value] if local else value
        options = WORDS[key][language]
        options = options[items["kind"]] if key == "blend" else options
        return with_article(self.dice.choice(options).format(**said))

    def item(self, coloured=0.2):
        """A thing of any set of pictures, so that a reference must be looked at."""
        item = self.composer.item(coloured)
        styles = list(self.things[item.thing].styles)
        if item.colour is None and self.dice.random() < 0.3:
            return replace(item, style=self.dice.choice(styles))
        return item

    def colour(self):
        thing = self.composer.pick("tinted")
        goal = Item(thing, "main", self.composer.colour_for(thing))
        while goal.colour == self.things[thing].colour:
            goal = replace(goal, colour=self.composer.colour_for(thing))
        source = Item(thing, "main", None)
        back = self.composer.maybe_back([goal, source], 0.15, 0.1)
        text = self.words("colour", c=goal.colour, n=source)
        return text, [Scene("single", (source,), back=back)], Scene("single", (goal,), back=back)

    def add(self):
        old, new = self.item(), self.composer.item()
        side = self.dice.choice(["left", "right"])
        goal = Scene("and", (new, old) if side == "left" else (old, new))
        other = "right" if side == "left" else "left"
        alone = Scene("single", (old,)) if self.dice.random() < 0.7 else Scene("corner", (old,), where=other)
        return self.words("add", n=new, s=side), [alone], goal

    def remove(self):
        kept, gone = self.item(), self.composer.item()
        side = self.dice.choice(["left", "right"])
        source = Scene("and", (kept, gone) if side == "left" else (gone, kept))
        return self.words("remove", n=gone), [source], Scene("corner", (kept,), where=side)

    def replace(self):
        old, new, other = self.composer.item(), self.composer.item(), self.item()
        text = self.words("replace", n=old, m=new)
        if self.dice.random() < 0.5:
            return text, [Scene("single", (old,))], Scene("single", (new,))
        return text, [Scene("and", (old, other))], Scene("and", (new, other))

    def back(self):
        item = self.item()
        before = self.composer.maybe_back([item], 0.3, 0.3)
        kinds = {"plain": 0.35, "place": 0.5, "white": 0.2 if before else 0}
        kind = self.dice.choices(list(kinds), list(kinds.values()))[0]
        after = {"plain": self.composer.backdrop([item]), "white": None}.get(
            kind, self.dice.choice(list(PLACES))
        )
        said = {"plain": {"c": after}, "place": {"p": after, "n": item}, "white": {}}[kind]
        text = self.words(kind, **said)
        return text, [Scene("single", (item,), back=before)], Scene("single", (item,), back=after)

    def blend(self):
        count = self.dice.choices([2, 3, 4, 5], [0.7, 0.15, 0.08, 0.07])[0]
        items = tuple(self.item() for _ in range(count))
        kinds = ["and", "and", "left", "right", "above", "below"] if count == 2 else ["list"]
        kind = self.dice.choice(kinds)
        sources = [Scene("single", (item,)) for item in items]
        return self.words("blend", kind=kind), sources, Scene(kind, items)

    def sample(self, width=128, height=128):
        """Text, goal picture, sources' pictures."""
        kind = self.dice.choices(
            ["colour", "add", "remove", "replace", "back", "blend"], [3, 2, 1, 1.5, 3, 2]
        )[0]
        text, sources, goal = getattr(self, kind)()
        draw = self.composer.pictures.draw
        return text, draw(goal, width, height), [draw(source, width, height) for source in sources]


