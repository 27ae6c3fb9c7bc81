import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { u64 } from "./gguf-writer.ts"

/** Writes safetensors files of fp32 and int8 tensors, for tests. */

export interface FloatTensor {
  readonly name: string
  readonly shape: readonly number[]
  readonly values: Float32Array
}

export interface IntegerTensor {
  readonly name: string
  readonly shape: readonly number[]
  readonly values: Int8Array
}

export const writeSafetensors = (tensors: readonly (FloatTensor | IntegerTensor)[]): Buffer => {
  let end = 0
  const entries = tensors.map(({ name, shape, values }) => {
    const start = end
    end += values.byteLength
    return [
      name,
      { dtype: values instanceof Int8Array ? "I8" : "F32", shape, data_offsets: [start, end] },
    ] as const
  })
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([
    length,
    header,
    ...tensors.map(({ values }) =>
      Buffer.from(values.buffer, values.byteOffset, values.byteLength),
    ),
  ])
}

type TensorEntries = Record<
  string,
  { dtype: string; shape: number[]; data_offsets: [number, number] }
>

/** Changes the header of a folder's model.safetensors, or its bytes after it, which `more` lengthen. */
export const changeSafetensors = (
  folder: string,
  change: (entries: TensorEntries, data: Buffer) => void,
  more: Uint8Array = new Uint8Array(),
): void => {
  const path = join(folder, "model.safetensors")
  const bytes = readFileSync(path)
  const end = 8 + Number(bytes.readBigUInt64LE())
  const entries = JSON.parse(bytes.subarray(8, end).toString("utf8"))
  const data = bytes.subarray(end)
  change(entries, data)
  const head = Buffer.from(JSON.stringify(entries))
  writeFileSync(path, Buffer.concat([u64(head.length), head, data, more]))
}
