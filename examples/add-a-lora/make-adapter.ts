import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { safetensors } from "../add-a-model/make-weights.ts"

/*
 * Writes adapter/: a LoRA of the model in ../add-a-model as PEFT saves one, with random weights of
 * rank 4 for two matrices; and stripes.safetensors: one of a tiny UNet with the names of kohya's
 * scripts. `npx tsx make-adapter.ts` writes the same bytes every time.
 */

const rank = 4
const width = 32
const feedForward = 64

const config = {
  peft_type: "LORA",
  task_type: "CAUSAL_LM",
  base_model_name_or_path: "tiny",
  r: rank,
  lora_alpha: 8,
  lora_dropout: 0,
  bias: "none",
  target_modules: ["q_proj", "down_proj"],
}

const layer = "base_model.model.model.layers.0"
const shapes: Readonly<Record<string, readonly [number, number]>> = {
  [`${layer}.self_attn.q_proj.lora_A.weight`]: [rank, width],
  [`${layer}.self_attn.q_proj.lora_B.weight`]: [width, rank],
  [`${layer}.mlp.down_proj.lora_A.weight`]: [rank, feedForward],
  [`${layer}.mlp.down_proj.lora_B.weight`]: [width, rank],
}

/** The files of `adapter/`, by name. */
export const files = (): Readonly<Record<string, Buffer>> => ({
  "adapter_config.json": Buffer.from(`${JSON.stringify(config, undefined, 2)}\n`),
  "adapter_model.safetensors": safetensors(shapes, 2),
})

const attention = "lora_unet_mid_block_attentions_0_transformer_blocks_0_attn2"

/** The LoRA of the image model: the matrices of an attention, `[16, 16]` each. */
export const stripes = (): Buffer =>
  safetensors(
    Object.fromEntries(
      ["to_q", "to_k", "to_v", "to_out_0"].flatMap((part) => [
        [`${attention}_${part}.lora_down.weight`, [rank, 16]],
        [`${attention}_${part}.lora_up.weight`, [16, rank]],
      ]),
    ),
    3,
  )

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const here = dirname(fileURLToPath(import.meta.url))
  const folder = join(here, "adapter")
  mkdirSync(folder, { recursive: true })
  for (const [name, bytes] of Object.entries(files())) writeFileSync(join(folder, name), bytes)
  writeFileSync(join(here, "stripes.safetensors"), stripes())
}
