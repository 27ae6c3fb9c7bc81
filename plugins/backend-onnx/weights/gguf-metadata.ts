import type { ByteCursor } from "./byte-cursor.ts"
import { Damaged } from "./model-file-error.ts"

export type MetadataValue = string | number | boolean | readonly MetadataValue[]
export type Metadata = ReadonlyMap<string, MetadataValue>

const maxTextBytes = 16 * 2 ** 20
const maxArrayLength = 2 ** 24
const maxArrayDepth = 4

const lengthOf = (cursor: ByteCursor, most: number, what: string): number => {
  const length = cursor.u64()
  if (length > most) throw new Damaged(`${what} claims a length of ${length}, the most is ${most}`)
  return length
}

export const readText = (cursor: ByteCursor, what: string): string =>
  cursor.text(lengthOf(cursor, maxTextBytes, what))

const textType = 8
const arrayType = 9

const scalarReaders: Readonly<
  Record<number, (cursor: ByteCursor, key: string) => string | number | boolean>
> = {
  0: (c) => c.u8(),
  1: (c) => c.i8(),
  2: (c) => c.u16(),
  3: (c) => c.i16(),
  4: (c) => c.u32(),
  5: (c) => c.i32(),
  6: (c) => c.f32(),
  7: (c) => c.u8() !== 0,
  [textType]: (c, key) => readText(c, `the text of '${key}'`),
  10: (c) => c.u64(),
  11: (c) => c.i64(),
  12: (c) => c.f64(),
}

const readerOf = (type: number, key: string) => {
  const read = scalarReaders[type]
  if (!read) throw new Damaged(`'${key}' has the unknown value type ${type}`)
  return read
}

const readArray = (cursor: ByteCursor, key: string, depth: number): readonly MetadataValue[] => {
  if (depth > maxArrayDepth)
    throw new Damaged(`the array '${key}' holds arrays in arrays, more than ${maxArrayDepth} deep`)
  const type = cursor.u32()
  const read = type === arrayType ? () => readArray(cursor, key, depth + 1) : readerOf(type, key)
  const length = lengthOf(cursor, maxArrayLength, `the array '${key}'`)
  const values: MetadataValue[] = []
  for (let i = 0; i < length; i++) values.push(read(cursor, key))
  return values
}

export const readMetadataValue = (cursor: ByteCursor, key: string): MetadataValue => {
  const type = cursor.u32()
  return type === arrayType ? readArray(cursor, key, 1) : readerOf(type, key)(cursor, key)
}

const wrongType = (key: string, wanted: string, found: MetadataValue | undefined): Damaged =>
  new Damaged(found === undefined ? `the metadata has no '${key}'` : `'${key}' is not ${wanted}`)

export const numberIn = (metadata: Metadata, key: string): number => {
  const value = metadata.get(key)
  if (typeof value !== "number" || !Number.isFinite(value)) throw wrongType(key, "a number", value)
  return value
}

/** Reads an integer between 1 and `most`. */
export const countIn = (metadata: Metadata, key: string, most: number): number => {
  const value = numberIn(metadata, key)
  if (!Number.isInteger(value) || value < 1 || value > most)
    throw new Damaged(`'${key}' is ${value}, not between 1 and ${most}`)
  return value
}

/** In JSON `null` stands for an absent value. */
export const present = (metadata: Metadata, key: string): boolean =>
  (metadata.get(key) ?? undefined) !== undefined

export const numberOr = (metadata: Metadata, key: string, byDefault: number): number =>
  present(metadata, key) ? numberIn(metadata, key) : byDefault

export const countOr = (
  metadata: Metadata,
  key: string,
  most: number,
  byDefault: number,
): number => (present(metadata, key) ? countIn(metadata, key, most) : byDefault)

export const textIn = (metadata: Metadata, key: string): string => {
  const value = metadata.get(key)
  if (typeof value !== "string") throw wrongType(key, "a text", value)
  return value
}

export const textOr = (metadata: Metadata, key: string, byDefault: string): string =>
  present(metadata, key) ? textIn(metadata, key) : byDefault

export const textsIn = (metadata: Metadata, key: string): readonly string[] => {
  const value = metadata.get(key)
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string"))
    throw wrongType(key, "an array of texts", value)
  return value
}

export const numbersIn = (metadata: Metadata, key: string): readonly number[] => {
  const value = metadata.get(key)
  if (!Array.isArray(value) || !value.every((item) => typeof item === "number"))
    throw wrongType(key, "an array of numbers", value)
  return value
}
