/** Writes GGUF files for tests. */

export type GgufValue =
  | string
  | boolean
  | number
  | { readonly f32: number }
  | readonly string[]
  | readonly number[]
  | readonly { readonly f32: number }[]

export interface GgufTensor {
  readonly name: string
  /** Columns first. */
  readonly dimensions: readonly number[]
  readonly type: number
  readonly bytes: Uint8Array
}

export interface GgufContent {
  readonly metadata: Readonly<Record<string, GgufValue>>
  readonly tensors: readonly GgufTensor[]
}

export const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

export const u64 = (value: number | bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

const f32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}

const text = (value: string): Buffer =>
  Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)])

const typed = (value: GgufValue): Buffer => {
  if (typeof value === "string") return Buffer.concat([u32(8), text(value)])
  if (typeof value === "boolean") return Buffer.concat([u32(7), Buffer.from([value ? 1 : 0])])
  if (typeof value === "number") return Buffer.concat([u32(4), u32(value)])
  if ("f32" in value) return Buffer.concat([u32(6), f32(value.f32)])
  const [first] = value
  const type = typeof first === "string" ? 8 : typeof first === "number" ? 5 : 6
  const items = value.map((item) =>
    typeof item === "string" ? text(item) : typeof item === "number" ? u32(item) : f32(item.f32),
  )
  return Buffer.concat([u32(9), u32(type), u64(value.length), ...items])
}

const alignment = 32
const padded = (bytes: Uint8Array): Buffer =>
  Buffer.concat([bytes, Buffer.alloc((alignment - (bytes.length % alignment)) % alignment)])

const paddedLength = (length: number): number => Math.ceil(length / alignment) * alignment

/** All that comes before the tensors' bytes, each of which is padded to 32. */
export const writeGgufHeader = (
  metadata: GgufContent["metadata"],
  tensors: readonly (Omit<GgufTensor, "bytes"> & { readonly length: number })[],
): Buffer => {
  const entries = Object.entries(metadata).map(([key, value]) =>
    Buffer.concat([text(key), typed(value)]),
  )
  let offset = 0
  const directory = tensors.map(({ name, dimensions, type, length }) => {
    const entry = Buffer.concat([
      text(name),
      u32(dimensions.length),
      ...dimensions.map(u64),
      u32(type),
      u64(offset),
    ])
    offset += paddedLength(length)
    return entry
  })
  return padded(
    Buffer.concat([
      Buffer.from("GGUF"),
      u32(3),
      u64(tensors.length),
      u64(entries.length),
      ...entries,
      ...directory,
    ]),
  )
}

export const writeGguf = ({ metadata, tensors }: GgufContent): Buffer =>
  Buffer.concat([
    writeGgufHeader(
      metadata,
      tensors.map((tensor) => ({ ...tensor, length: tensor.bytes.length })),
    ),
    ...tensors.map((tensor) => padded(tensor.bytes)),
  ])

/** Splits a file as `llama-gguf-split` of llama.cpp does: the first part has the metadata. */
export const splitGguf = ({ metadata, tensors }: GgufContent, count: number): GgufContent[] =>
  Array.from({ length: count }, (_, at) => ({
    metadata: {
      ...(at === 0 && metadata),
      "split.no": at,
      "split.count": count,
      "split.tensors.count": tensors.length,
    },
    tensors: tensors.slice((at * tensors.length) / count, ((at + 1) * tensors.length) / count),
  }))
