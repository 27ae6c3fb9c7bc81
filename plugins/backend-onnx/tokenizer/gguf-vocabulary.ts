import { type Metadata, numbersIn, textsIn } from "../weights/gguf-metadata.ts"
import { Damaged } from "../weights/model-file-error.ts"
import { fromByteLevel } from "./byte-level.ts"
import { isLetter, pieceBytes } from "./pieces.ts"
import { turnMarkers, type Vocabulary } from "./vocabulary.ts"

/** Values of `tokenizer.ggml.token_type`. */
const kinds = { unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const

/**
 * How a vocabulary spells the bytes of its tokens: in the alphabet of 256 letters (`gpt2`), or as
 * text with ▁ for a space (`llama`).
 */
export type Spelling = "byteLevel" | "pieces"

export interface GgufVocabulary extends Vocabulary {
  /** Id of the unknown token, if any. */
  readonly unknown: number | undefined
  isUserDefined(id: number): boolean
  /** Whether an id is unused or reserved. */
  isUnused(id: number): boolean
  /** Ids of tokens that text is made of, rising. */
  readonly plain: readonly number[]
}

const bySpelling: Readonly<Record<Spelling, (token: string) => Buffer>> = {
  byteLevel: fromByteLevel,
  pieces: pieceBytes,
}

/**
 * Reads the vocabulary from a GGUF file's metadata; `size`: rows of the embedding table. Throws
 * `Damaged`.
 */
export const ggufVocabulary = (
  metadata: Metadata,
  size: number,
  spelling: Spelling,
): GgufVocabulary => {
  const tokens = textsIn(metadata, "tokenizer.ggml.tokens")
  if (tokens.length > size)
    throw new Damaged(
      `its vocabulary has ${tokens.length} tokens, its embedding table only ${size}`,
    )
  const types = numbersIn(metadata, "tokenizer.ggml.token_type")
  if (types.length !== tokens.length)
    throw new Damaged(`it has ${types.length} token types for ${tokens.length} tokens`)
  const isControl = (id: number) =>
    turnMarkers.has(tokens[id]!) ||
    ((types[id] === kinds.control || types[id] === kinds.unknown) && !isLetter(tokens[id]!))
  const isUserDefined = (id: number) => types[id] === kinds.userDefined
  const isUnused = (id: number) => types[id] === kinds.unused
  const none = Buffer.alloc(0)
  const bytesOf = (id: number) => {
    if (tokens[id] === undefined || isControl(id) || isUnused(id)) return none
    return isUserDefined(id) ? Buffer.from(tokens[id]) : bySpelling[spelling](tokens[id])
  }
  const unknown = types.indexOf(kinds.unknown)
  const plain = tokens.flatMap((_, id) => (isControl(id) || isUnused(id) ? [] : [id]))
  return {
    tokens,
    isControl,
    isUserDefined,
    isUnused,
    bytesOf,
    plain,
    unknown: unknown < 0 ? undefined : unknown,
  }
}
