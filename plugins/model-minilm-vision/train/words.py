"""What a picture may be called: names, keywords, colours and templates.

A picture of a name that holds a word of `unseen` (the concepts that are kept out) is dropped.
"""

import json
import random
import re
from pathlib import Path

WORDNET = Path("/usr/share/wordnet")
COLOURS = {
    "red": (214, 40, 40),
    "orange": (245, 130, 32),
    "yellow": (250, 210, 40),
    "green": (50, 160, 70),
    "blue": (40, 95, 210),
    "purple": (130, 60, 180),
    "pink": (240, 120, 175),
    "brown": (125, 75, 40),
    "black": (15, 15, 15),
    "white": (250, 250, 250),
    "gray": (130, 130, 130),
}
TEMPLATES = [
    *["{}"] * 14,
    *["a {}"] * 5,
    "the {}",
    "a picture of a {}",
    "an image of a {}",
    "a drawing of a {}",
    "an icon of a {}",
    "a clip art of a {}",
    "a photo of a {}",
]
# words of emoji names that name no thing that could be kept out on its own
GENERAL = set(
    "face button mark sign symbol hand person woman people heart square circle arrow hands arrows "
    "child eyes mouth adult girl baby body head light time clock money star flag food".split()
)


def tokens(text):
    return re.findall(r"[a-z]+", text.lower())


def singular(word):
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def wordnet_nouns():
    lines = (WORDNET / "index.noun").read_text().splitlines()
    return {line.split(" ", 1)[0] for line in lines if not line.startswith(" ")}


def lines_of(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def choose_unseen(heldout, count=110):
    """Words for things of the held-out style, drawn by lot, that no picture of the training shows."""
    nouns = wordnet_nouns()
    names, keywords = {}, {}
    for sprite in heldout:
        if not sprite.get("english"):
            continue
        last = (tokens(sprite["english"]["name"]) or [""])[-1]
        if len(last) > 3 and last in nouns and last not in GENERAL:
            names[last] = names.get(last, 0) + 1
        for word in sprite["english"]["words"]:
            keywords[word] = keywords.get(word, 0) + 1
    fit = sorted(word for word in names if names[word] <= 3 and keywords.get(word, 0) <= 6)
    return set(random.Random(17).sample(fit, min(count, len(fit) // 3)))


def mentions(sprite, unseen):
    """Whether a name or keyword of the picture holds a word that is kept out."""
    english = sprite.get("english") or {"name": "", "words": []}
    said = [sprite["name"], english["name"] or "", *english["words"], *sprite.get("tags", [])]
    found = {word for text in said for word in tokens(text)}
    found |= {singular(word) for word in found}
    return bool(found & (unseen | {singular(word) for word in unseen}))


def clipart_names(path, nouns):
    """Names out of a clip art's file name (`light_bulb_karl_bartel_01.png`) and its folder."""
    parts = path[:-4].split("/")
    known = []
    for word in tokens(parts[-1].replace("_", " ")):
        if word not in nouns and singular(word) not in nouns or len(word) < 3 or len(known) == 3:
            break
        known.append(word)
    folder = parts[-2].replace("_", " ") if len(parts) > 1 else ""
    names = [" ".join(known)] * 3 + [known[0]] * 2 if known else []
    return names + ([singular(folder)] if folder != "unsorted" else [])


def names_of(sprite, nouns):
    """The picture's names, the better ones more than once."""
    if sprite["set"] == "openclipart":
        return clipart_names(sprite["name"], nouns)
    slug = " ".join(tokens(sprite["name"]))
    if english := sprite.get("english"):
        keywords = [word for word in english["words"] if not set(tokens(word)) & set(COLOURS)]
        picked = keywords[:6]
        indonesian = [sprite["indonesian"]["name"]] if sprite.get("indonesian") else []
        names = [english["name"]] * 8 + [slug] * 2 + picked + indonesian
        return [name for name in names if name]
    return [slug] * 6 + sprite.get("tags", [])[:6] if slug else []


def hypernyms():
    """From a noun's first sense to what it is a kind of, by WordNet: word -> [word, word, ...]."""
    words, parents = {}, {}
    for line in (WORDNET / "data.noun").read_text().splitlines():
        if line.startswith(" "):
            continue
        fields = line.split(" | ")[0].split()
        words[fields[0]] = fields[4].replace("_", " ")
        links = fields[4 + 2 * int(fields[3], 16) + 1 :]
        parents[fields[0]] = [links[i + 1] for i in range(0, len(links) - 3, 4) if links[i] == "@"]
    return words, parents


def kinds(offset, words, parents, levels=4):
    """What a synset is called by its nearest hypernyms, from near to far."""
    found = []
    for _ in range(levels):
        if not parents.get(offset):
            break
        offset = parents[offset][0]
        found.append(words[offset])
    return found


def imagenet_names(synsets, lemmas, unseen):
    """For each class its names, and nothing for a class that shows what is kept out."""
    words, parents = hypernyms()
    lemma = dict(line.split("\t") for line in Path(lemmas).read_text().splitlines())
    result = []
    for synset in Path(synsets).read_text().split():
        own = lemma[synset].lower().split(", ")
        above = kinds(synset[1:], words, parents)
        every = {singular(word) for text in [*own, *above] for word in tokens(text)}
        seen = not every & {singular(word) for word in unseen}
        result.append([own[0]] * 4 + own[1:] + above[:3] if seen else [])
    return result


def plural(name):
    if re.search(r"(s|x|ch|sh)$", name):
        return f"{name}es"
    return re.sub(r"y$", "ie", name) + "s" if not re.search(r"[aeiou]y$", name) else f"{name}s"


def phrase(name, dice):
    """A name in one of the templates; "a" becomes "an" where it must."""
    text = dice.choice(TEMPLATES).format(name)
    return re.sub(r"\ba (?=[aeiou])", "an ", text)
