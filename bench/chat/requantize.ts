import { readFileSync, writeFileSync } from "node:fs"
import type { GgufFile } from "../../plugins/backend-onnx/weights/gguf-file.ts"
import type { TensorEntry } from "../../plugins/backend-onnx/weights/tensor-file.ts"

const q4Zero = 2
const blockValues = 32
const blockBytes = 18

const toHalf = (value: number): number => {
  const bits = new Uint32Array(Float32Array.of(value).buffer)[0]!
  const sign = (bits >>> 16) & 0x8000
  const exponent = ((bits >>> 23) & 255) - 112
  const mantissa = bits & 0x7fffff
  if (exponent <= 0)
    return exponent < -10
      ? sign
      : sign | ((((mantissa | 0x800000) >> (1 - exponent)) + 0x1000) >> 13)
  return sign | ((((exponent << 23) | mantissa) + 0x1000) >>> 13)
}

/** As llama.cpp's reference does it: the largest value of a block becomes -8. */
const encode = (values: Float32Array): Buffer => {
  const out = Buffer.alloc((values.length / blockValues) * blockBytes)
  for (let block = 0, at = 0; block < values.length; block += blockValues, at += blockBytes) {
    let largest = 0
    for (let j = 0; j < blockValues; j++)
      if (Math.abs(values[block + j]!) > Math.abs(largest)) largest = values[block + j]!
    const scale = largest / -8
    out.writeUInt16LE(toHalf(scale), at)
    const level = (j: number) =>
      scale ? Math.max(0, Math.min(15, Math.round(values[block + j]! / scale) + 8)) : 8
    for (let j = 0; j < 16; j++) out[at + 2 + j] = level(j) | (level(j + 16) << 4)
  }
  return out
}

const q4Of = (file: GgufFile, tensor: TensorEntry): Buffer => {
  const values = new Float32Array(tensor.rows * tensor.columns)
  tensor.type.decode(file.rows(tensor, 0, tensor.rows), values)
  return encode(values)
}

/**
 * Writes a copy whose Q4_1 matrices are Q4_0, for which llama.cpp has faster kernels. Types and
 * offsets change in place: the header keeps its length.
 */
export const toQ4Zero = (file: GgufFile, path: string): void => {
  const bytes = readFileSync(file.path)
  const tensors = [...file.header.tensors.values()].sort((a, b) => a.offset - b.offset)
  const dataStart = tensors[0]!.offset
  const header = Buffer.from(bytes.subarray(0, dataStart))
  const parts: Buffer[] = []
  let offset = 0
  for (const tensor of tensors) {
    const name = Buffer.from(tensor.name)
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(BigInt(name.length))
    const dimensionsAt = header.indexOf(Buffer.concat([length, name])) + 8 + name.length
    const typeAt = dimensionsAt + 4 + 8 * header.readUInt32LE(dimensionsAt)
    const isQ4 = tensor.type.name === "Q4_1"
    const data = isQ4
      ? q4Of(file, tensor)
      : bytes.subarray(tensor.offset, tensor.offset + tensor.bytes)
    if (isQ4) header.writeUInt32LE(q4Zero, typeAt)
    header.writeBigUInt64LE(BigInt(offset), typeAt + 4)
    const padding = Buffer.alloc((32 - (data.length % 32)) % 32)
    parts.push(data, padding)
    offset += data.length + padding.length
  }
  writeFileSync(path, Buffer.concat([header, ...parts]))
}
