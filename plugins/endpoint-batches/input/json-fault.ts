/** The token that must come next. */
type Next = "value" | "value or ]" | "name" | "name or }" | ":" | ", or the end"

const space = /[ \t\n\r]*/y
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const escaped = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** End of the match of `pattern` at `at`; `at` itself without a match. */
const reach = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

interface Step {
  readonly at: number
  readonly isFault?: true
}

/**
 * Skips the string at `from`; in a loop, as a regular expression overflows its stack on megabytes.
 */
const skipString = (text: string, from: number): Step => {
  if (text[from] !== '"') return { at: from, isFault: true }
  for (let at = from + 1; at < text.length; at++) {
    const unit = text[at] ?? ""
    if (unit === '"') return { at: at + 1 }
    if (unit < " ") return { at, isFault: true }
    if (unit !== "\\") continue
    const end = reach(escaped, text, at)
    if (end === at) return { at, isFault: true }
    at = end - 1
  }
  return { at: text.length, isFault: true }
}

const skipScalar = (text: string, from: number): Step => {
  if (text[from] === '"') return skipString(text, from)
  const at = reach(scalar, text, from)
  return at === from ? { at, isFault: true } : { at }
}

/**
 * Index of the first character that can't be JSON; undefined: the text is JSON. `JSON.parse` gives
 * the position of some errors only, and quotes the text.
 * Without recursion, as the text decides how deep it nests.
 */
export const jsonFault = (text: string): number | undefined => {
  const open: ("}" | "]")[] = []
  let next = "value" as Next
  /** Consumes one token at `at`. */
  const step = (at: number): Step => {
    const mark = text[at]
    const close = open.at(-1)
    if (
      mark !== undefined &&
      mark === close &&
      (next === ", or the end" || next === `name or ${close}` || next === `value or ${close}`)
    ) {
      open.pop()
      next = ", or the end"
      return { at: at + 1 }
    }
    if (next === ":" || next === ", or the end") {
      if (close === undefined || mark !== next[0]) return { at, isFault: true }
      next = next !== ":" && close === "}" ? "name" : "value"
      return { at: at + 1 }
    }
    const wantsName = next === "name" || next === "name or }"
    if (!wantsName && (mark === "{" || mark === "[")) {
      open.push(mark === "{" ? "}" : "]")
      next = mark === "{" ? "name or }" : "value or ]"
      return { at: at + 1 }
    }
    next = wantsName ? ":" : ", or the end"
    return wantsName ? skipString(text, at) : skipScalar(text, at)
  }
  for (let at = reach(space, text, 0); ; at = reach(space, text, at)) {
    if (at === text.length && open.length === 0 && next === ", or the end") return undefined
    const { at: after, isFault } = step(at)
    if (isFault) return after
    at = after
  }
}
