import type { Bytes } from "./extract-parts.ts"
import { ReadFailure } from "./read-failure.ts"

export interface Decoding {
  /** As `TextDecoder` knows it; UTF-8 if absent. */
  readonly encoding?: string
  /** Whether a byte order mark is a character of the text. */
  readonly keepsMark?: boolean
}

const decoderOf = ({ encoding = "utf-8", keepsMark = false }: Decoding) => {
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: keepsMark })
  } catch {
    throw new ReadFailure("broken", `The file names an encoding that is not known: ${encoding}.`)
  }
}

/** The characters of a text that arrives in parts; fails where it is not in its encoding. */
export async function* decodeText(bytes: Bytes, decoding: Decoding = {}): AsyncGenerator<string> {
  const decoder = decoderOf(decoding)
  const decode = (chunk?: Uint8Array) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      const name = decoder.encoding.toUpperCase()
      throw new ReadFailure(
        "broken",
        `The file is not a text in ${name}. Save it as UTF-8, then upload it again.`,
      )
    }
  }
  for await (const chunk of bytes) yield decode(chunk)
  yield decode()
}
