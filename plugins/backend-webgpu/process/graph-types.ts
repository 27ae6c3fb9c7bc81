import { readFileSync } from "node:fs"

/** Fields of onnx.proto3 (onnx/onnx). */
const fields = { graph: 7, initializer: 5, dataType: 2 } as const
const float16 = 10
const [varint, eightBytes, lengthDelimited, fourBytes] = [0, 1, 2, 5]

interface Field {
  readonly number: number
  /** The number of a varint, the bytes of what has a length. */
  readonly value: number | Buffer | undefined
}

/** The fields of a protobuf message. Throws where it is none. */
function* fieldsOf(bytes: Buffer): Generator<Field> {
  let at = 0
  const next = (): number => {
    // values above 2^53 are not looked at
    for (let value = 0, scale = 1; ; scale *= 128) {
      const byte = bytes.readUInt8(at++)
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }
  while (at < bytes.length) {
    const tag = next()
    const [number, type] = [Math.floor(tag / 8), tag % 8]
    if (type === varint) yield { number, value: next() }
    else if (type === lengthDelimited) {
      const length = next()
      yield { number, value: bytes.subarray(at, at + length) }
      at += length
    } else if (type === eightBytes || type === fourBytes) {
      at += type === eightBytes ? 8 : 4
      yield { number, value: undefined }
    } else throw new Error(`no protobuf: wire type ${type}`)
  }
}

const parts = function* (bytes: Buffer, number: number): Generator<Buffer> {
  for (const field of fieldsOf(bytes))
    if (field.number === number && Buffer.isBuffer(field.value)) yield field.value
}

/** Whether weights of an ONNX model are 16-bit floats. */
export const hasHalves = (model: Buffer): boolean => {
  for (const graph of parts(model, fields.graph))
    for (const tensor of parts(graph, fields.initializer))
      for (const { number, value } of fieldsOf(tensor))
        if (number === fields.dataType && value === float16) return true
  return false
}

/**
 * Throws where a graph has 16-bit floats and the device has none: it would open, and fail in each
 * run.
 */
export const checkHalves = (path: string, hasFp16: boolean): void => {
  if (!hasFp16 && hasHalves(readFileSync(path)))
    throw new Error(`${path}: the device has no 16-bit floats (shader-f16), which the graph needs`)
}
