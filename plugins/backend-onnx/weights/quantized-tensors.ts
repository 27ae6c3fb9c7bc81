import type { GgmlType } from "./ggml-types.ts"
import { decodeRow, matrixOf } from "./matrix.ts"
import { Damaged, Unsupported } from "./model-file-error.ts"
import type { TensorEntry, TensorSource } from "./tensor-file.ts"

const scaleSuffix = "_scale"
const scaleBytes = 4

/** A row as its scale (float32) and its levels (int8): value = scale * level. */
export const byRows = (columns: number): GgmlType => ({
  name: "I8",
  blockValues: columns,
  blockBytes: scaleBytes + columns,
  decode: (bytes, into) => {
    const scale = Buffer.from(bytes.buffer, bytes.byteOffset, scaleBytes).readFloatLE()
    for (let i = 0; i < into.length; i++) into[i] = scale * ((bytes[scaleBytes + i]! << 24) >> 24)
  },
})

/** A tensor of integers, and the scales of its rows or of groups of them. */
interface Quantized {
  readonly stored: TensorEntry
  readonly entry: TensorEntry
  readonly rowsPerScale: number
  readonly scales: Float32Array
}

const scalesOf = (source: TensorSource, name: string): Float32Array => {
  const { rows, columns } = source.tensor(name)
  const matrix = matrixOf(source, name, { rows, columns })
  const scales = new Float32Array(rows * columns)
  for (let row = 0; row < rows; row++)
    decodeRow(matrix, row, scales.subarray(row * columns, (row + 1) * columns))
  return scales
}

const quantized = (source: TensorSource, name: string): Quantized => {
  if (source.has(`${name}_zero_point`))
    throw new Unsupported(`the tensor '${name}' has zero points, which this backend can't read`)
  const stored = source.tensor(name)
  const scales = scalesOf(source, `${name}${scaleSuffix}`)
  const { rows, columns } = stored
  if (rows % scales.length)
    throw new Damaged(`the tensor '${name}' of ${rows} rows has ${scales.length} scales`)
  const type = byRows(columns)
  return {
    stored,
    entry: { ...stored, type, bytes: rows * type.blockBytes },
    rowsPerScale: rows / scales.length,
    scales,
  }
}

/**
 * Tensors of which some are kept as int8 with a scale for each row: `NAME` I8 `[rows, columns]` and
 * `NAME_scale` `[rows, 1]`, the format int-quantized of compressed-tensors. Callers find `NAME`
 * with the scales in its rows.
 */
class QuantizedTensors implements TensorSource {
  readonly path: string
  private readonly source: TensorSource
  private readonly known: ReadonlyMap<string, Quantized>

  constructor(source: TensorSource, names: readonly string[]) {
    this.path = source.path
    this.source = source
    this.known = new Map(names.map((name) => [name, quantized(source, name)]))
  }

  *names(): Iterable<string> {
    for (const name of this.source.names()) if (!this.isScale(name)) yield name
  }

  private isScale(name: string): boolean {
    return name.endsWith(scaleSuffix) && this.known.has(name.slice(0, -scaleSuffix.length))
  }

  has(name: string): boolean {
    return this.source.has(name) && !this.isScale(name)
  }

  tensor(name: string): TensorEntry {
    return this.known.get(name)?.entry ?? this.source.tensor(name)
  }

  rows(entry: TensorEntry, first: number, count: number): Buffer {
    const found = this.known.get(entry.name)
    if (!found) return this.source.rows(entry, first, count)
    const { stored, scales, rowsPerScale } = found
    const levels = this.source.rows(stored, first, count)
    const out = Buffer.allocUnsafe(count * (scaleBytes + stored.columns))
    for (let row = 0; row < count; row++) {
      const at = row * (scaleBytes + stored.columns)
      out.writeFloatLE(scales[Math.floor((first + row) / rowsPerScale)]!, at)
      levels.copy(out, at + scaleBytes, row * stored.columns, (row + 1) * stored.columns)
    }
    return out
  }

  close(): void {
    this.source.close()
  }
}

/** The same tensors; those that are kept as int8 are found with their scales. */
export const withScales = (source: TensorSource): TensorSource => {
  const names = [...source.names()].filter(
    (name) => source.has(`${name}${scaleSuffix}`) && source.tensor(name).type.name === "I8",
  )
  return names.length ? new QuantizedTensors(source, names) : source
}
