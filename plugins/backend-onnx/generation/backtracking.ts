import { allowedTokens, type TokenMask } from "../sampling/token-mask.ts"

/** What of an answer is held back, at most; what is older has gone out and can't be chosen anew. */
const mostHeldBytes = 16_384
/** Dead ends from which the nearest choice is made anew, before earlier ones are. */
const nearTries = 8
/** Tries for one dead end, and for all of an answer. */
const mostTries = 40
const mostTriesInAll = 400
/** The number of ways that are remembered as closed. */
const mostClosed = 64

const opening = new Set('{[:,"')

interface Step<State> {
  readonly token: number
  /** Offset of its first byte. */
  readonly from: number
  /** Another token was allowed. */
  readonly isOpen: boolean
  /** A name, a value or a delimiter begins here, so that another one may. */
  readonly isBeginning: boolean
  /** The caller's state before the token. */
  readonly before: State
}

/** Bytes that the answer must not have again: they lead to a dead end. */
interface Closed {
  /** Offset of the first of them. */
  readonly from: number
  readonly bytes: string
}

export interface BacktrackingOptions {
  readonly vocabulary: number
  /** Tokens that may be undone, in all. */
  readonly mostUndone: number
  bytesOf(token: number): Uint8Array
}

/** How many beginnings lie between a dead end and the choice that is made anew, for each try. */
const distanceOf = (round: number): number =>
  round < 4 ? round : Math.floor(4 * 1.5 ** (round - 4)) + 1

/**
 * The part of an answer that has not gone out, token by token, and the ways out of its dead ends.
 * A dead end is left by choosing anew: at first the last token that was a choice, then the
 * beginnings of values further and further back. A way that led to a dead end is closed by its
 * bytes, as other tokens may spell them. What is tried depends on nothing but the answer, so the
 * same request takes the same ways.
 */
export class Backtracking<State> {
  private readonly options: BacktrackingOptions
  private readonly steps: Step<State>[] = []
  /** The bytes of `steps`, in latin1, and the offset of the first of them. */
  private text = ""
  private base = 0
  /** The last byte before `text` that is no space; a document begins like a value. */
  private before = ":"
  private closed: Closed[] = []
  private round = 0
  private tries = 0
  private undone = 0
  /** The end of the furthest text that was a dead end. */
  private frontier = 0

  constructor(options: BacktrackingOptions) {
    this.options = options
  }

  /** The number of tokens that are held back. */
  get held(): number {
    return this.steps.length
  }

  /** Holds back no more than the last `count` tokens. */
  release(count: number): void {
    let gone = Math.max(0, this.steps.length - count)
    while (gone < this.steps.length && this.end - this.steps[gone]!.from > mostHeldBytes) gone++
    if (gone === 0) return
    const base = this.steps[gone]?.from ?? this.end
    this.before = this.lastBefore(base)
    this.text = this.text.slice(base - this.base)
    this.base = base
    this.steps.splice(0, gone)
    this.closed = this.closed.filter(({ from, bytes }) => from + bytes.length > base)
  }

  private get end(): number {
    return this.base + this.text.length
  }

  private lastBefore(offset: number): string {
    return (
      this.text
        .slice(0, offset - this.base)
        .trimEnd()
        .at(-1) ?? this.before
    )
  }

  private spell(token: number): string {
    return Buffer.from(this.options.bytesOf(token)).toString("latin1")
  }

  /** Adds a token that was chosen among those of `mask`. */
  add(token: number, mask: TokenMask, before: State): void {
    this.steps.push({
      token,
      from: this.end,
      isOpen: !allowedTokens(mask, this.options.vocabulary, 1),
      isBeginning: opening.has(this.lastBefore(this.end)),
      before,
    })
    this.text += this.spell(token)
  }

  /** The bytes that must not follow: with them the answer would be on a closed way. */
  private get forbidden(): readonly string[] {
    return this.closed.flatMap(({ from, bytes }) => {
      const way = from <= this.base ? bytes.slice(this.base - from) : undefined
      return way !== undefined && way.length > this.text.length && way.startsWith(this.text)
        ? [way.slice(this.text.length)]
        : []
    })
  }

  /**
   * Takes out the tokens that lead into closed ways, and those that begin one, as long as others
   * are left. Returns undefined where no token is left.
   */
  open(mask: TokenMask): TokenMask | undefined {
    const { forbidden } = this
    const { vocabulary } = this.options
    if (forbidden.length === 0) return allowedTokens(mask, vocabulary, 0) ? undefined : mask
    const open = mask.slice()
    const apart = mask.slice()
    let [isOpen, isApart] = [false, false]
    for (const token of allowedTokens(mask, vocabulary, vocabulary)!) {
      const spelling = this.spell(token)
      const bit = 1 << (token & 31)
      const isClosed = spelling !== "" && forbidden.some((way) => spelling.startsWith(way))
      const isBegun = spelling !== "" && forbidden.some((way) => way.startsWith(spelling))
      if (isClosed) open[token >> 5]! &= ~bit
      else isOpen = true
      if (isClosed || isBegun) apart[token >> 5]! &= ~bit
      else isApart = true
    }
    return isApart ? apart : isOpen ? open : undefined
  }

  /**
   * Called at a dead end. Returns the tokens to undo, the last first, and the state before them;
   * undefined: there is no choice left, or it was tried often enough.
   */
  leave(): { readonly tokens: readonly number[]; readonly state: State } | undefined {
    const { steps } = this
    const nearest = steps.findLastIndex(({ isOpen }) => isOpen)
    if (nearest < 0) return undefined
    const beginnings = [...steps.keys()]
      .filter((index) => steps[index]!.isOpen && steps[index]!.isBeginning)
      .reverse()
    // it got beyond the last dead end, and this is another one
    if (steps[beginnings[0] ?? nearest]!.from >= this.frontier) this.round = 0
    this.frontier = Math.max(this.frontier, this.end)
    const far = beginnings[distanceOf(this.round - nearTries)] ?? beginnings.at(-1)
    const to = this.round < nearTries ? nearest : Math.min(nearest, far ?? nearest)
    this.undone += steps.length - to
    if (
      this.round++ >= mostTries ||
      this.tries++ >= mostTriesInAll ||
      this.undone > this.options.mostUndone
    )
      return undefined
    return this.undo(to, to === nearest ? this.end : steps[to + 1]!.from)
  }

  /** Closes the way up to an offset, and goes back to before a step. */
  private undo(to: number, closedUpTo: number) {
    const { steps } = this
    this.closed.push({ from: this.base, bytes: this.text.slice(0, closedUpTo - this.base) })
    if (this.closed.length > mostClosed) this.closed.shift()
    const { from, before } = steps[to]!
    const tokens = steps.splice(to).map(({ token }) => token)
    this.text = this.text.slice(0, from - this.base)
    return { tokens: tokens.reverse(), state: before }
  }
}
