import {
  countIn,
  countOr,
  type Metadata,
  numberOr,
  numbersIn,
  present,
} from "../../weights/gguf-metadata.ts"
import { Damaged, Unsupported } from "../../weights/model-file-error.ts"
import { channelsIn, flagOr, onlyBlocks } from "../graph/config.ts"

/** Sizes of an AutoencoderKL or an AutoencoderKLFlux2. */
export interface VaeConfig {
  readonly encoderChannels: readonly number[]
  readonly decoderChannels: readonly number[]
  /** Residual blocks of a level of the encoder; the decoder's have one more. */
  readonly layers: number
  readonly groups: number
  readonly latents: number
  readonly hasQuant: boolean
  readonly hasPostQuant: boolean
  readonly hasAttention: boolean
  /**
   * What a denoiser sees: latents less a shift, times a scale; or squares of four of them as
   * channels, normalized by the statistics that the file has.
   */
  readonly form:
    | { readonly type: "scaled"; readonly scale: number; readonly shift: number }
    | { readonly type: "squares"; readonly epsilon: number }
}

/** Channels of latents as a denoiser sees them. */
export const channelsOf = ({ latents, form }: VaeConfig): number =>
  form.type === "squares" ? 4 * latents : latents

/** Pixels of the edge of what a position of latents, as a denoiser sees them, becomes. */
export const pixelsOf = ({ decoderChannels, form }: VaeConfig): number =>
  2 ** (decoderChannels.length - 1) * (form.type === "squares" ? 2 : 1)

const squares = (json: Metadata): VaeConfig["form"] => {
  if (present(json, "patch_size") && numbersIn(json, "patch_size").some((edge) => edge !== 2))
    throw new Unsupported("its 'patch_size' is not 2 x 2")
  return { type: "squares", epsilon: numberOr(json, "batch_norm_eps", 1e-4) }
}

const scaled = (json: Metadata): VaeConfig["form"] => {
  const scale = numberOr(json, "scaling_factor", 0.18215)
  if (scale === 0) throw new Damaged("'scaling_factor' is 0")
  return { type: "scaled", scale, shift: numberOr(json, "shift_factor", 0) }
}

/** Reads the config.json of an autoencoder; throws `Damaged` or `Unsupported`. */
export const vaeConfig = (json: Metadata, className: string): VaeConfig => {
  onlyBlocks(json, "down_block_types", ["DownEncoderBlock2D"])
  onlyBlocks(json, "up_block_types", ["UpDecoderBlock2D"])
  const groups = countOr(json, "norm_num_groups", 1024, 32)
  const encoderChannels = channelsIn(json, "block_out_channels", groups)
  const decoderChannels = present(json, "decoder_block_out_channels")
    ? channelsIn(json, "decoder_block_out_channels", groups)
    : encoderChannels
  if (decoderChannels.length !== encoderChannels.length)
    throw new Damaged("its encoder and its decoder have different numbers of levels")
  return {
    encoderChannels,
    decoderChannels,
    layers: countOr(json, "layers_per_block", 64, 1),
    groups,
    latents: countIn(json, "latent_channels", 1024),
    hasQuant: flagOr(json, "use_quant_conv", true),
    hasPostQuant: flagOr(json, "use_post_quant_conv", true),
    hasAttention: flagOr(json, "mid_block_add_attention", true),
    form: className === "AutoencoderKLFlux2" ? squares(json) : scaled(json),
  }
}
