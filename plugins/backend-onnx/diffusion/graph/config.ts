import { type Metadata, numbersIn, present, textsIn } from "../../weights/gguf-metadata.ts"
import { Damaged, Unsupported } from "../../weights/model-file-error.ts"

/** Reads true or false; throws `Damaged`. */
export const flagOr = (json: Metadata, key: string, byDefault: boolean): boolean => {
  const value: unknown = json.get(key) ?? byDefault
  if (typeof value !== "boolean") throw new Damaged(`'${key}' is neither true nor false`)
  return value
}

/** Reads the channels of the levels of a network, which `groups` divides; throws `Damaged`. */
export const channelsIn = (json: Metadata, key: string, groups: number): readonly number[] => {
  const channels = numbersIn(json, key)
  const isSize = (value: number) => Number.isInteger(value) && value > 0 && value <= 65_536
  if (!channels.length || channels.length > 8 || !channels.every(isSize))
    throw new Damaged(`'${key}' is no list of up to 8 sizes`)
  const odd = channels.find((value) => value % groups)
  if (odd) throw new Damaged(`${groups} groups don't fit ${odd} channels of '${key}'`)
  return channels
}

/** Refuses lists of blocks with others than these; throws `Unsupported`. */
export const onlyBlocks = (json: Metadata, key: string, known: readonly string[]): void => {
  if (!present(json, key)) return
  for (const name of textsIn(json, key))
    if (!known.includes(name))
      throw new Unsupported(`'${key}' has '${name}'; this backend builds ${known.join(", ")}`)
}
