"""Builds the collections that are only evaluated on, whole packages that no training reads.

    python held_out.py --debs FOLDER --written-eval FILE --encoder FOLDER --out OUT/eval

perlfaq (questions of perl-doc) and gnome-help (topics of gnome-user-docs): a query's candidates are
its own passage and the best others by BM25 and by the bi-encoder in turn, 20 together, for 120
queries of each. written-eval: everyday questions with graded passages of their own. Lines are
{"query", "passages": [{text, grade}]}, in an order that says nothing.
"""

import argparse
import json
import random
import re
from pathlib import Path

import numpy as np

from common import Bm25, embed, load_encoder, read_lines
from html_text import first_words, plain


def perlfaq(folder: Path):
    """(question, answer) of perlfaq1 to perlfaq9."""
    for path in sorted(folder.glob("**/perlfaq[1-9].pod")):
        for part in re.split(r"^=head2 ", path.read_text("utf8"), flags=re.M)[1:]:
            question, _, answer = part.partition("\n")
            answer = re.split(r"^=head1", answer, flags=re.M)[0]
            answer = re.sub(r"^([ \t].*|=\w+.*)$", " ", answer, flags=re.M)
            answer = re.sub(r"[A-Z]<+\s*([^<>]*?)\s*>+", r"\1", answer)
            answer = re.sub(r"\((contributed|thanks)[^)]*\)", " ", answer)
            yield re.sub(r"[A-Z]<([^<>]*)>", r"\1", question).strip(), plain(answer)


def gnome_help(folder: Path):
    """(title, text) of the topics of GNOME's help."""
    for path in sorted(folder.glob("**/C/gnome-help/*.page")):
        page = path.read_text("utf8")
        title = re.search(r"</info>\s*<title>(.*?)</title>", page, re.S)
        text = re.sub(r"<info>.*?</info>", " ", page, flags=re.S)
        if title:
            yield plain(title[1]), plain(text.replace(title[0][-len(title[1]) - 15 :], " "))


def with_candidates(pairs: list, model, tokenizer, most=20, queries=120):
    """Every query with its own passage and the nearest others, by words and meaning in turn."""
    texts = [text for _, text in pairs]
    bm25 = Bm25(texts)
    vectors = embed(model, tokenizer, texts)
    asked = embed(model, tokenizer, [query for query, _ in pairs])
    for index in random.sample(range(len(pairs)), min(queries, len(pairs))):
        query = pairs[index][0]
        words = np.argsort(-bm25.scores(query)).tolist()
        meaning = np.argsort(-(vectors @ asked[index])).tolist()
        mixed = [i for both in zip(words, meaning) for i in both if i != index]
        chosen = [index, *list(dict.fromkeys(mixed))[: most - 1]]
        random.shuffle(chosen)
        passages = [{"text": texts[i], "grade": 3 * (i == index)} for i in chosen]
        yield {"query": query, "passages": passages}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--debs", type=Path, required=True)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--written-eval", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    random.seed(17)
    args.out.mkdir(parents=True, exist_ok=True)
    model, tokenizer = load_encoder(args.encoder)
    found = {"perlfaq": perlfaq(args.debs / "perl-doc"),
             "gnome-help": gnome_help(args.debs / "gnome-user-docs")}
    collections = {}
    for name, pairs in found.items():
        pairs = [(q, first_words(t, 120)) for q, t in pairs if len(t.split()) >= 15]
        collections[name] = list(with_candidates(pairs, model, tokenizer))
    if args.written_eval:
        collections["written-eval"] = read_lines(args.written_eval)
    for name, items in collections.items():
        lines = [json.dumps(item, ensure_ascii=False) + "\n" for item in items]
        (args.out / f"{name}.jsonl").write_text("".join(lines))
        print(name, len(items), flush=True)


if __name__ == "__main__":
    main()
