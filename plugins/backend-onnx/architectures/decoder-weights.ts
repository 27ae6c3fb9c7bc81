import {
  halvesLayout,
  halvesOrder,
  type Matrix,
  matricesOf,
  matrixOf,
  rowsOf,
  vectorOf,
} from "../weights/matrix.ts"
import { Unsupported } from "../weights/model-file-error.ts"
import type { TensorSource } from "../weights/tensor-file.ts"
import type { DecoderConfig } from "./decoder-config.ts"
import type { ExpertMatrix, LayerMatrix, LayerNorm, TensorNames } from "./tensor-names.ts"

export const layerMatrices: readonly LayerMatrix[] = ["q", "k", "v", "out", "gate", "up", "down"]

const expertMatrices: readonly ExpertMatrix[] = ["gate", "up", "down"]

/** The matrices of a layer outside of experts. */
export const matricesIn = ({ experts }: DecoderConfig, layer: number): readonly LayerMatrix[] =>
  experts?.layers[layer]
    ? layerMatrices.filter((part) => !expertMatrices.includes(part as ExpertMatrix))
    : layerMatrices

interface MatrixSize {
  readonly rows: number
  readonly columns: number
}

export const sizesOf = (
  { heads, kvHeads, headSize, width, feedForward }: DecoderConfig,
  part: LayerMatrix,
): MatrixSize => {
  if (part === "out") return { rows: width, columns: heads * headSize }
  if (part === "down") return { rows: width, columns: feedForward }
  if (part === "q") return { rows: heads * headSize, columns: width }
  const rows = part === "k" || part === "v" ? kvHeads * headSize : feedForward
  return { rows, columns: width }
}

/**
 * The weights of a decoder by their role. All methods throw `Damaged` for missing or wrong tensors.
 */
export class DecoderWeights {
  readonly source: TensorSource
  readonly names: TensorNames
  private readonly config: DecoderConfig
  /** Rows of q and k are stored with rotary pairs adjacent, as llama.cpp does. */
  private readonly pairsAreNeighbours: boolean

  constructor(
    source: TensorSource,
    names: TensorNames,
    config: DecoderConfig,
    pairsAreNeighbours: boolean,
  ) {
    this.source = source
    this.names = names
    this.config = config
    this.pairsAreNeighbours = pairsAreNeighbours
    this.refuseUnknown()
    this.refuseWrongShapes()
  }

  /** Checks shapes before anything is written: a damaged file may claim any size. */
  private refuseWrongShapes(): void {
    this.embedding()
    this.head()
    this.finalNorm()
    for (let layer = 0; layer < this.config.layers; layer++) {
      const parts = matricesIn(this.config, layer)
      for (const part of parts) this.matrix(layer, part)
      for (const norm of this.norms()) this.norm(layer, norm)
      for (const part of parts) this.bias(layer, [part])
      if (parts !== layerMatrices) this.refuseWrongExperts(layer)
    }
  }

  private refuseWrongExperts(layer: number): void {
    this.router(layer)
    for (let expert = 0; expert < this.config.experts!.count; expert++)
      for (const part of expertMatrices) this.expert(layer, expert, part)
  }

  private norms(): readonly LayerNorm[] {
    return [
      "beforeAttention",
      "beforeFeedForward",
      ...(this.config.outerNorms ? (["afterAttention", "afterFeedForward"] as const) : []),
      ...(this.config.headNorms ? (["queries", "keys"] as const) : []),
    ]
  }

  /**
   * Refuses unknown tensors: they belong to another architecture, which would run in part and
   * produce nonsense.
   */
  private refuseUnknown(): void {
    const { names, config } = this
    const known = new Set([
      `${names.embedding}.weight`,
      `${names.finalNorm}.weight`,
      ...(config.tiedHead ? [] : [`${names.head}.weight`]),
    ])
    for (let layer = 0; layer < config.layers; layer++) {
      const parts = matricesIn(config, layer)
      for (const part of [...parts, ...this.norms()])
        known.add(`${names.layer(layer)}${names.parts[part]}.weight`)
      for (const part of parts)
        if (this.hasBias(part) !== false)
          known.add(`${names.layer(layer)}${names.parts[part]}.bias`)
      if (parts === layerMatrices) continue
      known.add(`${names.layer(layer)}${names.router}.weight`)
      for (let expert = 0; expert < config.experts!.count; expert++)
        for (const part of expertMatrices) known.add(this.expertName(layer, expert, part))
    }
    for (const name of this.source.names())
      if (!known.has(name) && !names.ignored.test(name))
        throw new Unsupported(
          `it has the tensor '${name}', which a ${config.architecture} of ${config.layers} layers has no place for`,
        )
  }

  /** The number of heads whose rows have to be reordered; undefined: none. */
  private shuffledHeads(part: LayerMatrix): number | undefined {
    if (!this.pairsAreNeighbours) return undefined
    return { q: this.config.heads, k: this.config.kvHeads }[part as "q" | "k"]
  }

  /** Undefined: it may have one. */
  private hasBias(part: LayerMatrix): boolean | undefined {
    if (this.config.architecture === "qwen2" && ["q", "k", "v"].includes(part)) return true
    const { attention, feedForward } = this.config.biases ?? {}
    return ["q", "k", "v", "out"].includes(part) ? attention : feedForward
  }

  private stem(layer: number, part: LayerMatrix | LayerNorm): string {
    return `${this.names.layer(layer)}${this.names.parts[part]}`
  }

  /** The rows of a part among those of the tensor that it may share with others. */
  private place(part: LayerMatrix): { readonly first: number; readonly rows: number } {
    const { parts } = this.names
    const sharing = layerMatrices.filter((other) => parts[other] === parts[part])
    const rowsOfParts = (some: readonly LayerMatrix[]) =>
      some.reduce((sum, other) => sum + sizesOf(this.config, other).rows, 0)
    return {
      first: rowsOfParts(sharing.slice(0, sharing.indexOf(part))),
      rows: rowsOfParts(sharing),
    }
  }

  matrix(layer: number, part: LayerMatrix): Matrix {
    const { rows, columns } = sizesOf(this.config, part)
    const place = this.place(part)
    const name = `${this.stem(layer, part)}.weight`
    const whole = matrixOf(this.source, name, { rows: place.rows, columns })
    const stored = rowsOf(whole, place.first, rows)
    const heads = this.shuffledHeads(part)
    return heads ? halvesLayout(stored, heads) : stored
  }

  /** The matrix that scores the experts. */
  router(layer: number): Matrix {
    return matrixOf(this.source, `${this.names.layer(layer)}${this.names.router}.weight`, {
      rows: this.config.experts!.count,
      columns: this.config.width,
    })
  }

  private expertName(layer: number, expert: number, part: ExpertMatrix): string {
    const { names } = this
    return `${names.layer(layer)}${names.expert[part].replace("#", String(expert))}`
  }

  expert(layer: number, expert: number, part: ExpertMatrix): Matrix {
    const { width } = this.config
    const { count, feedForward } = this.config.experts!
    const { expert: parts } = this.names
    const name = this.expertName(layer, expert, part)
    const [rows, columns] = part === "down" ? [width, feedForward] : [feedForward, width]
    if (parts[part].includes("#")) return matrixOf(this.source, name, { rows, columns })
    const sharing = expertMatrices.filter((other) => parts[other] === parts[part])
    const own = { rows: rows * sharing.length, columns }
    const first = expert * own.rows + sharing.indexOf(part) * rows
    return rowsOf(matricesOf(this.source, name, own, count), first, rows)
  }

  /**
   * Returns the concatenated biases of the parts, with zeros where a part has none; undefined where
   * no part has one.
   */
  bias(layer: number, parts: readonly LayerMatrix[]): Float32Array | undefined {
    const names = parts.map((part) => `${this.stem(layer, part)}.bias`)
    for (const [i, name] of names.entries()) if (this.hasBias(parts[i]!)) this.source.tensor(name)
    if (!names.some((name) => this.source.has(name))) return undefined
    const values = parts.map((part, i) => this.biasOf(part, names[i]!))
    const all = new Float32Array(values.reduce((sum, value) => sum + value.length, 0))
    let at = 0
    for (const value of values) {
      all.set(value, at)
      at += value.length
    }
    return all
  }

  private biasOf(part: LayerMatrix, name: string): Float32Array {
    const { rows } = sizesOf(this.config, part)
    const place = this.place(part)
    const stored = this.source.has(name)
      ? vectorOf(this.source, name, place.rows).subarray(place.first, place.first + rows)
      : new Float32Array(rows)
    const heads = this.shuffledHeads(part)
    const order = heads ? halvesOrder(rows, heads) : undefined
    return order ? Float32Array.from(order, (row) => stored[row]!) : stored
  }

  norm(layer: number, part: LayerNorm): Float32Array {
    const { width, headSize } = this.config
    return this.shifted(
      `${this.stem(layer, part)}.weight`,
      part === "queries" || part === "keys" ? headSize : width,
    )
  }

  private shifted(name: string, length: number): Float32Array {
    const { normShift } = this.names
    return vectorOf(this.source, name, length).map((weight) => weight + normShift)
  }

  finalNorm(): Float32Array {
    return this.shifted(`${this.names.finalNorm}.weight`, this.config.width)
  }

  private table(stem: string): Matrix {
    const { vocabulary: rows, width: columns } = this.config
    return matrixOf(this.source, `${stem}.weight`, { rows, columns })
  }

  embedding(): Matrix {
    return this.table(this.names.embedding)
  }

  head(): Matrix {
    return this.table(this.config.tiedHead ? this.names.embedding : this.names.head)
  }

  /** Returns the embeddings of tokens, `[ids.length, width]`. */
  embed(ids: ArrayLike<number>): Float32Array {
    const { width, embeddingScale } = this.config
    const table = this.source.tensor(`${this.names.embedding}.weight`)
    const out = new Float32Array(ids.length * width)
    for (let i = 0; i < ids.length; i++)
      table.type.decode(
        this.source.rows(table, ids[i]!, 1),
        out.subarray(i * width, (i + 1) * width),
      )
    if (embeddingScale !== 1) for (let i = 0; i < out.length; i++) out[i]! *= embeddingScale
    return out
  }
}
