export interface Scanned {
  readonly text: string
  readonly stopped: boolean
}

/** The stop string that is complete first; of those that end together the one that begins first. */
const firstMatch = (text: string, stops: readonly string[]): { readonly start: number; readonly end: number } | undefined => {
  let first: { readonly start: number; readonly end: number } | undefined
  for (const stop of stops) {
    const start = text.indexOf(stop)
    const end = start + stop.length
    if (start >= 0 && (!first || end < first.end || (end === first.end && start < first.start))) first = { start, end }
  }
  return first
}

/** How many characters at the end could still become a stop string. */
const undecided = (text: string, stops: readonly string[]): number => {
  let most = 0
  for (const stop of stops)
    for (let length = Math.min(stop.length - 1, text.length); length > most; length--)
      if (text.endsWith(stop.slice(0, length))) {
        most = length
        break
      }
  return most
}

/** Lets text through up to the first stop string, and nothing that may turn out to be the beginning of one. Does not depend on how the text is cut into pieces. */
export class StopScanner {
  private readonly stops: readonly string[]
  private held = ""

  constructor(stops: readonly string[]) {
    // half a surrogate pair never appears in whole characters
    this.stops = stops.filter((stop) => stop !== "" && !/\p{Surrogate}/u.test(stop))
  }

  push(piece: string): Scanned {
    const text = this.held + piece
    const match = firstMatch(text, this.stops)
    if (match) {
      this.held = ""
      return { text: text.slice(0, match.start), stopped: true }
    }
    const keep = undecided(text, this.stops)
    this.held = text.slice(text.length - keep)
    return { text: text.slice(0, text.length - keep), stopped: false }
  }

  /** What was held back, when no more text comes. */
  end(): string {
    const { held } = this
    this.held = ""
    return held
  }
}
