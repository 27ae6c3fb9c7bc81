"""Muon (Keller Jordan, 2024) with the polynomials of Polar Express (arXiv:2505.16932), beside AdamW."""

import torch

POLYNOMIALS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
)


def orthogonal(matrices):
    """`[count, rows, columns]`, each with its singular values brought near 1."""
    x = matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.transpose(1, 2) if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) * 1.02 + 1e-6)
    for a, b, c in POLYNOMIALS:
        square = x @ x.transpose(1, 2)
        x = a * x + (b * square + c * square @ square) @ x
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    """For hidden matrices; those of one shape are made orthogonal together."""

    def __init__(self, params, lr=0.015, momentum=0.95, decay=0.02):
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for param in group["params"]:
                if param.grad is not None:
                    shapes.setdefault(tuple(param.shape), []).append(param)
            for (rows, columns), params in shapes.items():
                scale = group["lr"] * max(1, rows / columns) ** 0.5
                updates = [self.momentum(param, group["momentum"]) for param in params]
                for param, update in zip(params, orthogonal(torch.stack(updates)).float()):
                    param.mul_(1 - group["lr"] * group["decay"]).add_(update, alpha=-scale)

    def momentum(self, param, beta):
        state = self.state[param]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(param)
        state["momentum"].lerp_(param.grad, 1 - beta)
        return param.grad.lerp(state["momentum"], beta)


OUTER = ("patch_embed", "pos_embed", "modulation", "proj_out", "time_embed", "sketch_out", "queries", "share", "merge")


def optimizers(model, muon=0.015, adam=1e-3):
    """Muon for the matrices inside, AdamW for embeddings, modulation, output, norms and biases."""
    inner, outer = [], []
    for name, param in model.named_parameters():
        hidden = param.ndim == 2 and not any(part in name for part in (*OUTER, "reference_embed"))
        (inner if hidden else outer).append(param)
    return [
        Muon(inner, lr=muon),
        torch.optim.AdamW(outer, lr=adam, betas=(0.9, 0.98), weight_decay=0.0),
    ]
