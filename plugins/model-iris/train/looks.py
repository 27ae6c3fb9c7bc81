"""Restyled pictures that the LoRAs learn: `dark` (night, rim light) and `anime` (ink, cel shading)."""

import functools
import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from recolour import from_lab, to_lab


def filtered(values, image_filter):
    """A PIL filter over a plane of bytes, as floats between 0 and 1."""
    return np.asarray(Image.fromarray(values).filter(image_filter), np.float32) / 255


@functools.lru_cache(32)
def night(width, height):
    """Deep blue with a violet glow in the middle."""
    y, x = np.mgrid[0:height, 0:width]
    far = np.hypot((x + 0.5) / width - 0.5, (y + 0.5) / height - 0.5)
    glow = np.exp(-((far / 0.33) ** 2))[..., None]
    return np.array([16, 16, 36]) * (1 - glow) + np.array([64, 48, 118]) * glow


class Dark:
    """Night palette: things darker and cooler with a lit rim, a glow behind them."""

    def sprite(self, rgba):
        lab = to_lab(rgba[..., :3])
        lab[..., 0] = 0.08 + 0.62 * lab[..., 0]
        lab[..., 1:] *= 1.15
        lab[..., 2] -= 0.035
        color = from_lab(lab).astype(np.float32)
        inside = filtered(rgba[..., 3], ImageFilter.GaussianBlur(4))
        shifted = np.roll(inside, (3, 3), (0, 1))
        rim = np.clip((rgba[..., 3] / 255) * (1 - shifted) * 1.3 - 0.25, 0, 1)[..., None]
        lit = color * (1 - rim) + np.array([120, 220, 255]) * rim
        return np.concatenate([lit.astype(np.uint8), rgba[..., 3:]], -1)

    def back(self, picture, name):
        height, width = picture.shape[:2]
        if name is None:
            return night(width, height).astype(np.float32)
        return picture * np.array([0.34, 0.36, 0.5], np.float32) + np.array([4, 4, 16], np.float32)


@functools.lru_cache(32)
def rays(width, height):
    """Lines that run from the middle outwards, pale on pale."""
    page = Image.new("RGB", (4 * width, 4 * height), (255, 236, 244))
    pen = ImageDraw.Draw(page)
    cx, cy, far = 2 * width, 2 * height, 4 * max(width, height)
    for k in range(24):
        a, b = math.tau * k / 24, math.tau * (k + 0.5) / 24
        ends = [(cx + far * math.cos(angle), cy + far * math.sin(angle)) for angle in (a, b)]
        pen.polygon([(cx, cy), *ends], fill=(206, 232, 255))
    return np.asarray(page.resize((width, height), Image.Resampling.BOX), np.float32)


class Anime:
    """Ink about the outlines, few tones, strong colours, rays behind."""

    def tones(self, rgb):
        lab = to_lab(rgb)
        steps = np.array([0.24, 0.46, 0.66, 0.84, 0.97], np.float32)
        nearest = np.abs(lab[..., :1] - steps).argmin(-1)
        lab[..., 0] = 0.25 * lab[..., 0] + 0.75 * steps[nearest]
        lab[..., 1:] *= 1.35
        return from_lab(lab)

    def sprite(self, rgba):
        alpha = rgba[..., 3]
        core = filtered(np.pad(alpha, 4), ImageFilter.MinFilter(7))[4:-4, 4:-4]
        gray = (rgba[..., :3].mean(-1)).astype(np.uint8)
        soft = Image.fromarray(gray).filter(ImageFilter.GaussianBlur(1))
        high = np.asarray(soft.filter(ImageFilter.MaxFilter(3)), np.float32)
        low = np.asarray(soft.filter(ImageFilter.MinFilter(3)), np.float32)
        ink = np.maximum(1 - core, np.clip((high - low - 26) / 30, 0, 1))[..., None]
        color = self.tones(rgba[..., :3]) * (1 - ink) + np.array([34, 22, 52]) * ink
        return np.concatenate([color.astype(np.uint8), rgba[..., 3:]], -1)

    def back(self, picture, name):
        height, width = picture.shape[:2]
        if name is None:
            return rays(width, height).copy()
        return self.tones(picture.astype(np.uint8)).astype(np.float32)


LOOKS = {"dark": Dark(), "anime": Anime()}
