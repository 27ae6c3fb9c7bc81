"""Retrieval figures: does a picture find its text, and a text its picture?"""

import torch


def recalls(similarity, wanted=None):
    """R@1, R@5 and the mean reciprocal rank of the diagonal, row by row.

    `wanted` leaves only some rows to be counted; all columns stay candidates.
    """
    own = similarity.diagonal()[:, None]
    ranks = (similarity > own).sum(1) + ((similarity == own).sum(1) - 1) // 2
    if wanted is not None:
        ranks = ranks[wanted]
    return {
        "R@1": (ranks < 1).float().mean().item(),
        "R@5": (ranks < 5).float().mean().item(),
        "MRR": (1 / (ranks + 1)).mean().item(),
    }


def both_ways(images, texts, wanted=None):
    similarity = images @ texts.T
    return {
        "image to text": recalls(similarity, wanted),
        "text to image": recalls(similarity.T, wanted),
    }


def on_white(sprites, size, margin=0.06):
    """RGBA sprites `[B, S, S, 4]` (uint8) on white: pictures `[B, 3, size, size]` in [0, 1]."""
    rgba = torch.from_numpy(sprites).permute(0, 3, 1, 2).float() / 255
    flat = rgba[:, :3] * rgba[:, 3:] + 1 - rgba[:, 3:]
    edge = round(flat.shape[2] * margin)
    flat = torch.nn.functional.pad(flat, (edge,) * 4, value=1.0)
    resized = torch.nn.functional.interpolate(
        flat, (size, size), mode="bicubic", antialias=True, align_corners=False
    )
    return resized.clamp(0, 1)


@torch.no_grad()
def vectors_of(tower, pictures, batch=64):
    """Vectors of pictures in [0, 1], by batches, in the tower's own precision."""
    parts = [tower((part - 0.5) / 0.5) for part in pictures.split(batch)]
    return torch.cat(parts)
