import { Unsupported } from "../../weights/model-file-error.ts"

/** What a layer of a file is in the model. */
export interface LoraTarget {
  /** The layers whose rows it has, one after the other. */
  readonly layers: readonly string[]
  /** The halves of its rows are the other way round. */
  readonly swapped: boolean
}

const attention = (from: string, to: string) =>
  [
    [`${from}.img_attn.qkv`, `${to}.attn.to_q`, `${to}.attn.to_k`, `${to}.attn.to_v`],
    [
      `${from}.txt_attn.qkv`,
      `${to}.attn.add_q_proj`,
      `${to}.attn.add_k_proj`,
      `${to}.attn.add_v_proj`,
    ],
    [`${from}.img_attn.proj`, `${to}.attn.to_out.0`],
    [`${from}.txt_attn.proj`, `${to}.attn.to_add_out`],
  ] as const

const block = "transformer_blocks.N"
const single = "single_transformer_blocks.N"
const joint = "joint_blocks.N"

/**
 * Names of layers in the code of the models' makers, which many trainers keep, before those of
 * diffusers. A rule holds where a model has all its layers; N is the number of a block.
 */
const originalNames: readonly (readonly [string, ...(readonly string[])])[] = [
  // FLUX.1 and FLUX.2
  ...attention("double_blocks.N", block),
  ["double_blocks.N.img_mlp.0", `${block}.ff.net.0.proj`],
  ["double_blocks.N.img_mlp.2", `${block}.ff.net.2`],
  ["double_blocks.N.txt_mlp.0", `${block}.ff_context.net.0.proj`],
  ["double_blocks.N.txt_mlp.2", `${block}.ff_context.net.2`],
  ["double_blocks.N.img_mlp.0", `${block}.ff.linear_in`],
  ["double_blocks.N.img_mlp.2", `${block}.ff.linear_out`],
  ["double_blocks.N.txt_mlp.0", `${block}.ff_context.linear_in`],
  ["double_blocks.N.txt_mlp.2", `${block}.ff_context.linear_out`],
  ["double_blocks.N.img_mod.lin", `${block}.norm1.linear`],
  ["double_blocks.N.txt_mod.lin", `${block}.norm1_context.linear`],
  [
    "single_blocks.N.linear1",
    `${single}.attn.to_q`,
    `${single}.attn.to_k`,
    `${single}.attn.to_v`,
    `${single}.proj_mlp`,
  ],
  ["single_blocks.N.linear2", `${single}.proj_out`],
  ["single_blocks.N.linear1", `${single}.attn.to_qkv_mlp_proj`],
  ["single_blocks.N.linear2", `${single}.attn.to_out`],
  ["single_blocks.N.modulation.lin", `${single}.norm.linear`],
  ...["double_stream_modulation_img", "double_stream_modulation_txt"].map(
    (name) => [`${name}.lin`, `${name}.linear`] as const,
  ),
  ["single_stream_modulation.lin", "single_stream_modulation.linear"],
  ["img_in", "x_embedder"],
  ["txt_in", "context_embedder"],
  ...["time_text_embed", "time_guidance_embed"].flatMap((to) =>
    (
      [
        ["time_in", "timestep_embedder"],
        ["guidance_in", "guidance_embedder"],
        ["vector_in", "text_embedder"],
      ] as const
    ).flatMap(([from, embedder]) => [
      [`${from}.in_layer`, `${to}.${embedder}.linear_1`] as const,
      [`${from}.out_layer`, `${to}.${embedder}.linear_2`] as const,
    ]),
  ),
  ["final_layer.linear", "proj_out"],
  ["final_layer.adaLN_modulation.1", "norm_out.linear"],
  // Stable Diffusion 3
  [`${joint}.x_block.attn.qkv`, `${block}.attn.to_q`, `${block}.attn.to_k`, `${block}.attn.to_v`],
  [
    `${joint}.x_block.attn2.qkv`,
    `${block}.attn2.to_q`,
    `${block}.attn2.to_k`,
    `${block}.attn2.to_v`,
  ],
  [
    `${joint}.context_block.attn.qkv`,
    `${block}.attn.add_q_proj`,
    `${block}.attn.add_k_proj`,
    `${block}.attn.add_v_proj`,
  ],
  [`${joint}.x_block.attn.proj`, `${block}.attn.to_out.0`],
  [`${joint}.x_block.attn2.proj`, `${block}.attn2.to_out.0`],
  [`${joint}.context_block.attn.proj`, `${block}.attn.to_add_out`],
  [`${joint}.x_block.mlp.fc1`, `${block}.ff.net.0.proj`],
  [`${joint}.x_block.mlp.fc2`, `${block}.ff.net.2`],
  [`${joint}.context_block.mlp.fc1`, `${block}.ff_context.net.0.proj`],
  [`${joint}.context_block.mlp.fc2`, `${block}.ff_context.net.2`],
  [`${joint}.x_block.adaLN_modulation.1`, `${block}.norm1.linear`],
  [`${joint}.context_block.adaLN_modulation.1`, `${block}.norm1_context.linear`],
  ["t_embedder.mlp.0", "time_text_embed.timestep_embedder.linear_1"],
  ["t_embedder.mlp.2", "time_text_embed.timestep_embedder.linear_2"],
  ["y_embedder.mlp.0", "time_text_embed.text_embedder.linear_1"],
  ["y_embedder.mlp.2", "time_text_embed.text_embedder.linear_2"],
]

const numbered = (name: string, number: string): string => name.replace(/\bN\b/, number)

/**
 * diffusers has the scale of a last norm before its shift; the models' makers the other way round.
 * The text of SD3's last block ends with such a norm, too: its layer has a third of the rows.
 */
const isSwapped = (layer: string, lastBlock: string): boolean =>
  layer === "norm_out.linear" || layer === `${lastBlock}.norm1_context.linear`

/** The names of a CLIP text encoder's layers begin so in most files of LoRAs. */
export const clipPrefix = "text_model."

/** The layers of a model that take LoRAs, by all names that files have for them. */
export class LayerNames {
  private readonly dotted = new Map<string, LoraTarget>()
  private readonly underscored = new Map<string, readonly string[]>()

  constructor(layers: Iterable<string>) {
    const all = new Set(layers)
    const numbers = new Set([...all].flatMap((name) => /\.(\d+)\./.exec(name)?.[1] ?? []))
    for (const name of all) {
      const target = { layers: [name], swapped: false }
      this.add(name, target)
      // transformers left the prefix of CLIP's text encoders out from its fifth version on
      if (name.startsWith(clipPrefix)) this.add(name.slice(clipPrefix.length), target)
    }
    const last = [...all].reduce(
      (most, name) => Math.max(most, Number(/^transformer_blocks\.(\d+)\./.exec(name)?.[1] ?? -1)),
      -1,
    )
    const endsText = !all.has(`transformer_blocks.${last}.attn.to_add_out`)
    for (const [from, ...to] of originalNames)
      for (const number of /\bN\b/.test(from) ? numbers : [""]) {
        const targets = to.map((name) => numbered(name, number))
        const swapped = isSwapped(targets[0]!, endsText ? `transformer_blocks.${last}` : "")
        if (targets.every((name) => all.has(name)))
          this.add(numbered(from, number), { layers: targets, swapped })
      }
  }

  private add(name: string, target: LoraTarget): void {
    if (this.dotted.has(name)) return
    this.dotted.set(name, target)
    const key = name.replaceAll(".", "_")
    this.underscored.set(key, [...(this.underscored.get(key) ?? []), name])
  }

  /**
   * The layers that a name stands for; undefined: none. Throws `Unsupported` where underscores hide
   * which of several it is.
   */
  find(layer: string, underscored: boolean): LoraTarget | undefined {
    if (!underscored) return this.dotted.get(layer)
    const names = this.underscored.get(layer) ?? []
    if (names.length > 1)
      throw new Unsupported(
        `its layer '${layer}' could be ${names.map((name) => `'${name}'`).join(" or ")}`,
        "Convert it to the names of diffusers, which have dots",
      )
    return this.dotted.get(names[0] ?? "")
  }
}
