"""Collects (query, passage) pairs of open sources into OUT/SOURCE.jsonl.

    python collect.py --debs FOLDER --wordnet /usr/share/wordnet --out OUT

FOLDER has one folder per Debian package, made by `dpkg -x PACKAGE.deb FOLDER/PACKAGE`.
Each line is {"query", "text"}: the text is relevant to the query. The README names the licences.
"""

import argparse
import gzip
import json
import random
import re
import subprocess
from pathlib import Path

from html_text import first_words, plain, sections

TRAIN_HTML = {
    "libreoffice": ("libreoffice-help-en-us", "**/text/**/*.html"),
    "anarchism": ("anarchism", "**/*.html"),
    "debian-faq": ("debian-faq", "**/*.en.html"),
    "developers-reference": ("developers-reference", "**/*.html"),
    "debian-reference": ("debian-reference-en", "**/*.html"),
    "aptitude": ("aptitude-doc-en", "**/en/*.html"),
    "python": ("python3.11-doc", "**/html/[fhtl]*/*.html"),
    "postgresql": ("postgresql-doc-15", "**/*.html"),
    "gimp": ("gimp-help-en", "**/en/*.html"),
    "git": ("git-doc", "**/git[a-z]*.html"),
}


def html_pairs(folder: Path, pattern: str, most: int):
    """Headings of at least two words with the text below them."""
    found, seen = [], set()
    for path in sorted(folder.glob(pattern)):
        for heading, text in sections(path.read_text("utf8", "ignore")):
            known = text[:60] in seen or (heading, "h") in seen
            if not known and 2 <= len(heading.split()) <= 20 and len(heading) < 120:
                seen.update([text[:60], (heading, "h")])
                found.append((heading, text))
    random.shuffle(found)
    return found[:most]


def synsets(folder: Path):
    """(words, part of speech, definition, examples) of WordNet's data files."""
    for name in ["noun", "verb", "adj", "adv"]:
        for line in (folder / f"data.{name}").read_text("utf8").splitlines():
            if line.startswith(" "):
                continue
            left, gloss = line.split(" | ", 1)
            fields = left.split()
            count = int(fields[3], 16)
            words = [fields[4 + 2 * i].replace("_", " ") for i in range(count)]
            words = [re.sub(r"\(.*\)", "", word) for word in words]
            examples = re.findall(r'"([^"]{15,})"', gloss)
            definition = re.split(r';\s*"', gloss)[0].strip(' ;"')
            named = name == "noun" and " @i " in left
            yield words, name, definition, examples, named


def asked(word: str, part: str, named: bool) -> str:
    """A question for what a word means, in one of several forms."""
    if named:
        forms = ["who or what is {}", "{}", "What is {} known for?", "tell me about {}"]
    elif part == "noun":
        forms = ["What is {a}?", "{}", "meaning of {}", "define {}", "what does {} mean"]
    elif part == "verb":
        forms = ["What does it mean to {}?", "to {}", "meaning of the verb {}"]
    else:
        forms = ["{}", "What does {} mean?", "meaning of {}"]
    article = "an" if word[0].lower() in "aeiou" else "a"
    return random.choice(forms).format(word, a=f"{article} {word}")


def wordnet_pairs(folder: Path, most: int):
    """Questions for words with definitions, and example sentences with the sense they show."""
    meanings, uses = [], []
    for words, part, definition, examples, named in synsets(folder):
        if len(definition.split()) >= 5:
            word = random.choice(words)
            meanings.append((asked(word, part, named), definition))
            if random.random() < 0.3:
                meanings.append((definition, f"{word}: a word for this is also {words[-1]}"
                                 if len(words) > 1 else f"This is called {word}."))
        for example in examples:
            uses.append((example, f"{words[0]}: {definition}"))
    random.shuffle(meanings)
    random.shuffle(uses)
    return meanings[:most], uses[: most // 2]


def translations() -> str:
    """Debian's English package descriptions, from apt's lists."""
    lists = sorted(Path("/var/lib/apt/lists").glob("*_main_i18n_Translation-en*"))
    command = ["/usr/lib/apt/apt-helper", "cat-file", *map(str, lists)]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf8", "ignore")


LIBRARY = re.compile(
    r"lib.*-(dev|perl|java)$|lib(ghc|rust)|.*-(dbg|dev)$|golang-|r-cran|node-|ruby-")


def package_pairs(most: int):
    """Debian packages: the title asks, the description answers."""
    found, seen = [], set()
    for entry in translations().split("\n\n"):
        name = re.search(r"^Package: (.+)$", entry, re.M)
        lines = re.search(r"^Description-en: (.+)\n((?: .*\n?)+)", entry, re.M)
        if not name or not lines or LIBRARY.match(name[1]):
            continue
        text = re.sub(r"\s+", " ", lines[2].replace("\n .\n", "\n")).strip()
        title = re.sub(r"\s*[(-][^()]*\)?$", "", lines[1])
        if len(text.split()) >= 15 and text[:80] not in seen and len(title.split()) >= 3:
            seen.add(text[:80])
            found.append((title, first_words(text, 80)))
    random.shuffle(found)
    return found[:most]


def dictionary_pairs(path: Path, most: int):
    """dictd databases: a head word in the first column, its text indented."""
    text = gzip.open(path).read().decode("utf8", "ignore")
    found = []
    for block in re.split(r"\n(?=\S)", text):
        head, _, rest = block.partition("\n")
        body = plain(re.sub(r"[{}\\]|\[.*?\]|\(\d{4}-\d\d-\d\d\)|^\s*<[^>]*>", "", rest))
        if 12 <= len(body.split()) and 0 < len(head.split()) <= 5:
            found.append((head.strip(), first_words(body, 60)))
    random.shuffle(found)
    return found[:most]


def write(folder: Path, source: str, pairs):
    with open(folder / f"{source}.jsonl", "w") as file:
        for query, text in pairs:
            file.write(json.dumps({"query": query, "text": text}, ensure_ascii=False) + "\n")
    print(source, len(pairs), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--debs", type=Path, required=True)
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--most", type=int, default=2500, help="pairs per documentation source")
    args = parser.parse_args()
    random.seed(17)
    args.out.mkdir(parents=True, exist_ok=True)
    meanings, uses = wordnet_pairs(args.wordnet, 16000)
    write(args.out, "wordnet", meanings)
    write(args.out, "wordnet-uses", uses)
    write(args.out, "packages", package_pairs(8000))
    foldoc = args.debs / "dict-foldoc/usr/share/dictd/foldoc.dict.dz"
    write(args.out, "foldoc", dictionary_pairs(foldoc, 3000))
    for source, (package, pattern) in TRAIN_HTML.items():
        write(args.out, source, html_pairs(args.debs / package, pattern, args.most))


if __name__ == "__main__":
    main()
