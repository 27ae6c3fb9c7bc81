import { type Dots, makeKernel } from "./kernel.ts"

/** Memory is given out in pieces of one size, so that it never becomes fragmented. */
export const slabBytes = 65_536

/** The places of `rows` rows in a slab, in bytes from its start; each column is together. */
export interface Layout {
  readonly dimensions: number
  /** Bytes from one row of int8 to the next: a multiple of 16. */
  readonly stride: number
  readonly rows: number
  readonly halves: number
  readonly scales: number
  readonly errors: number
  readonly documents: number
  readonly chunks: number
}

const ceilTo = (value: number, multiple: number) => Math.ceil(value / multiple) * multiple

/** Undefined where not even one row fits a slab. */
export const layoutOf = (dimensions: number): Layout | undefined => {
  const stride = ceilTo(dimensions, 16)
  const rows = Math.floor((slabBytes - 4) / (stride + 2 * dimensions + 16))
  if (rows < 1) return undefined
  const halves = rows * stride
  const scales = halves + ceilTo(rows * 2 * dimensions, 4)
  const column = rows * 4
  return {
    dimensions,
    stride,
    rows,
    halves,
    scales,
    errors: scales + column,
    documents: scales + 2 * column,
    chunks: scales + 3 * column,
  }
}

/** The slabs that `rows` rows take; Infinity where none holds one. */
export const slabsOf = (rows: number, layout: Layout | undefined): number =>
  layout ? Math.ceil(rows / layout.rows) : Number.POSITIVE_INFINITY

/** All memory of a scan: slab 0 has the query and the products, the others are given out. */
export class Slabs {
  readonly int8: Int8Array
  readonly uint16: Uint16Array
  readonly int32: Int32Array
  readonly float32: Float32Array
  private readonly int16: Int16Array
  private readonly dots: Dots
  private readonly free: number[]

  constructor(count: number) {
    const { buffer, dots } = makeKernel(count + 1)
    this.int8 = new Int8Array(buffer)
    this.uint16 = new Uint16Array(buffer)
    this.int16 = new Int16Array(buffer)
    this.int32 = new Int32Array(buffer)
    this.float32 = new Float32Array(buffer)
    this.dots = dots
    // the first are taken first: memory that was never written costs nothing
    this.free = Array.from({ length: count }, (_, index) => (count - index) * slabBytes)
  }

  /** The place of a slab, in bytes. */
  take(): number {
    const slab = this.free.pop()
    if (slab === undefined) throw new RangeError("all slabs are taken")
    return slab
  }

  give(slab: number): void {
    this.free.push(slab)
  }

  /**
   * The query of the next products, as int16 of its own scale. Returns the scale, and the norm of
   * what rounding took from the query.
   */
  setQuery(query: Float32Array, stride: number): { readonly scale: number; readonly lost: number } {
    let largest = 0
    for (const value of query) largest = Math.max(largest, Math.abs(value))
    // a sum is kept in 4 lanes of 32 bits
    const most = Math.min(32_767, Math.floor((2 ** 31 - 1) / (127 * (stride / 4))))
    const scale = largest > 0 ? largest / most : 1
    let squares = 0
    this.int16.fill(0, 0, stride)
    for (const [i, value] of query.entries()) {
      const whole = Math.round(value / scale)
      this.int16[i] = whole
      const error = value - whole * scale
      squares += error * error
    }
    return { scale, lost: Math.sqrt(squares) }
  }

  /** The query as `setQuery` wrote it. */
  query(stride: number): Int32Array {
    return Int32Array.from(this.int16.subarray(0, stride))
  }

  /** The products of the query with the first `rows` of a slab, divided by the query's scale. */
  products(slab: number, rows: number, { stride, scales }: Layout): Float32Array {
    const out = stride * 2
    this.dots(slab, stride, slab + rows * stride, 0, slab + scales, out)
    return this.float32.subarray(out / 4, out / 4 + rows)
  }
}
