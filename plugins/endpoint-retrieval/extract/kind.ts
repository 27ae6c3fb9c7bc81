/** The kinds of knowledge files, by the ends of their names. */
export const kinds = ["pdf", "txt", "md", "html", "htm", "docx", "csv"] as const
export type Kind = (typeof kinds)[number]

/** The kind that a file's name declares, or undefined. */
export const kindOf = (name: string): Kind | undefined => {
  const end = name.slice(name.lastIndexOf(".") + 1).toLowerCase()
  return kinds.find((kind) => kind === end)
}

/** The file's own faults that reading it finds. */
export type ReadFailureCode =
  | "encrypted"
  | "no_text"
  | "empty"
  | "broken"
  | "too_large"
  | "too_slow"

/** A piece of a file's extracted text. */
export interface Chunk {
  /** From 0 on, without gaps. */
  readonly index: number
  readonly text: string
  /** The page it is on, from 1 on; absent in formats without pages. No chunk spans two pages. */
  readonly page?: number
  /** Characters (code points) of the extracted text, the end exclusive. */
  readonly start: number
  readonly end: number
}

/** What was read since the last batch, and the counts so far. */
export interface ReadBatch {
  readonly chunks: readonly Chunk[]
  /** Pages read so far; absent in formats without pages. */
  readonly pages?: number
  /** Characters (code points) of the extracted text so far. */
  readonly characters: number
}
