export interface Scanned {
  readonly text: string
  readonly stopped: boolean
}

/** The part of a text in which stop strings are searched. */
export interface StopRange {
  /** From the end of this text on; absent: from the beginning. */
  readonly after?: string
  /**
   * Until this text begins; absent: to the end. It takes precedence over stop strings inside it.
   */
  readonly until?: string
}

interface Match {
  readonly start: number
  readonly end: number
}

/**
 * Returns the stop string that is complete first; of those that end together the one that begins
 * first.
 */
const firstMatch = (text: string, stops: readonly string[]): Match | undefined => {
  let first: Match | undefined
  for (const stop of stops) {
    const start = text.indexOf(stop)
    const end = start + stop.length
    if (start >= 0 && (!first || end < first.end || (end === first.end && start < first.start)))
      first = { start, end }
  }
  return first
}

/** Returns the number of characters at the end that could still become one of the words. */
const undecided = (text: string, words: readonly string[]): number => {
  let most = 0
  for (const word of words)
    for (let length = Math.min(word.length - 1, text.length); length > most; length--)
      if (text.endsWith(word.slice(0, length))) {
        most = length
        break
      }
  return most
}

/**
 * Passes text through up to the first stop string, and holds back what may be the beginning of one.
 * The result does not depend on how the text is cut into pieces.
 * States: before (`after` has not appeared) -> scanning -> past (`until` has appeared).
 */
export class StopScanner {
  private readonly stops: readonly string[]
  private readonly after: string
  private readonly until: string
  private state: "before" | "scanning" | "past"
  private held = ""
  /** The end of the text that may be the beginning of `after`; it was passed through already. */
  private before = ""

  constructor(stops: readonly string[], { after = "", until = "" }: StopRange = {}) {
    // a lone surrogate never appears in decoded text
    this.stops = stops.filter((stop) => stop !== "" && !/\p{Surrogate}/u.test(stop))
    this.after = after
    this.until = until
    this.state = after ? "before" : "scanning"
  }

  push(piece: string): Scanned {
    if (this.state === "before") return this.pushBefore(piece)
    if (this.state === "past" || !this.stops.length) return { text: piece, stopped: false }
    return this.scan(this.held + piece)
  }

  private pushBefore(piece: string): Scanned {
    const text = this.before + piece
    const start = text.indexOf(this.after)
    if (start < 0) {
      this.before = text.slice(text.length - undecided(text, [this.after]))
      return { text: piece, stopped: false }
    }
    this.state = "scanning"
    const rest = text.slice(start + this.after.length)
    const { text: more, stopped } = this.push(rest)
    return { text: piece.slice(0, piece.length - rest.length) + more, stopped }
  }

  private scan(text: string): Scanned {
    const match = firstMatch(text, this.stops)
    const until = this.until ? text.indexOf(this.until) : -1
    if (until >= 0 && until < (match?.end ?? Number.POSITIVE_INFINITY)) {
      this.state = "past"
      this.held = ""
      return { text, stopped: false }
    }
    const untilMay = text.length - undecided(text, [this.until])
    if (match && match.end <= untilMay) {
      this.held = ""
      return { text: text.slice(0, match.start), stopped: true }
    }
    const out = match
      ? Math.min(match.start, untilMay)
      : text.length - undecided(text, [...this.stops, this.until])
    this.held = text.slice(out)
    return { text: text.slice(0, out), stopped: false }
  }

  /** Returns the text that was held back, after the last piece. */
  end(): Scanned {
    const { held } = this
    this.held = ""
    const match = firstMatch(held, this.stops)
    return match
      ? { text: held.slice(0, match.start), stopped: true }
      : { text: held, stopped: false }
  }
}
