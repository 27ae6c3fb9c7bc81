"""Reads documentation pages: headings with the text that follows them."""

import html
import re

BLOCK = re.compile(
    r"<(h[1-5]|p|li|dd|dt)\b[^>]*>(.*?)(?=<(?:h[1-5]|p|li|dd|dt|pre|table|/body)\b)", re.S)
LISTED = re.compile(r"\b\d+\.\d+\.|Table of Contents")
NUMBER = re.compile(r"^\s*(?:chapter|section|appendix)?\s*(?:[A-Z]\.|\d+\.)?[\d.]*\s+", re.I)


def plain(markup: str) -> str:
    """The text of a piece of HTML or XML on one line."""
    text = re.sub(r"<(script|style|pre)\b.*?</\1>", " ", markup, flags=re.S)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    text = re.sub(r"\s+", " ", text.replace("¶", "").replace("\u00ad", ""))
    return re.sub(r"\s+([.,;:!?)])", r"\1", text).strip()


def first_words(text: str, count: int) -> str:
    """At most `count` words, ended at a sentence where there is one in the second half."""
    words = text.split()
    if len(words) <= count:
        return text
    cut = " ".join(words[:count])
    end = cut.rfind(". ")
    return cut[: end + 1] if end > len(cut) // 2 else cut


def sections(page: str, most_words: int = 90):
    """(heading, text below it) of an HTML page."""
    body = re.sub(r"<(script|style|nav|header|footer)\b.*?</\1>", " ", page, flags=re.S)
    heading, parts = None, []
    for tag, content in [*BLOCK.findall(body + "<p>"), ("h1", "")]:
        if tag[0] != "h":
            parts.append(plain(content))
            continue
        text = " ".join(part for part in parts if part)
        if heading and len(text.split()) >= 12 and len(LISTED.findall(text)) < 2:
            yield heading, first_words(text, most_words)
        heading, parts = NUMBER.sub("", " " + plain(content)).strip(), []
