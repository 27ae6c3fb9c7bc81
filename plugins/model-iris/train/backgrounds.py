"""Simple drawn places: each is drawn once per canvas size, so that its words mean one picture."""

import functools
import math
import random

import numpy as np
from PIL import Image, ImageDraw

# name: (English phrases, Indonesian phrases, whether things stand on a ground)
PLACES = {
    "snow": (["in the snow", "in a snowy landscape"], ["di salju", "di tengah salju"], True),
    "night": (["at night", "under the night sky"], ["di malam hari", "di bawah langit malam"], True),
    "beach": (["on a beach", "at the beach"], ["di pantai", "di tepi pantai"], True),
    "meadow": (["on the grass", "in a meadow"], ["di padang rumput", "di atas rumput"], True),
    "rainbow": (["under a rainbow", "with a rainbow"], ["di bawah pelangi", "dengan pelangi"], True),
    "sunset": (["at sunset", "in front of a sunset"], ["saat matahari terbenam"], True),
    "desert": (["in the desert", "in a desert"], ["di gurun", "di padang pasir"], True),
    "water": (["under water", "in the sea"], ["di bawah air", "di dalam laut"], False),
    "space": (["in space", "in outer space"], ["di luar angkasa", "di ruang angkasa"], False),
    "rain": (["in the rain", "on a rainy day"], ["saat hujan", "di tengah hujan"], True),
    "forest": (["in a forest", "in the woods"], ["di hutan", "di dalam hutan"], True),
    "city": (["in the city", "in front of a city"], ["di kota", "di tengah kota"], True),
    "mountains": (["in the mountains", "in front of mountains"], ["di pegunungan"], True),
    "room": (["in a room", "indoors"], ["di dalam kamar", "di dalam ruangan"], True),
    "sky": (["in the sky", "in front of a blue sky"], ["di langit", "di langit biru"], False),
}
GROUND = 0.7


def slope(width, height, top, bottom):
    """A picture that goes from one colour at the top to another at the bottom."""
    mix = np.linspace(0, 1, height)[:, None, None]
    rows = np.array(top) * (1 - mix) + np.array(bottom) * mix
    return Image.fromarray(np.broadcast_to(rows, (height, width, 3)).astype(np.uint8))


def hill(pen, width, height, level, swing, phase, colour):
    """Everything below a wavy line."""
    line = [
        (x, height * level + height * swing * math.sin(x / width * math.tau * 0.8 + phase))
        for x in range(0, width + 9, 8)
    ]
    pen.polygon([*line, (width, height), (0, height)], fill=colour)


def dots(pen, width, height, count, radius, colour, low=0.0, high=1.0):
    dice = random.Random(4)
    for _ in range(count):
        x, y = dice.random() * width, (low + dice.random() * (high - low)) * height
        r = radius * dice.uniform(0.6, 1.3) * min(width, height)
        pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)


def disc(pen, x, y, radius, colour):
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


def snow(w, h):
    image = slope(w, h, (176, 214, 244), (226, 240, 252))
    pen = ImageDraw.Draw(image)
    hill(pen, w, h, 0.66, 0.03, 0, (222, 234, 248))
    hill(pen, w, h, 0.76, 0.03, 2, (250, 252, 255))
    dots(pen, w, h, 40, 0.011, (255, 255, 255), 0, 0.7)
    return image


def night(w, h):
    image = slope(w, h, (18, 22, 62), (58, 62, 126))
    pen = ImageDraw.Draw(image)
    dots(pen, w, h, 36, 0.007, (255, 248, 214), 0, 0.65)
    disc(pen, 0.84 * w, 0.15 * h, 0.085 * min(w, h), (255, 240, 190))
    hill(pen, w, h, 0.78, 0.03, 1, (32, 52, 74))
    return image


def beach(w, h):
    image = slope(w, h, (134, 206, 250), (214, 240, 254))
    pen = ImageDraw.Draw(image)
    disc(pen, 0.84 * w, 0.14 * h, 0.085 * min(w, h), (255, 222, 90))
    pen.rectangle((0, 0.46 * h, w, h), fill=(46, 150, 216))
    hill(pen, w, h, 0.665, 0.015, 0, (190, 230, 244))
    hill(pen, w, h, 0.69, 0.015, 0, (244, 218, 164))
    return image


def meadow(w, h):
    image = slope(w, h, (146, 210, 250), (224, 244, 254))
    pen = ImageDraw.Draw(image)
    hill(pen, w, h, 0.62, 0.04, 0, (146, 206, 108))
    hill(pen, w, h, 0.72, 0.03, 2.4, (112, 188, 82))
    return image


def rainbow(w, h):
    image = meadow(w, h)
    pen = ImageDraw.Draw(image)
    bands = [(228, 60, 60), (246, 146, 46), (250, 214, 70), (80, 184, 92), (64, 124, 226), (140, 82, 196)]
    radius, thick = 0.47 * w, 0.032 * w
    for index, colour in enumerate(bands):
        r = radius - index * thick
        box = (w / 2 - r, 0.62 * h - r * h / w, w / 2 + r, 0.62 * h + r * h / w)
        pen.arc(box, 180, 360, fill=colour, width=math.ceil(thick + 1))
    hill(pen, w, h, 0.62, 0.04, 0, (146, 206, 108))
    hill(pen, w, h, 0.72, 0.03, 2.4, (112, 188, 82))
    return image


def sunset(w, h):
    image = slope(w, h, (122, 74, 150), (255, 176, 92))
    pen = ImageDraw.Draw(image)
    disc(pen, 0.5 * w, 0.6 * h, 0.22 * min(w, h), (255, 224, 120))
    hill(pen, w, h, 0.7, 0.015, 0.5, (98, 58, 92))
    return image


def desert(w, h):
    image = slope(w, h, (128, 200, 244), (250, 236, 200))
    pen = ImageDraw.Draw(image)
    disc(pen, 0.84 * w, 0.14 * h, 0.09 * min(w, h), (255, 214, 70))
    hill(pen, w, h, 0.62, 0.06, 0, (232, 186, 112))
    hill(pen, w, h, 0.74, 0.04, 2.4, (218, 164, 88))
    return image


def water(w, h):
    image = slope(w, h, (64, 176, 228), (14, 62, 138))
    pen = ImageDraw.Draw(image)
    dots(pen, w, h, 16, 0.018, (150, 214, 244), 0.1, 0.9)
    hill(pen, w, h, 0.9, 0.02, 0, (206, 188, 132))
    return image


def space(w, h):
    image = slope(w, h, (14, 10, 38), (42, 24, 84))
    pen = ImageDraw.Draw(image)
    dots(pen, w, h, 60, 0.007, (255, 255, 240))
    disc(pen, 0.15 * w, 0.15 * h, 0.075 * min(w, h), (232, 150, 104))
    return image


def rain(w, h):
    image = slope(w, h, (128, 146, 168), (188, 202, 216))
    pen = ImageDraw.Draw(image)
    dice = random.Random(3)
    for _ in range(44):
        x, y = dice.random() * w, dice.random() * h * 0.8
        pen.line((x, y, x - 0.02 * w, y + 0.07 * h), fill=(84, 136, 206), width=math.ceil(w / 110))
    hill(pen, w, h, 0.76, 0.015, 0, (112, 142, 122))
    return image


def forest(w, h):
    image = slope(w, h, (176, 222, 214), (222, 244, 222))
    pen = ImageDraw.Draw(image)
    for level, colour, step, shift in ((0.12, (98, 168, 118), 5, 0.0), (0.26, (58, 132, 84), 4, 0.5)):
        for k in range(-1, step + 2):
            x, half = (k + shift) * w / step, 0.62 * w / step
            top = h * level
            pen.polygon([(x, top), (x - half, 0.76 * h), (x + half, 0.76 * h)], fill=colour)
    hill(pen, w, h, 0.72, 0.015, 0, (122, 182, 92))
    return image


def city(w, h):
    image = slope(w, h, (150, 206, 246), (230, 242, 252))
    pen = ImageDraw.Draw(image)
    dice = random.Random(8)
    tones = [(140, 158, 186), (168, 182, 204), (120, 138, 168)]
    for k in range(7):
        left, top = k * w / 7, h * dice.uniform(0.14, 0.42)
        pen.rectangle((left, top, left + w / 7 - w / 60, 0.76 * h), fill=tones[k % 3])
        for row in range(6):
            for column in range(2):
                x, y = left + w * (0.03 + 0.05 * column), top + h * (0.04 + 0.075 * row)
                pen.rectangle((x, y, x + 0.024 * w, y + 0.035 * h), fill=(255, 240, 180))
    pen.rectangle((0, 0.74 * h, w, h), fill=(150, 154, 164))
    return image


def mountains(w, h):
    image = slope(w, h, (134, 202, 248), (226, 242, 252))
    pen = ImageDraw.Draw(image)
    for x, top, colour in ((0.25, 0.16, (132, 148, 176)), (0.76, 0.24, (112, 130, 160))):
        pen.polygon([(x * w, top * h), ((x - 0.42) * w, 0.78 * h), ((x + 0.42) * w, 0.78 * h)], fill=colour)
        cap = [(x * w, top * h), ((x - 0.1) * w, (top + 0.148) * h), ((x + 0.1) * w, (top + 0.148) * h)]
        pen.polygon(cap, fill=(255, 255, 255))
    hill(pen, w, h, 0.72, 0.02, 1, (124, 190, 96))
    return image


def room(w, h):
    image = Image.new("RGB", (w, h), (246, 226, 196))
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, GROUND * h, w, h), fill=(190, 136, 92))
    pen.rectangle((0, GROUND * h, w, (GROUND + 0.02) * h), fill=(255, 250, 240))
    frame = (0.64 * w, 0.1 * h, 0.92 * w, 0.4 * h)
    pen.rectangle(frame, fill=(150, 212, 246), outline=(255, 255, 255), width=math.ceil(w / 40))
    pen.line((0.78 * w, 0.1 * h, 0.78 * w, 0.4 * h), fill=(255, 255, 255), width=math.ceil(w / 60))
    return image


def sky(w, h):
    image = slope(w, h, (94, 178, 244), (198, 232, 254))
    pen = ImageDraw.Draw(image)
    for x, y, size in ((0.16, 0.16, 0.06), (0.82, 0.3, 0.07), (0.24, 0.86, 0.07)):
        for dx, dy, r in ((-1.1, 0.2, 0.8), (0, -0.2, 1.1), (1.1, 0.2, 0.8)):
            disc(pen, (x + dx * size) * w, y * h + dy * size * w, r * size * w, (255, 255, 255))
    return image


@functools.lru_cache(64)
def place(name, width, height):
    """The place as `[height, width, 3]` of bytes, smooth at its edges."""
    drawn = globals()[name](4 * width, 4 * height)
    return np.asarray(drawn.resize((width, height), Image.Resampling.BOX))
