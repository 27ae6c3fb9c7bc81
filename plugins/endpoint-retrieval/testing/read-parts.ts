import { extractParts, type Part } from "../extract/extract-parts.ts"
import type { Kind } from "../extract/kind.ts"

/** The parts of a file whose bytes arrive in pieces of 100. */
export const partsOf = async (
  kind: Kind,
  file: string | Uint8Array,
  maxPages = 100,
): Promise<readonly Part[]> => {
  const bytes = Buffer.from(file as string)
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += 100) yield bytes.subarray(at, at + 100)
  }
  const parts: Part[] = []
  for await (const part of extractParts(kind, pieces(), { maxPages })) parts.push(part)
  return parts
}

/** The extracted text of a file. */
export const textOf = async (kind: Kind, file: string | Uint8Array): Promise<string> =>
  (await partsOf(kind, file)).map(({ text }) => text).join("")
