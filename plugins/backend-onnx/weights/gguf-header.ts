import { ByteCursor } from "./byte-cursor.ts"
import { ggmlTypeLabel, ggmlTypes } from "./ggml-types.ts"
import { type Metadata, type MetadataValue, readMetadataValue, readText } from "./gguf-metadata.ts"
import { Damaged, Unsupported } from "./model-file-error.ts"
import type { TensorEntry, TensorHeader } from "./tensor-file.ts"

export interface GgufHeader extends TensorHeader {
  readonly metadata: Metadata
}

const maxEntries = 65_536
const maxValues = 2 ** 40

const readMetadata = (cursor: ByteCursor, count: number): Metadata => {
  const metadata = new Map<string, MetadataValue>()
  for (let i = 0; i < count; i++) {
    const key = readText(cursor, "a metadata key")
    if (metadata.has(key)) throw new Damaged(`the metadata has '${key}' twice`)
    metadata.set(key, readMetadataValue(cursor, key))
  }
  return metadata
}

const readDimensions = (cursor: ByteCursor, name: string): readonly number[] => {
  const count = cursor.u32()
  if (count < 1 || count > 4) throw new Damaged(`the tensor '${name}' has ${count} dimensions`)
  const dimensions = Array.from({ length: count }, () => cursor.u64())
  if (dimensions.some((d) => d < 1) || dimensions.reduce((a, b) => a * b) > maxValues)
    throw new Damaged(`the tensor '${name}' has the impossible shape ${dimensions.join(" x ")}`)
  return dimensions
}

/** The offset counts from the start of the data section. */
const readTensor = (cursor: ByteCursor): TensorEntry => {
  const name = readText(cursor, "a tensor's name")
  const dimensions = readDimensions(cursor, name)
  const typeId = cursor.u32()
  const type = ggmlTypes.get(typeId)
  if (!type)
    throw new Unsupported(
      `the tensor '${name}' has the type ${ggmlTypeLabel(typeId)}, which this backend can't read (it reads ${[...ggmlTypes.values()].map((t) => t.name).join(", ")})`,
    )
  const columns = dimensions[0]!
  const rows = dimensions.slice(1).reduce((a, b) => a * b, 1)
  if (columns % type.blockValues)
    throw new Damaged(
      `the tensor '${name}' has rows of ${columns} values, not a multiple of ${type.blockValues}`,
    )
  return {
    name,
    type,
    columns,
    rows,
    offset: cursor.u64(),
    bytes: (columns / type.blockValues) * type.blockBytes * rows,
  }
}

const alignmentOf = (metadata: Metadata): number => {
  const value = metadata.get("general.alignment") ?? 32
  if (
    typeof value !== "number" ||
    !Number.isInteger(Math.log2(value)) ||
    value < 8 ||
    value > 2 ** 20
  )
    throw new Damaged(`the alignment ${value} is impossible`)
  return value
}

/**
 * Reads a GGUF header, version 2 or 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
 * `bytes` is the file's start; throws `BytesMissing` when the header is longer and `Damaged` when
 * it is wrong.
 */
export const parseGgufHeader = (bytes: Buffer, fileBytes: number): GgufHeader => {
  const cursor = new ByteCursor(bytes)
  if (cursor.text(4) !== "GGUF") throw new Damaged("this is not a GGUF file (wrong magic)")
  const version = cursor.u32()
  if (version >= 2 ** 24 && !(version % 2 ** 24))
    throw new Unsupported(
      "it is a big-endian GGUF file; this backend reads little-endian ones",
      "Name the little-endian file",
    )
  if (version !== 2 && version !== 3)
    throw new Unsupported(`GGUF version ${version} is unknown; 2 and 3 can be read`)
  const [tensorCount, metadataCount] = [cursor.u64(), cursor.u64()]
  if (tensorCount > maxEntries || metadataCount > maxEntries)
    throw new Damaged(
      `it claims ${tensorCount} tensors and ${metadataCount} metadata entries, the most is ${maxEntries}`,
    )
  const metadata = readMetadata(cursor, metadataCount)
  const entries = Array.from({ length: tensorCount }, () => readTensor(cursor))
  const alignment = alignmentOf(metadata)
  const dataStart = Math.ceil(cursor.at / alignment) * alignment
  const tensors = new Map<string, TensorEntry>()
  for (const entry of entries) {
    const offset = dataStart + entry.offset
    if (tensors.has(entry.name)) throw new Damaged(`it has the tensor '${entry.name}' twice`)
    if (offset + entry.bytes > fileBytes)
      throw new Damaged(
        `it is cut: the tensor '${entry.name}' ends at byte ${offset + entry.bytes}, the file at ${fileBytes}`,
      )
    tensors.set(entry.name, { ...entry, offset })
  }
  return { metadata, tensors }
}
