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
