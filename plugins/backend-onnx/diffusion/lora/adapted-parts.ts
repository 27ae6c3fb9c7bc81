import type { Adapter } from "../../../../core/ports/model.ts"
import { refuseBeyond } from "../../architectures/adapter-config.ts"
import { floats } from "../../onnx/onnx-session.ts"
import type { Part, PartGraph, PartHost, Parts } from "../folder/part.ts"
import type { ImageModelInfo } from "../model.ts"
import { clipPrefix } from "./layer-names.ts"
import { type LoraPair, withLoraFile } from "./lora-file.ts"
import {
  type LoraLayer,
  loraGraphVersion,
  loraLayersIn,
  loraNames,
  strengthInput,
  takingLoras,
} from "./lora-inputs.ts"
import type { Adapted } from "./lora-names.ts"

type Feeds = Parameters<Part["run"]>[0]

/** A part whose runs may have a LoRA. */
export interface AdaptedPart {
  run(feeds: Feeds, adapter?: Adapter): ReturnType<Part["run"]>
}

/** The parts of a pipeline that LoRAs may adapt. */
export interface AdaptedParts<Name extends Adapted> {
  readonly parts: Readonly<Record<Name, AdaptedPart>>
  readonly info: Required<Pick<ImageModelInfo, "adapters" | "adapterBytes">>
}

const feedsOf = (layers: readonly LoraLayer[], pairs: readonly LoraPair[]): Feeds => {
  const byLayer = new Map(pairs.map((pair) => [pair.layer, pair]))
  return Object.fromEntries(
    layers.flatMap(({ name, rows, columns }) => {
      // no rank at all would be an empty input, at which ONNX Runtime's provider of GPUs crashes
      const { rank, a, b } = byLayer.get(name) ?? {
        rank: 1,
        a: new Float32Array(columns),
        b: new Float32Array(rows),
      }
      const names = loraNames(name)
      return [
        [names.a, floats(a, [rank, columns])],
        [names.b, floats(b, [rows, rank])],
      ]
    }),
  )
}

const adaptedPart = (
  part: Part,
  layers: readonly LoraLayer[],
  pairs: ReadonlyMap<string, readonly LoraPair[]>,
): AdaptedPart => {
  const none = feedsOf(layers, [])
  // layers that a LoRA leaves alone share one pair of zeros
  const loras = new Map(
    [...pairs].map(([id, own]) => {
      const adapted = new Set(own.map(({ layer }) => layer))
      const its = layers.filter(({ name }) => adapted.has(name))
      return [id, { ...none, ...feedsOf(its, own) }]
    }),
  )
  return {
    run: (feeds, adapter) => {
      const own = adapter && adapter.strength !== 0 ? loras.get(adapter.id) : undefined
      const strength = floats(Float32Array.of(own ? adapter!.strength : 0), [1])
      return part.run({ ...feeds, ...(own ?? none), [strengthInput]: strength })
    },
  }
}

/**
 * Returns the memory of all LoRAs of a model. Throws `ModelFileError` where that is more than there
 * may be.
 */
export const loraMemory = (
  adapters: NonNullable<PartHost["adapters"]>,
  most: number,
  bytesOf: (path: string) => number,
): number => {
  let bytes = 0
  for (const { path } of adapters) {
    bytes += bytesOf(path)
    refuseBeyond(path, "take", bytes, most)
  }
  return bytes
}

/**
 * Reads the model's LoRAs: the pairs of each, by the part, and the memory of all. All are measured
 * by their headers before a value is read: values are what fills memory.
 */
const readAll = (parts: Parts, layers: ReadonlyMap<Adapted, readonly LoraLayer[]>) => {
  const { adapters = [], adapterBytes = Number.POSITIVE_INFINITY } = parts.host
  const bytes = loraMemory(adapters, adapterBytes, (path) =>
    withLoraFile(path, layers, (lora) => lora.bytes),
  )
  const loras = adapters.map(({ id, path }) => {
    parts.host.progress(`reading the adapter ${id}`)
    return { id, pairs: withLoraFile(path, layers, ({ pairs }) => pairs()) }
  })
  return { loras, bytes }
}

/**
 * Opens the parts of a pipeline that LoRAs may adapt, and reads those that the model has. Without
 * any the graphs are those of `Parts.open`. Throws `ModelFileError`.
 */
export const openAdapted = async <Name extends Adapted>(
  parts: Parts,
  graphs: Readonly<Record<Name, PartGraph>>,
): Promise<AdaptedParts<Name>> => {
  const hasLoras = (parts.host.adapters ?? []).length > 0
  const opened = new Map<Adapted, { readonly part: Part; readonly layers: readonly LoraLayer[] }>()
  for (const [name, graph] of Object.entries(graphs) as [Name, PartGraph][]) {
    const part = await parts.open(hasLoras ? withLoras(name, graph) : graph)
    opened.set(name, { part, layers: hasLoras ? loraLayersIn(await part.inputs()) : [] })
  }
  const layers = new Map([...opened].map(([name, one]) => [name, one.layers] as const))
  const { loras, bytes } = readAll(parts, layers)
  const adapted = [...opened].map(([name, { part, layers: own }]) => {
    const pairs = new Map(loras.map(({ id, pairs }) => [id, pairs.get(name) ?? []]))
    return [name, hasLoras ? adaptedPart(part, own, pairs) : part] as const
  })
  return {
    parts: Object.fromEntries(adapted) as Record<Name, AdaptedPart>,
    info: { adapters: loras.map(({ id }) => id), adapterBytes: bytes },
  }
}

const withLoras = (of: Adapted, graph: PartGraph): PartGraph => {
  const nameOf = (layer: string) =>
    of === "denoiser" || layer.startsWith(clipPrefix) ? layer : `${clipPrefix}${layer}`
  return {
    ...graph,
    key: [...graph.key, "loras", loraGraphVersion],
    build: (building, progress) => graph.build(takingLoras(building, nameOf), progress),
  }
}
