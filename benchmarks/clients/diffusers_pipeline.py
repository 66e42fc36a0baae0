"""diffusers: a pipeline whose U-Net is compiled, and a model compiled block by block."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DConditionModel, UNet2DModel


def run(backend: str | None) -> list[Any]:
    unet = UNet2DModel(
        sample_size=8, block_out_channels=(8, 8), norm_num_groups=2, layers_per_block=1, attention_head_dim=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    pipe = DDPMPipeline(unet=unet, scheduler=DDPMScheduler(num_train_timesteps=10))
    pipe.set_progress_bar_config(disable=True)
    blocks = UNet2DConditionModel(
        sample_size=8, block_out_channels=(8, 8), norm_num_groups=2, layers_per_block=1, cross_attention_dim=8,
        attention_head_dim=4, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    if backend is not None:
        pipe.unet = torch.compile(pipe.unet, backend=backend)
        blocks.compile_repeated_blocks(backend=backend)
    images = [
        pipe(batch_size=n, num_inference_steps=3, output_type="np", generator=torch.manual_seed(n)).images
        for n in (1, 2)
    ]
    with torch.no_grad():
        out = blocks(torch.randn(2, 4, 8, 8), torch.tensor(3), torch.randn(2, 5, 8)).sample
    with tempfile.TemporaryDirectory() as folder:
        pipe.save_pretrained(folder)
        saved = UNet2DModel.from_pretrained(Path(folder) / "unet").state_dict()
    return [*map(torch.from_numpy, images), out, *saved.values()]
