"""Prints how many steps a second diffusers makes of a model on the CPU: FOLDER SIZE STEPS THREADS."""

import sys
import time

import torch
from diffusers import DiffusionPipeline

folder, size, steps, threads = sys.argv[1], *map(int, sys.argv[2:])
torch.set_num_threads(threads)
pipeline = DiffusionPipeline.from_pretrained(folder, torch_dtype=torch.float32)
pipeline.set_progress_bar_config(disable=True)
times = []


def note(_pipeline, _step, _timestep, values):
    times.append(time.perf_counter())
    return values


for _ in range(2):
    times.clear()
    pipeline("a red cat beside a tree", width=size, height=size, num_inference_steps=steps, guidance_scale=1.0, output_type="latent", callback_on_step_end=note)
print((len(times) - 1) / (times[-1] - times[0]))
