"""The words of a scene, in English or Indonesian."""

import re

from backgrounds import PLACES
from recolour import INDONESIAN

NUMBERS = {
    "en": {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"},
    "id": {2: "dua", 3: "tiga", 4: "empat", 5: "lima", 6: "enam"},
}
PLAIN = {
    "en": [("{}", 6), ("a {}", 3), ("the {}", 0.4), ("picture of a {}", 0.4), ("drawing of a {}", 0.4),
           ("an illustration of a {}", 0.3), ("{} clip art", 0.2), ("{} emoji", 0.3),
           ("a {} on a white background", 0.3)],
    "id": [("{}", 6), ("gambar {}", 1.5), ("sebuah {}", 0.8), ("ilustrasi {}", 0.3)],
}  # fmt: skip
STYLES = {
    "flat": {
        "en": ["flat {}", "flat icon of a {}", "a {} in flat style", "flat illustration of a {}"],
        "id": ["{} gaya datar", "ikon datar {}"],
    },
    "line": {
        "en": ["line icon of a {}", "line drawing of a {}", "outline icon of a {}", "{} line icon"],
        "id": ["ikon garis {}", "gambar garis {}"],
    },
}
CORNERS = {
    "left": ("on the left", "di sebelah kiri"),
    "right": ("on the right", "di sebelah kanan"),
    "top": ("at the top", "di bagian atas"),
    "bottom": ("at the bottom", "di bagian bawah"),
    "top left": ("in the top left corner", "di pojok kiri atas"),
    "top right": ("in the top right corner", "di pojok kanan atas"),
    "bottom left": ("in the bottom left corner", "di pojok kiri bawah"),
    "bottom right": ("in the bottom right corner", "di pojok kanan bawah"),
}
RELATIONS = {
    "en": {
        "left": ["{} to the left of {}", "{} left of {}", "{} on the left of {}"],
        "right": ["{} to the right of {}", "{} right of {}", "{} on the right of {}"],
        "above": ["{} above {}", "{} over {}", "{} on top of {}"],
        "below": ["{} below {}", "{} under {}", "{} beneath {}"],
        "and": ["{} and {}", "{} and {}", "{} next to {}", "{} beside {}", "{} with {}"],
    },
    "id": {
        "left": ["{} di sebelah kiri {}", "{} di kiri {}"],
        "right": ["{} di sebelah kanan {}", "{} di kanan {}"],
        "above": ["{} di atas {}"],
        "below": ["{} di bawah {}"],
        "and": ["{} dan {}", "{} dan {}", "{} di samping {}", "{} bersama {}"],
    },
}
UNCOUNTED = re.compile(r"(s|ice|fish|sheep|rice|bread|corn|cheese|coffee|tea|fire|snow|rain)$")
IRREGULAR = {"mouse": "mice", "man": "men", "woman": "women", "person": "people", "child": "children",
             "leaf": "leaves", "knife": "knives", "wolf": "wolves", "foot": "feet", "tooth": "teeth",
             "goose": "geese"}  # fmt: skip


def plural(name):
    head, _, rest = name.partition(" of ")
    words = head.split(" ")
    last = words[-1]
    if last in IRREGULAR:
        words[-1] = IRREGULAR[last]
    elif re.search(r"(x|ch|sh|ss)$", last):
        words[-1] = f"{last}es"
    elif re.search(r"[^aeiou]y$", last):
        words[-1] = f"{last[:-1]}ies"
    elif not UNCOUNTED.search(last):
        words[-1] = f"{last}s"
    return " ".join(words) + (f" of {rest}" if rest else "")


def with_article(text):
    """ "a" becomes "an" where it must, and falls where a name has its own."""
    text = re.sub(r"\ban? (the|a|an) ", r"\1 ", text)
    text = re.sub(r"\ba ((?:\w+ )?\w+[^uis]s)(?= |$)", r"\1", text) if "background" not in text else text
    return re.sub(r"\ba (?=[aeiou](?!ni|se|ro))", "an ", text)


def drawn(pairs, dice):
    return dice.choices([text for text, _ in pairs], [weight for _, weight in pairs])[0]


def named(item, things, dice, language, keywords):
    """The item's name with its colour: "red apple", "apel merah"; without keywords: by its proper names."""
    thing = things[item.thing]
    names = thing.english if language == "en" else thing.indonesian
    if not keywords or item.colour:
        names = [pair for pair in names if pair[1] >= 1] or names
    name = drawn(names, dice)
    if item.colour is None:
        return name
    return f"{item.colour} {name}" if language == "en" else f"{name} {INDONESIAN[item.colour]}"


def background(scene, dice, language):
    if scene.back is None:
        return ""
    if scene.back in PLACES:
        english, indonesian, _ = PLACES[scene.back]
        return " " + dice.choice(english if language == "en" else indonesian)
    if language == "en":
        return f" on a {scene.back} background"
    return f" dengan latar belakang {INDONESIAN[scene.back]}"


def phrase(scene, things, dice, language):
    """The scene's words without its background."""
    keywords = scene.kind == "single"
    names = [named(item, things, dice, language, keywords) for item in scene.items]
    english = language == "en"
    style = scene.items[0].style
    if scene.kind == "single" and style != "main":
        return dice.choice(STYLES[style][language]).format(names[0])
    if scene.kind == "single":
        plain = PLAIN[language] if scene.back is None else PLAIN[language][:2]
        return drawn(plain, dice).format(names[0])
    if scene.kind == "count":
        number = NUMBERS[language][scene.count]
        number = str(scene.count) if dice.random() < 0.15 else number
        return f"{number} {plural(names[0]) if english else names[0]}"
    articles = english and dice.random() < 0.7
    names = [f"a {name}" if articles else name for name in names]
    if scene.kind == "corner":
        return f"{names[0]} {CORNERS[scene.where][0 if english else 1]}"
    if scene.kind == "list":
        return f"{', '.join(names[:-1])} {'and' if english else 'dan'} {names[-1]}"
    return dice.choice(RELATIONS[language][scene.kind]).format(*names)


def described(scene, things, dice, indonesian=0.18):
    """What a user would write to get the scene."""
    local = dice.random() < indonesian and all(things[item.thing].indonesian for item in scene.items)
    language = "id" if local else "en"
    text = phrase(scene, things, dice, language) + background(scene, dice, language)
    return with_article(text) if language == "en" else text
