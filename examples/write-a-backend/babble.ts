import type { ChatEvent, ChatRequest } from "rakit/core"

const vocabulary =
  "the sea wind a small boat rows out and home again over waves that sing of salt rain stars".split(
    " ",
  )

/** FNV-1a, for numbers that look random and are the same every time. */
const hash = (text: string): number => {
  let h = 0x811c9dc5
  for (const char of text) h = Math.imul(h ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0
  return h
}

/** A word with the space before it is a token. */
export const countTokens = (text: string): number => text.match(/\S+/g)?.length ?? 0

/** Endless words: the same for the same seed text. */
export function* wordsOf(seedText: string): Generator<string> {
  for (let i = 0, h = hash(seedText); ; i++) {
    h = hash(`${h} ${i}`)
    yield `${i === 0 ? "" : " "}${vocabulary[h % vocabulary.length]}`
  }
}

/** What one token brings. */
export interface Step {
  readonly outputTokens: number
  readonly events: readonly ChatEvent[]
}

const textEvent = (text: string): readonly ChatEvent[] =>
  text === "" ? [] : [{ type: "text", text }]

/**
 * Cuts words at `maxTokens` and before the first stop string; what may be the beginning of one is
 * held back.
 */
export function* stepsOf(
  words: Iterable<string>,
  { stop, maxTokens }: Pick<ChatRequest, "stop" | "maxTokens">,
): Generator<Step> {
  const held = Math.max(0, ...stop.map((one) => one.length - 1))
  let text = ""
  let shown = 0
  let outputTokens = 0
  for (const word of words) {
    text += word
    outputTokens++
    const ends = stop.map((one) => text.indexOf(one)).filter((at) => at >= 0)
    const isFull = outputTokens === maxTokens
    const end = ends.length > 0 ? Math.min(...ends) : isFull ? text.length : undefined
    if (end !== undefined) {
      const reason = ends.length > 0 ? "stop" : "length"
      const finish: ChatEvent = { type: "finish", reason }
      yield { outputTokens, events: [...textEvent(text.slice(shown, end)), finish] }
      return
    }
    const safe = Math.max(shown, text.length - held)
    yield { outputTokens, events: textEvent(text.slice(shown, safe)) }
    shown = safe
  }
}
