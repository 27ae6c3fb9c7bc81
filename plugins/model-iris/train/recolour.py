"""Which colour a picture has, and the same picture in another colour (in OKLab)."""

import numpy as np

PALETTE = {
    "red": (222, 38, 44),
    "orange": (247, 128, 28),
    "yellow": (252, 212, 44),
    "green": (52, 168, 78),
    "blue": (42, 102, 222),
    "purple": (136, 66, 192),
    "pink": (246, 120, 180),
    "brown": (132, 82, 46),
    "black": (44, 42, 48),
    "white": (240, 240, 244),
    "gray": (140, 142, 148),
    "turquoise": (40, 188, 190),
}
INDONESIAN = {
    "red": "merah",
    "orange": "oranye",
    "yellow": "kuning",
    "green": "hijau",
    "blue": "biru",
    "purple": "ungu",
    "pink": "merah muda",
    "brown": "cokelat",
    "black": "hitam",
    "white": "putih",
    "gray": "abu-abu",
    "turquoise": "toska",
}
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    np.float32,
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ],
    np.float32,
)
FROM_LAB, FROM_LMS = np.linalg.inv(TO_LAB), np.linalg.inv(TO_LMS)
LINEAR = (np.arange(256, dtype=np.float32) / 255) ** 2.2


def to_lab(rgb):
    """8-bit RGB `[..., 3]` to OKLab."""
    return np.cbrt(LINEAR[rgb] @ TO_LMS.T) @ TO_LAB.T


def from_lab(lab):
    linear = ((lab @ FROM_LAB.T) ** 3) @ FROM_LMS.T
    return (np.clip(linear, 0, 1) ** (1 / 2.2) * 255 + 0.5).astype(np.uint8)


LABS = {name: to_lab(np.array(rgb, np.uint8)) for name, rgb in PALETTE.items()}
PLAIN = ("black", "white", "gray")


def nearest(lab):
    """The name of a colour: gray ones by lightness, others by hue, brown as dark orange."""
    light, a, b = lab
    chroma = np.hypot(a, b)
    if chroma < 0.035:
        return "black" if light < 0.42 else "white" if light > 0.86 else "gray"
    if light < 0.3:
        return "black"
    hue = np.degrees(np.arctan2(b, a)) % 360
    if 40 < hue < 95 and light < 0.62:
        return "brown"
    hues = {n: np.degrees(np.arctan2(v[2], v[1])) % 360 for n, v in LABS.items()}
    names = [name for name in LABS if name not in (*PLAIN, "brown")]
    return min(names, key=lambda name: abs((hue - hues[name] + 180) % 360 - 180))


def dominant(rgba):
    """(mask `[H, W]`, mean OKLab, share of the picture) of the main colour of a sprite, or None."""
    solid = rgba[..., 3] > 128
    if solid.sum() < 64:
        return None
    lab = to_lab(rgba[..., :3])
    chroma = np.hypot(lab[..., 1], lab[..., 2])
    vivid = solid & (chroma > 0.05)
    hue = np.degrees(np.arctan2(lab[..., 2], lab[..., 1])) % 360
    counts = np.bincount((hue[vivid] / 10).astype(int) % 36, minlength=36)
    windows = sum(np.roll(counts, shift) for shift in range(-3, 4))
    best = int(windows.argmax())
    share = windows[best] / solid.sum()
    if share > 0.4:
        mask = (chroma > 0.03) & (np.abs((hue - best * 10 - 5 + 180) % 360 - 180) < 42)
    else:
        mask = chroma < 0.05
        share = (mask & solid).sum() / solid.sum()
    chosen = mask & solid
    return mask, lab[chosen].mean(0) if chosen.any() else None, float(share), lab


def recoloured(rgba, colour):
    """The sprite with its main colour turned into a named one; shading and other colours stay."""
    found = dominant(rgba)
    mask, mean, _, lab = found
    goal = LABS[colour]
    light = lab[..., 0] - mean[0]
    spread = np.clip(light[mask & (rgba[..., 3] > 128)].std(), 0.02, 1)
    scale = min(1.0, 0.09 / spread)
    new = lab.copy()
    new[..., 0] = np.clip(goal[0] + light * scale, 0.02, 1)
    chroma = np.hypot(lab[..., 1], lab[..., 2])
    relative = np.clip(chroma / max(0.04, np.hypot(mean[1], mean[2])), 0.55, 1.1)
    new[..., 1] = goal[1] * relative
    new[..., 2] = goal[2] * relative
    result = rgba.copy()
    result[..., :3][mask] = from_lab(new[mask])
    return result
