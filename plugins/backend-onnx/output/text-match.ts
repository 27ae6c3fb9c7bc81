/** The index behind a match; "more": it may match once more text is there. */
export type Match = number | "no" | "more"

const space = /\s/

export const skipSpace = (text: string, from: number): number => {
  let at = from
  while (at < text.length && space.test(text[at]!)) at++
  return at
}

/** Matches optional white space, then exactly `wanted`. */
export const literal = (text: string, from: number, wanted: string): Match => {
  const at = skipSpace(text, from)
  const found = text.slice(at, at + wanted.length)
  if (found === wanted) return at + wanted.length
  return wanted.startsWith(found) ? "more" : "no"
}

/** Matches literals one after the other. */
export const literals = (text: string, from: number, wanted: readonly string[]): Match => {
  let at: Match = from
  for (const one of wanted) {
    at = literal(text, at, one)
    if (typeof at === "string") return at
  }
  return at
}

/** Returns the number of characters at the end that may be the beginning of `wanted`. */
export const begun = (text: string, wanted: string): number => {
  for (let length = Math.min(wanted.length - 1, text.length); length > 0; length--)
    if (text.endsWith(wanted.slice(0, length))) return length
  return 0
}

/** Finds the end of a JSON object that arrives in pieces. */
export class ObjectEnd {
  private depth = 0
  private isInString = false
  private isEscaped = false

  /** Returns the index behind the object's end; -1: it does not end in this piece. */
  find(text: string): number {
    for (let at = 0; at < text.length; at++) if (this.closes(text[at]!)) return at + 1
    return -1
  }

  private closes(character: string): boolean {
    if (this.isEscaped) this.isEscaped = false
    else if (this.isInString) {
      this.isEscaped = character === "\\"
      this.isInString = character !== '"'
    } else if (character === '"') this.isInString = true
    else if (character === "{" || character === "[") this.depth++
    else if (character === "}" || character === "]") return --this.depth === 0
    return false
  }
}
