"""What can be drawn: each thing's pictures by style, its names in English and Indonesian, its weight."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from aliases import ALIASES, BANNED

GROUPS = {
    "Animals & Nature": 2.0,
    "Food & Drink": 2.0,
    "Travel & Places": 1.3,
    "Activities": 1.5,
    "Objects": 1.5,
    "Smileys & Emotion": 0.9,
    "People & Body": 0.35,
    "Symbols": 0.35,
    "Flags": 0.3,
}
PLACED = {"Animals & Nature", "Food & Drink", "Travel & Places", "Activities", "Objects"}
DULL = re.compile(
    r"button|keycap|japanese|o.clock|thirty|input|regional|letter|tone|component|^family|middle finger"
    r"|trade mark|copyright|registered|couple with heart|^kiss:|condom|cigarette"
)


@dataclass
class Thing:
    """`styles` maps main, flat, line to the index of a sprite; names come with their weights."""

    key: str
    group: str
    styles: dict
    english: list
    indonesian: list
    weight: float
    simple: bool = False
    colour: str | None = None
    share: float = 0.0
    tags: list = field(default_factory=list)


def tidy(name):
    """A name as one would say it: "woman: red hair" is "woman with red hair"."""
    name = re.sub(r"^flag: (.*)", r"flag of \1", name or "")
    name = re.sub(r"^bendera: (.*)", r"bendera \1", name)
    name = re.sub(r"[“”\"!’(),]", "", name.replace(": ", " with ")).replace("’", "'")
    return re.sub(r"\s+", " ", name).strip().lower()


def weighted(names):
    """Names once each, with the sum of their weights."""
    total = Counter()
    for name, weight in names:
        if name and re.search(r"[a-z]{2}", name):
            total[name] += weight
    return list(total.items())


def once(sprites, language):
    """Keywords that belong to one emoji alone, so that the word says which picture is meant."""
    counts = Counter()
    for sprite in sprites:
        counts.update({tidy(word) for word in (sprite.get(language) or {}).get("words", [])})
    return {word for word, count in counts.items() if count == 1 and re.fullmatch("[a-z ]{3,24}", word)}


def read_sprites(folder):
    return [json.loads(line) for line in (Path(folder) / "sprites.jsonl").read_text().splitlines()]


def emoji_thing(char, found, unique):
    """A thing of one emoji; `found` maps a set's name to (index, sprite)."""
    main = next((found[s] for s in ("fluent-emoji", "noto", "twemoji") if s in found), None)
    index, sprite = main
    styles = {"main": index}
    if "fluent-emoji-flat" in found and "fluent-emoji" in found:
        styles["flat"] = found["fluent-emoji-flat"][0]
    styles |= {s: found[s][0] for s in ("noto", "twemoji") if s in found and found[s][0] != index}
    english, indonesian = sprite.get("english") or {}, sprite.get("indonesian") or {}
    more_english, more_indonesian = ALIASES.get(char, ([], []))
    slug = tidy(sprite["name"].replace("-", " ")) if sprite["set"] != "twemoji" else ""
    names = [(tidy(english.get("name")), 6), (tidy(sprite["title"]), 2), (slug, 1)]
    names += [(name, 6) for name in more_english]
    names += [(tidy(w), 0.4) for w in english.get("words", []) if tidy(w) in unique["english"]]
    local = [(tidy(indonesian.get("name")), 5)] + [(name, 5) for name in more_indonesian]
    local += [(tidy(w), 0.4) for w in indonesian.get("words", []) if tidy(w) in unique["indonesian"]]
    weight = GROUPS[sprite["group"]]
    if re.search(r"^(man|woman|men|women)\b.+", names[0][0]) and sprite["group"] == "People & Body":
        weight *= 0.5
    simple = char in ALIASES or (" " not in names[0][0] and sprite["group"] in PLACED)
    weight *= 1.6 if simple else 1
    return Thing(char, sprite["group"], styles, weighted(names), weighted(local), weight, simple)


def icon_things(sprites, known):
    """Icons that no emoji shows: they are called icons."""
    result = []
    for index, sprite in enumerate(sprites):
        if sprite["set"] != "flat-color-icons" or re.search(r"\d", sprite["name"]):
            continue
        name = tidy(sprite["name"].replace("-", " ").replace("_", " "))
        names = [(f"{name} icon", 3), (f"icon of {name}", 2)]
        names += [] if name in known else [(name, 1)]
        result.append(Thing(f"icon:{name}", "Icons", {"main": index}, names, [], 0.35))
    return result


def line_things(sprites, known):
    """Line icons of short names."""
    result = []
    for index, sprite in enumerate(sprites):
        name = sprite["name"].replace("-", " ")
        if sprite["set"] != "lucide" or re.search(r"\d|arrow|align|chevron|layout|panel|square ", name):
            continue
        if " " in name and name not in known:
            continue
        local = [(text, 1) for text in known.get(name, [])]
        result.append(Thing(f"line:{name}", "Lines", {"line": index}, [(name, 1)], local, 0.3))
    return result


def all_things(folder):
    """Every thing of the sprites in a folder."""
    sprites = read_sprites(folder)
    by_char = {}
    for index, sprite in enumerate(sprites):
        if sprite.get("char"):
            by_char.setdefault(sprite["char"], {})[sprite["set"]] = (index, sprite)
    one_each = [next(iter(found.values()))[1] for found in by_char.values()]
    unique = {language: once(one_each, language) for language in ("english", "indonesian")}
    things = []
    for char, found in by_char.items():
        sprite = next(iter(found.values()))[1]
        name = (sprite.get("english") or {}).get("name") or sprite["title"]
        if char in BANNED or DULL.search(name.lower()) or sprite["group"] not in GROUPS:
            continue
        if sprite["group"] == "Flags" or set(found) & {"fluent-emoji", "noto"}:
            things.append(emoji_thing(char, found, unique))
    owned = Counter(name for thing in things for name, weight in thing.english if weight >= 5)
    for thing in things:
        thing.english = [
            (name, weight) for name, weight in thing.english if weight >= 5 or owned[name] == 0
        ] or thing.english
    known = {name: [n for n, _ in t.indonesian[:1]] for t in things for name, _ in t.english}
    return things + icon_things(sprites, known) + line_things(sprites, known)
