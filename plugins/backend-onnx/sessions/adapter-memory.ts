import { refuseBeyond } from "../architectures/adapter-config.ts"
import { type PairShape, withAdapterFile } from "../architectures/adapter-file.ts"
import type { DecoderConfig } from "../architectures/decoder-config.ts"
import { matricesIn, sizesOf } from "../architectures/decoder-weights.ts"
import type { ModelHeader } from "../architectures/model-source.ts"
import type { LayerMatrix } from "../architectures/tensor-names.ts"
import type { FoundGroup } from "../onnx/adapter-inputs.ts"
import { hasKernels } from "../onnx/kernels.ts"
import { type OwnFormat, ownFormat, type Precision } from "../onnx/linear.ts"
import { groupStarts } from "../onnx/products.ts"
import { ModelFileError } from "../weights/model-file-error.ts"
import { type GroupSize, tileLayout } from "./adapter-tiles.ts"

/** A LoRA in a local file or folder. */
export interface AdapterSpec {
  readonly id: string
  readonly path: string
}

/** Matrices of a layer that have one input. */
const neighbours: readonly (readonly LayerMatrix[])[] = [
  ["q", "k", "v"],
  ["out"],
  ["gate", "up"],
  ["down"],
]

/** The groups that the graph of a model will have, by the header of its file. */
export const groupsByHeader = (
  { config, typeOf }: ModelHeader,
  precision: Precision,
): readonly FoundGroup[] => {
  const own = (layer: number, part: LayerMatrix): OwnFormat => {
    const type = typeOf(layer, part)
    return type ? ownFormat(type, hasKernels()) : 8
  }
  return Array.from({ length: config.layers }, (_, layer) => layer).flatMap((layer) => {
    const here = matricesIn(config, layer)
    return neighbours
      .filter((parts) => parts.every((part) => here.includes(part)))
      .flatMap((parts) => {
        const starts = groupStarts(precision, () => parts.map((part) => own(layer, part)))
        return starts.map((from, at) => ({
          layer,
          parts: parts.slice(from, starts[at + 1]),
          isJoined: false,
        }))
      })
  })
}

export const groupSizes = (
  groups: readonly FoundGroup[],
  config: DecoderConfig,
): readonly GroupSize[] =>
  groups.map(({ parts, ...group }) => {
    const partRows = parts.map((part) => sizesOf(config, part).rows)
    return {
      ...group,
      parts,
      columns: sizesOf(config, parts[0]!).columns,
      partRows,
      rows: partRows.reduce((sum, count) => sum + count, 0),
    }
  })

const refuseUnused = (
  path: string,
  shapes: readonly PairShape[],
  sizes: readonly GroupSize[],
): void => {
  const unused = shapes.find(
    ({ layer, part }) => !sizes.some((size) => size.layer === layer && size.parts.includes(part)),
  )
  if (unused)
    throw new ModelFileError(
      path,
      `it adapts '${unused.part}' of layer ${unused.layer}, which takes no adapters in this model`,
    )
}

/**
 * Refuses adapters that do not fit the model, or could take more than `maxBytes`, by their headers:
 * values are what fills memory. Throws `ModelFileError`.
 */
export const checkAdapterMemory = (
  specs: readonly AdapterSpec[],
  config: DecoderConfig,
  sizes: readonly GroupSize[],
  maxBytes: number,
): void => {
  let bytes = 0
  for (const [index, { path }] of specs.entries()) {
    bytes += withAdapterFile(path, config, ({ shapes }) => {
      refuseUnused(path, shapes, sizes)
      return tileLayout(shapes, sizes).bytes
    })
    // each alone, and all of them side by side
    refuseBeyond(path, "can take", index > 0 ? 2 * bytes : bytes, maxBytes)
  }
}
