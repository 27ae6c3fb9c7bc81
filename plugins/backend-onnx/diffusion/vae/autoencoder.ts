import { floats } from "../../onnx/onnx-session.ts"
import { explaining } from "../../weights/model-file-error.ts"
import type { PartGraph, Parts } from "../folder/part.ts"
import { type PipelineFolder, partIn } from "../folder/pipeline-folder.ts"
import type { Tensor } from "../model.ts"
import { inTiles, type Tiling } from "./tiles.ts"
import { pixelsOf, vaeConfig } from "./vae-config.ts"
import { buildVaeDecoder, buildVaeEncoder, vaeGraphVersion } from "./vae-graph.ts"

/** An open autoencoder. `pause` is awaited before each tile. */
export interface Autoencoder {
  /** Pixels of the edge of a position of latents. */
  readonly edge: number
  /** Pixels `[1,3,h,w]` from -1 to 1 as latents `[1,C,h/edge,w/edge]`: the mean. */
  encode(pixels: Tensor, pause?: () => Promise<void>): Promise<Tensor>
  /** The inverse; values may be a little outside of the range. */
  decode(latents: Tensor, pause?: () => Promise<void>): Promise<Tensor>
}

/** Latents of a tile, at least: norms over fewer would be far from those of the picture. */
const leastTile = 16

/**
 * Opens the autoencoder of a pipeline, AutoencoderKL or AutoencoderKLFlux2. Pictures with a side of
 * more than `tileSize` pixels are encoded and decoded in tiles. Throws `ModelFileError`.
 */
export const openAutoencoder = async (
  parts: Parts,
  folder: PipelineFolder,
  { tileSize }: { readonly tileSize: number },
): Promise<Autoencoder> => {
  const {
    path,
    config: json,
    className,
  } = partIn(folder, "vae", ["AutoencoderKL", "AutoencoderKLFlux2"])
  const config = explaining(path, () => vaeConfig(json, className))
  const edge = pixelsOf(config)
  const open = (half: string, build: typeof buildVaeDecoder) => {
    const graph: PartGraph = {
      name: `vae ${half}`,
      path,
      key: ["vae", half, vaeGraphVersion, config],
      // it has few linear layers, and the errors of 8 bits would show
      build: (building, progress) => {
        const precision = building.precision === "fp16" ? "fp16" : "fp32"
        build({ ...building, precision }, config, progress)
      },
    }
    return parts.open(graph)
  }
  const encoder = await open("encoder", buildVaeEncoder)
  const decoder = await open("decoder", buildVaeDecoder)
  const most = Math.max(leastTile, Math.floor(tileSize / edge))
  const through =
    (
      part: typeof encoder,
      [input, output]: readonly [string, string],
      units: Omit<Tiling, "most">,
    ) =>
    (whole: Tensor, pause?: () => Promise<void>): Promise<Tensor> =>
      inTiles(whole, { ...units, most }, async ({ data, dims }) => {
        await pause?.()
        const found = (await part.run({ [input]: floats(data, dims) }))[output]!
        return { data: found.data as Float32Array, dims: found.dims }
      })
  return {
    edge,
    encode: through(encoder, ["pixels", "latents"], { inputUnit: edge, outputUnit: 1 }),
    decode: through(decoder, ["latents", "pixels"], { inputUnit: 1, outputUnit: edge }),
  }
}
