"""Writes PDFs that are broken, encrypted, scanned or hostile into OUT.

    python3 hostile.py FOLDER OUT [--broken 300]

FOLDER has sound PDFs, which are mutated, encrypted and scanned; qpdf and pdftoppm must be
installed. The same arguments write the same files. Each file lies in a folder named by what is to
be expected of it: broken (no promise but that it ends), encrypted (refused), owner-locked (read),
scanned (no text), hostile (ends within bounds), blank, sound.
"""

import argparse
import random
import subprocess
import tempfile
import zlib
from pathlib import Path

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def pdf(objects, root=1, extra=b""):
    """A file of numbered objects (bytes) with a sound table of references."""
    out, offsets = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), {}
    for number, body in objects.items():
        offsets[number] = len(out)
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        if number in offsets:
            out += b"%010d 00000 n \n" % offsets[number]
        else:
            out += b"0000000000 65535 f \n"
    out += b"trailer\n<< /Size %d /Root %d 0 R %s >>\n" % (size, root, extra)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def stream(data, entries=b""):
    return b"<< /Length %d %s >>\nstream\n" % (len(data), entries) + data + b"\nendstream"


def flate(data, entries=b""):
    return stream(zlib.compress(data, 9), b"/Filter /FlateDecode " + entries)


def shown(text):
    return b"BT /F1 12 Tf 72 720 Td (" + text + b") Tj ET"


def page(contents, resources=b"/Font << /F1 4 0 R >>"):
    """A document of one page: 1 catalogue, 2 pages, 3 page, 4 font, 5 contents."""
    return {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
        b"/Resources << " + resources + b" >> >>",
        4: FONT,
        5: contents,
    }


def zeros(megabytes, wrap=1):
    """So many megabytes of spaces, compressed so many times over, piece by piece."""
    deflate, out = zlib.compressobj(9), bytearray()
    block = b" " * (1 << 20)
    for _ in range(megabytes):
        out += deflate.compress(block)
    data = bytes(out + deflate.flush())
    for _ in range(wrap - 1):
        data = zlib.compress(data, 9)
    return stream(data, b"/Filter [" + b"/FlateDecode " * wrap + b"] ")


def many_pages(count, text):
    """Flat: one content stream, so many page objects."""
    objects = {1: b"<< /Type /Catalog /Pages 2 0 R >>", 3: FONT, 4: flate(shown(text))}
    kids = []
    for i in range(count):
        objects[5 + i] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        kids.append(b"%d 0 R" % (5 + i))
    objects[2] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (count, b" ".join(kids))
    return pdf(objects)


def tree_bomb(depth, width=10):
    """width ** depth pages from depth nodes, each of which names its child width times."""
    objects = {1: b"<< /Type /Catalog /Pages 2 0 R >>"}
    for level in range(depth):
        child = b"%d 0 R " % (3 + level)
        objects[2 + level] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (
            width ** (depth - level),
            child * width,
        )
    leaf = 2 + depth
    objects[leaf] = (
        b"<< /Type /Page /MediaBox [0 0 612 792] /Contents %d 0 R "
        b"/Resources << /Font << /F1 %d 0 R >> >> >>" % (leaf + 1, leaf + 2)
    )
    objects[leaf + 1] = flate(shown(b"one of very many pages"))
    objects[leaf + 2] = FONT
    return pdf(objects)


def laughs(depth, width=10):
    """Forms that draw the next form width times: width ** depth texts."""
    objects = page(flate(b"/X0 Do"), b"/Font << /F1 4 0 R >> /XObject << /X0 6 0 R >>")
    for level in range(depth):
        last = level == depth - 1
        body = shown(b"ha ") if last else b"/X Do " * width
        objects[6 + level] = flate(
            body,
            b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << "
            b"/Font << /F1 4 0 R >> /XObject << /X %d 0 R >> >>" % (7 + level),
        )
    return pdf(objects)


def unicode_map(ranges):
    """A font whose map to Unicode has so many ranges of 65,536 codes."""
    body = b"/CIDInit /ProcSet findresource begin begincmap\n1 begincodespacerange <0000> <ffff> "
    body += b"endcodespacerange\n"
    body += (b"1 beginbfrange <0000> <ffff> <0041> endbfrange\n") * ranges + b"endcmap end"
    objects = page(flate(b"BT /F1 12 Tf 72 720 Td <00410042> Tj ET"))
    objects[4] = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H "
        b"/DescendantFonts [6 0 R] /ToUnicode 7 0 R >>"
    )
    objects[6] = (
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X "
        b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
    )
    objects[7] = flate(body)
    return pdf(objects)


def previous_loop():
    whole = pdf(page(flate(shown(b"a table of references that names itself"))))
    at = whole.rindex(b"startxref\n") + len(b"startxref\n")
    start = whole[at:].split(b"\n")[0]
    return whole.replace(b"/Size 6", b"/Size 6 /Prev " + start)


def hostile():
    text = b"The quick brown fox jumps over the lazy dog. " * 20
    yield "stream-1-gb.pdf", pdf(page(zeros(1024)))
    yield "stream-4-gb-twice-compressed.pdf", pdf(page(zeros(4096, 2)))
    yield "text-200-mb.pdf", pdf(page(flate((shown(text) + b"\n") * 200_000)))
    yield "pages-tree-bomb-10-to-9.pdf", tree_bomb(9)
    yield "pages-tree-bomb-10-to-5.pdf", tree_bomb(5)
    yield "pages-30000.pdf", many_pages(30_000, b"the same line on each page")
    yield "forms-10-to-9.pdf", laughs(9)
    yield "forms-10-to-5.pdf", laughs(5)
    yield "form-draws-itself.pdf", pdf(
        page(flate(b"/X0 Do"), b"/XObject << /X0 6 0 R >>")
        | {6: flate(shown(b"me") + b" /X0 Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] "
                    b"/Resources << /Font << /F1 4 0 R >> /XObject << /X0 6 0 R >> >>")})
    yield "pages-loop.pdf", pdf({
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        3: b"<< /Type /Pages /Count 1 /Parent 2 0 R /Kids [2 0 R] >>"})
    yield "references-loop.pdf", previous_loop()
    yield "length-loop.pdf", pdf(page(b"<< /Length 5 0 R >>\nstream\n" + shown(text)
                                      + b"\nendstream"))
    yield "length-huge.pdf", pdf(page(b"<< /Length 99999999999 >>\nstream\n" + shown(text)
                                      + b"\nendstream"))
    yield "nested-arrays.pdf", pdf(page(flate(b"[" * 2_000_000)))
    yield "nested-arrays-object.pdf", pdf(page(flate(shown(text))) | {6: b"[" * 1_000_000},
                                          extra=b"/Info 6 0 R")
    yield "nested-dictionaries.pdf", pdf(page(flate(shown(text)))
                                         | {6: b"<</A" * 500_000}, extra=b"/Info 6 0 R")
    yield "saved-states-10-million.pdf", pdf(page(flate(b"q " * 10_000_000 + shown(text))))
    yield "fonts-set-5-million.pdf", pdf(page(flate(b"BT " + b"/F1 1 Tf " * 5_000_000
                                                    + b"(x) Tj ET")))
    yield "paths-5-million.pdf", pdf(page(flate(b"0 0 m 1 1 l S " * 5_000_000)))
    yield "unicode-map-4000-ranges.pdf", unicode_map(4000)
    yield "widths-3-million.pdf", pdf(page(flate(shown(text))) | {
        4: b"<< /Type /Font /Subtype /TrueType /BaseFont /Helvetica /FirstChar 0 /LastChar 255 "
        b"/Widths [" + b"500 " * 3_000_000 + b"] >>"})
    yield "image-100000-by-100000.pdf", pdf(
        page(flate(b"q 600 0 0 700 0 0 cm /I Do Q " + shown(text)),
             b"/Font << /F1 4 0 R >> /XObject << /I 6 0 R >>")
        | {6: flate(b"\0" * 1000, b"/Type /XObject /Subtype /Image /Width 100000 /Height 100000 "
                    b"/ColorSpace /DeviceRGB /BitsPerComponent 8")})
    yield "predictor-huge-columns.pdf", pdf(page(flate(
        b"\2" + b" " * 1000, b"/DecodeParms << /Predictor 12 /Columns 2000000000 >>")))
    yield "inline-image-endless.pdf", pdf(page(flate(b"BI /W 9 /H 9 ID " + b"x" * 30_000_000)))
    yield "string-endless.pdf", pdf(page(flate(b"BT /F1 9 Tf (" + b"(" * 20_000_000)))
    yield "one-word-20-mb.pdf", pdf(page(flate(shown(b"a" * 20_000_000))))
    yield "kerning-2-million.pdf", pdf(page(flate(b"BT /F1 12 Tf [" + b"(a) -300 " * 2_000_000
                                                  + b"] TJ ET")))
    yield "comment-50-mb.pdf", pdf(page(flate(shown(text)))) + b"%" + b"x" * 50_000_000


def small():
    """Files of a few bytes that most readers refuse."""
    sound = pdf(page(flate(shown(b"A line of text."))))
    yield "empty.pdf", b""
    yield "header-only.pdf", b"%PDF-1.7\n"
    yield "web-page.pdf", b"<!doctype html><title>404</title><p>Not found"
    yield "zeros.pdf", bytes(100_000)
    yield "header-then-zeros.pdf", b"%PDF-1.7\n" + bytes(100_000)
    yield "no-pages.pdf", pdf({1: b"<< /Type /Catalog /Pages 2 0 R >>",
                               2: b"<< /Type /Pages /Kids [] /Count 0 >>"})
    yield "no-catalogue.pdf", pdf({1: b"<< /Type /Nothing >>"})
    yield "count-negative.pdf", sound.replace(b"/Count 1", b"/Count -1")
    yield "count-huge.pdf", sound.replace(b"/Count 1", b"/Count 2147483647")
    yield "no-references.pdf", sound[: sound.rindex(b"xref\n0")]
    yield "start-nowhere.pdf", sound.replace(b"startxref\n", b"startxref\n9")
    yield "page-is-number.pdf", sound.replace(b"3 0 obj\n<<", b"3 0 obj\n7 %")


def mutate(data, random_):
    """Damage of one kind to a copy of data."""
    data = bytearray(data)
    at = random_.randrange(len(data))
    kind = random_.choice(["cut", "flip", "zero", "drop", "swap", "numbers", "tail", "repeat"])
    if kind == "cut":
        del data[at:]
    elif kind == "flip":
        for _ in range(random_.choice([1, 20, 1000])):
            data[random_.randrange(len(data))] = random_.randrange(256)
    elif kind == "zero":
        end = min(len(data), at + random_.choice([16, 1024, 65536]))
        data[at:end] = bytes(end - at)
    elif kind == "drop":
        del data[at : at + random_.choice([1, 500, 20_000])]
    elif kind == "swap":
        half = len(data) // 2
        data = data[half:] + data[:half]
    elif kind == "numbers":
        for i in range(max(0, len(data) - 3000), len(data)):
            if 48 <= data[i] < 58 and random_.random() < 0.2:
                data[i] = 48 + random_.randrange(10)
    elif kind == "tail":
        del data[: min(len(data) - 1, random_.choice([5, 1024, 50_000]))]
    else:
        part = data[at : at + 50_000]
        data[at:at] = part * random_.choice([2, 50])
    return kind, bytes(data)


def scan(path, out):
    """Page 1 as a picture, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["pdftoppm", "-jpeg", "-r", "60", "-l", "1", "-singlefile", str(path),
                        f"{folder}/p"], check=True, capture_output=True, timeout=60)
        picture = Path(folder, "p.jpg").read_bytes()
    # The size stands in the JPEG's frame header.
    at = next(i for i in range(2, len(picture)) if picture[i] == 0xFF
              and picture[i + 1] in (0xC0, 0xC2))
    high, wide = (int.from_bytes(picture[at + n : at + n + 2], "big") for n in (5, 7))
    image = stream(picture, b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace "
                   b"/DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode" % (wide, high))
    out.write_bytes(pdf(page(flate(b"q 612 0 0 792 0 0 cm /I Do Q"), b"/XObject << /I 6 0 R >>")
                        | {6: image}))


def lock(path, out, bits, user):
    options = {"40": ["--allow-weak-crypto"], "128": ["--allow-weak-crypto"], "256": []}[bits]
    aes = ["--use-aes=y"] if bits == "128" else []
    subprocess.run(["qpdf", *options, "--encrypt", user, "owner", bits, *aes, "--", str(path),
                    str(out)], capture_output=True, timeout=60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--broken", type=int, default=300)
    args = parser.parse_args()
    random_ = random.Random(18)
    sound = [path for path in sorted(args.folder.rglob("*.pdf"))
             if 5_000 < path.stat().st_size < 2_000_000 and args.out not in path.parents]
    folder = {name: args.out / name for name in
              ["broken", "hostile", "encrypted", "owner-locked", "scanned", "blank", "sound"]}
    for path in folder.values():
        path.mkdir(parents=True, exist_ok=True)
    for name, data in hostile():
        (folder["hostile"] / name).write_bytes(data)
    for name, data in small():
        (folder["broken"] / name).write_bytes(data)
    (folder["blank"] / "blank.pdf").write_bytes(pdf(page(flate(b""))))
    (folder["blank"] / "blank-50-pages.pdf").write_bytes(many_pages(50, b""))
    (folder["sound"] / "pages-2000.pdf").write_bytes(
        many_pages(2000, b"A line of some words that stands on each of the pages."))
    for i in range(args.broken):
        kind, data = mutate(random_.choice(sound).read_bytes(), random_)
        (folder["broken"] / f"{i:03}-{kind}.pdf").write_bytes(data)
    for i, path in enumerate(random_.sample(sound, 30)):
        lock(path, folder["encrypted"] / f"{i:02}.pdf", ["40", "128", "256"][i % 3], "secret")
    for i, path in enumerate(random_.sample(sound, 15)):
        lock(path, folder["owner-locked"] / f"{i:02}.pdf", ["40", "128", "256"][i % 3], "")
    for i, path in enumerate(random_.sample(sound, 40)):
        try:
            scan(path, folder["scanned"] / f"{i:02}.pdf")
        except (subprocess.SubprocessError, OSError, StopIteration):
            pass


if __name__ == "__main__":
    main()
