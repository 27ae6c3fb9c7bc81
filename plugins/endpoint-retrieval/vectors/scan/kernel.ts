/** The part of WebAssembly in use: Node's types declare it only with the browser's. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Memory: new (size: {
    readonly initial: number
    readonly maximum: number
  }) => { readonly buffer: ArrayBuffer }
  readonly Instance: new (
    module: object,
    imports: Readonly<Record<string, Readonly<Record<string, object>>>>,
  ) => { readonly exports: unknown }
}
const webAssembly = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi }).WebAssembly

const [i32, v128] = [0x7f, 0x7b]

/** An unsigned number in LEB128. */
const leb = (value: number): readonly number[] =>
  value < 128 ? [value] : [(value % 128) | 128, ...leb(Math.floor(value / 128))]
const block = (bytes: readonly number[]) => [...leb(bytes.length), ...bytes]
const section = (id: number, bytes: readonly number[]) => [id, ...block(bytes)]
const named = (text: string) => block([...new TextEncoder().encode(text)])

const get = (local: number) => [0x20, local]
const set = (local: number) => [0x21, local]
const add = [0x6a]
const constant = (value: number) => [0x41, ...leb(value)]
/** Adds a number under 64 to an i32. */
const advance = (local: number, by: number) => [
  ...get(local),
  ...constant(by),
  ...add,
  ...set(local),
]
const simd = (code: number) => [0xfd, ...leb(code)]
const load = (offset: number) => [...simd(0), 0, ...leb(offset)]
const extendLow = simd(0x87)
const extendHigh = simd(0x88)
const dotOf16 = simd(0xba)
const addOf32 = simd(0xae)
const toFloats = simd(0xfa)
const lane = (index: number) => [...simd(0x1f), index]
/** Repeats the body while the local is below the limit; the body moves it on. */
const whileBelow = (local: number, limit: readonly number[], body: readonly number[]) => [
  ...[0x03, 0x40],
  ...body,
  ...[...get(local), ...limit, 0x49, 0x0d, 0],
  0x0b,
]

const [row, stride, end, query, scale, out] = [0, 1, 2, 3, 4, 5]
const [inRow, inQuery, low, high, rowEnd] = [6, 7, 8, 9, 10]

/** 16 numbers of a row, in two halves of 8 that are widened, with 16 of the query. */
const step = [
  ...[...get(low), ...get(inRow), ...load(0), ...extendLow, ...get(inQuery), ...load(0)],
  ...[...dotOf16, ...addOf32, ...set(low)],
  ...[...get(high), ...get(inRow), ...load(0), ...extendHigh, ...get(inQuery), ...load(16)],
  ...[...dotOf16, ...addOf32, ...set(high)],
  ...advance(inRow, 16),
  ...advance(inQuery, 32),
]
const zero = [...simd(12), ...Array.from({ length: 16 }, () => 0)]
const sum = [...get(low), ...get(high), ...addOf32, ...toFloats, ...set(low)]
const lanes = [0, 1, 2, 3].flatMap((index) => [
  ...get(low),
  ...lane(index),
  ...(index > 0 ? [0x92] : []),
])
const body = whileBelow(row, get(end), [
  ...[...get(row), ...set(inRow), ...get(query), ...set(inQuery)],
  ...[...zero, ...set(low), ...zero, ...set(high)],
  ...[...get(row), ...get(stride), ...add, ...set(rowEnd)],
  ...whileBelow(inRow, get(rowEnd), step),
  ...sum,
  ...[...get(out), ...lanes, ...get(scale), 0x2a, 2, 0, 0x94, 0x38, 2, 0],
  ...[...get(rowEnd), ...set(row), ...advance(scale, 4), ...advance(out, 4)],
])
const locals = [3, 2, i32, 2, v128, 1, i32]

const moduleBytes = Uint8Array.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...section(1, [1, 0x60, ...block([i32, i32, i32, i32, i32, i32]), 0]),
  ...section(2, [1, ...named("m"), ...named("m"), 2, 0, 1]),
  ...section(3, [1, 0]),
  ...section(7, [1, ...named("dots"), 0, 0]),
  ...section(10, [1, ...block([...locals, ...body, 0x0b])]),
])

/**
 * Multiplies rows of int8 with a query of int16, and each sum with its row's scale (float).
 * Places are bytes of the memory; `stride` is the length of a row, a multiple of 16, and `end` is
 * behind the last row, of which there is one at least. Sums of a row must fit 31 bits.
 */
export type Dots = (
  rows: number,
  stride: number,
  end: number,
  query: number,
  scales: number,
  out: number,
) => void

export interface Kernel {
  readonly buffer: ArrayBuffer
  readonly dots: Dots
}

/** Pages of 64 KiB, which take no memory before they are written. */
export const makeKernel = (pages: number): Kernel => {
  const memory = new webAssembly.Memory({ initial: pages, maximum: pages })
  const instance = new webAssembly.Instance(new webAssembly.Module(moduleBytes), {
    m: { m: memory },
  })
  return { buffer: memory.buffer, dots: (instance.exports as { readonly dots: Dots }).dots }
}
