import { type GgmlType, ggmlTypes } from "./ggml-types.ts"
import { Damaged } from "./model-file-error.ts"
import { type ReadAt, type TensorEntry, TensorFile, type TensorHeader } from "./tensor-file.ts"

interface SafetensorsHeader extends TensorHeader {
  /** Texts by name, as who wrote the file left them. */
  readonly metadata: ReadonlyMap<string, unknown>
}

const maxHeaderBytes = 32 * 2 ** 20
const maxValues = 2 ** 40

const types: ReadonlyMap<unknown, GgmlType> = new Map(
  [...ggmlTypes.values()].filter((type) => type.blockValues === 1).map((type) => [type.name, type]),
)

/** Bytes of a value of the types that are not floats of a model. */
const otherBytes: ReadonlyMap<unknown, number> = new Map(
  [
    "BOOL U8 I8 F8_E4M3 F8_E5M2".split(" "),
    "U16 I16".split(" "),
    "U32 I32".split(" "),
    "U64 I64 F64".split(" "),
  ].flatMap((names, power) => names.map((name) => [name, 2 ** power] as const)),
)

const unreadable = (name: string, blockBytes: number): GgmlType => ({
  name,
  blockValues: 1,
  blockBytes,
  decode: () => {},
  unreadable: true,
})

const isIntegers = (value: unknown): value is readonly number[] =>
  Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0)

/**
 * `dataStart`: the origin of the offsets. Tensors of unsupported types (such as position ids) are
 * refused only when they are read.
 */
const entryOf = (
  name: string,
  value: unknown,
  dataStart: number,
  fileBytes: number,
): TensorEntry => {
  const {
    dtype,
    shape,
    data_offsets: offsets,
  } = (value ?? {}) as {
    readonly dtype?: unknown
    readonly shape?: unknown
    readonly data_offsets?: unknown
  }
  if (
    typeof dtype !== "string" ||
    !isIntegers(shape) ||
    !isIntegers(offsets) ||
    offsets.length !== 2
  )
    throw new Damaged(`the entry of the tensor '${name}' is not one`)
  const values = shape.reduce((a, b) => a * b, 1)
  const [from, to] = offsets as readonly [number, number]
  const valueBytes = otherBytes.get(dtype) ?? (to - from) / values
  const type = types.get(dtype) ?? unreadable(dtype, valueBytes)
  if (values < 1 || values > maxValues || to < from || to - from !== values * type.blockBytes)
    throw new Damaged(
      `the tensor '${name}' of the shape ${shape.join(" x ")} has ${to - from} bytes`,
    )
  if (dataStart + to > fileBytes)
    throw new Damaged(
      `it is cut: the tensor '${name}' ends at byte ${dataStart + to}, the file at ${fileBytes}`,
    )
  // kernels of convolutions have more dimensions: a row is one of them
  const rows = shape.length > 1 ? shape[0]! : 1
  return {
    name,
    type,
    columns: values / rows,
    rows,
    ...(shape.length === 3 && { matrixRows: shape[1]! }),
    offset: dataStart + from,
    bytes: to - from,
  }
}

/** Reads the header of a safetensors file (https://github.com/huggingface/safetensors#format). */
export const parseSafetensorsHeader = (read: ReadAt, fileBytes: number): SafetensorsHeader => {
  if (fileBytes < 8) throw new Damaged("this is not a safetensors file (it is too short)")
  const length = Number(read(0, 8).readBigUInt64LE())
  if (length > maxHeaderBytes || 8 + length > fileBytes)
    throw new Damaged(
      `this is not a safetensors file, or it is cut: it claims a header of ${length} bytes and has ${fileBytes}`,
    )
  let header: unknown
  try {
    header = JSON.parse(read(8, length).toString("utf8"))
  } catch (cause) {
    throw new Damaged(`its header is not JSON (${(cause as Error).message})`)
  }
  if (typeof header !== "object" || header === null)
    throw new Damaged("its header is not an object")
  const tensors = new Map<string, TensorEntry>()
  for (const [name, value] of Object.entries(header)) {
    if (name !== "__metadata__") tensors.set(name, entryOf(name, value, 8 + length, fileBytes))
  }
  const { __metadata__: metadata } = header as { readonly __metadata__?: unknown }
  return { tensors, metadata: new Map(Object.entries(metadata ?? {})) }
}

export const openSafetensors = (path: string): TensorFile<SafetensorsHeader> =>
  TensorFile.open(path, parseSafetensorsHeader)
