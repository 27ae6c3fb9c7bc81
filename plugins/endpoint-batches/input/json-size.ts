import { defaultBounds, maxDepth } from "../../../core/index.ts"

/** A line nests its body. */
const levels = maxDepth + 1
/** As many as an embedding of token arrays holds. */
const maxElements = 600_000

/** Index behind the string that begins before `from`. */
const endOfString = (text: string, from: number): number => {
  let end = text.indexOf('"', from)
  while (end >= 0) {
    let slashes = 0
    while (text[end - 1 - slashes] === "\\") slashes++
    if (slashes % 2 === 0) return end + 1
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

/**
 * What a line has too much of, in words, before it is parsed: 8 MB of `[[[[` would become hundreds
 * of megabytes, and 8 MB of keys take a second.
 */
export const excessOf = (text: string): string | undefined => {
  let [depth, keys, values, elements] = [0, 0, 0, 0]
  for (let at = 0; at < text.length; ) {
    const mark = text[at++]
    if (mark === '"') {
      values++
      at = endOfString(text, at)
    } else if (mark === "{" || mark === "[") {
      values++
      if (++depth > levels) return `is nested deeper than ${levels} levels`
    } else if (mark === "}" || mark === "]") depth--
    else if (mark === ":") keys++
    else if (mark === ",") elements++
  }
  const count = (most: number) => most.toLocaleString("en")
  if (keys > defaultBounds.keys) return `has more than ${count(defaultBounds.keys)} keys`
  if (values > defaultBounds.values)
    return `has more than ${count(defaultBounds.values)} objects, arrays and strings`
  return elements > maxElements ? `has more than ${count(maxElements)} values` : undefined
}
