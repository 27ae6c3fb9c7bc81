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

/** Masks with more tokens leave a choice. */
const few = 128

const opening = new Set('{[:,"')
const space = /[ \n\r\t]/

/** Where in a document a place is: spaces are text only within a string. */
interface Place {
  readonly isInString: boolean
  readonly isEscaped: boolean
}

/** Returns a piece of a document without the spaces between its parts, and the place behind it. */
const compact = (text: string, from: Place): { readonly piece: string; readonly place: Place } => {
  let { isInString, isEscaped } = from
  let piece = ""
  for (const char of text) {
    if (isInString || !space.test(char)) piece += char
    if (char === '"' && !isEscaped) isInString = !isInString
    isEscaped = isInString && char === "\\" && !isEscaped
  }
  return { piece, place: { isInString, isEscaped } }
}

interface Step<State> {
  readonly token: number
  /** Where its text begins. */
  readonly from: number
  readonly place: Place
  /** A token was allowed whose text goes on differently. */
  readonly isOpen: boolean
  /** The length of its text from which on only this one was allowed. */
  readonly own: number
  /** A name, a value or a delimiter begins here, so that another one may. */
  readonly isBeginning: boolean
  /** The caller's state before the token. */
  readonly before: State
}

/** A text that the answer must not have again: it leads to a dead end. */
interface Closed {
  readonly from: number
  readonly text: string
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
 * text, without the spaces between its parts, as other tokens may spell it; at first also the
 * tokens that only begin it, as a vocabulary mostly has tokens for what else may follow them. Where
 * no choice is left, everything is tried once more without this guess. What is tried depends on
 * nothing but the answer, so the same request takes the same ways.
 */
export class Backtracking<State> {
  private readonly options: BacktrackingOptions
  private readonly steps: Step<State>[] = []
  /** The compact text of `steps`, a character for each byte, and the offset where it begins. */
  private text = ""
  private base = 0
  private place: Place = { isInString: false, isEscaped: false }
  /** The last character before `text`; a document begins like a value. */
  private before = ":"
  private closed: Closed[] = []
  private round = 0
  private tries = 0
  private undone = 0
  /** The end of the furthest text that was a dead end. */
  private frontier = 0
  /** All ways that are likely were tried: now a token counts as another way than its beginning. */
  private isExact = false
  /** The tokens that were allowed where the next one is chosen, but for those on closed ways. */
  private last: TokenMask = new Uint32Array()

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
    this.closed = this.closed.filter(({ from, text }) => from + text.length > base)
  }

  private get end(): number {
    return this.base + this.text.length
  }

  private lastBefore(offset: number): string {
    return this.text[offset - this.base - 1] ?? this.before
  }

  private textOf(token: number): string {
    return Buffer.from(this.options.bytesOf(token)).toString("latin1")
  }

  /** Adds a token that was chosen where `open` was called last. */
  add(token: number, before: State): void {
    const { end, place } = this
    const last = this.lastBefore(end)
    const compacted = compact(this.textOf(token), place)
    this.steps.push({
      token,
      from: end,
      place,
      ...this.choiceOf(compacted.piece),
      isBeginning: place.isInString ? last === '"' : opening.has(last),
      before,
    })
    this.text += compacted.piece
    this.place = compacted.place
  }

  private choiceOf(piece: string): Pick<Step<State>, "isOpen" | "own"> {
    if (piece === "") return { isOpen: false, own: 0 }
    const tokens = allowedTokens(this.last, this.options.vocabulary, few)
    if (!tokens) return { isOpen: true, own: piece.length }
    const texts = tokens.map((token) => this.textOf(token))
    const pieces = texts.map((text) => compact(text, this.place).piece)
    const others = pieces.filter((other) =>
      this.isExact ? other !== piece : !other.startsWith(piece) && !piece.startsWith(other),
    )
    const isOpen = texts.includes("") || others.some((other) => other !== "")
    if (this.isExact) return { isOpen, own: piece.length }
    let own = 1
    while (others.some((other) => other.startsWith(piece.slice(0, own)))) own++
    return { isOpen, own: Math.min(own, piece.length) }
  }

  /** The texts that must not follow: with them the answer would be on a closed way. */
  private get forbidden(): readonly string[] {
    return this.closed.flatMap(({ from, text }) => {
      const way = text.slice(this.base - from)
      return way.length > this.text.length && way.startsWith(this.text)
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
    this.last = mask
    if (forbidden.length === 0) return allowedTokens(mask, vocabulary, 0) ? undefined : mask
    const open = mask.slice()
    this.last = open
    const apart = mask.slice()
    let [isOpen, isApart] = [false, false]
    for (const token of allowedTokens(mask, vocabulary, vocabulary)!) {
      const text = this.textOf(token)
      const { piece } = compact(text, this.place)
      const bit = 1 << (token & 31)
      const isClosed = forbidden.some((way) => piece.startsWith(way))
      const isBegun = text !== "" && forbidden.some((way) => way.startsWith(piece))
      if (isClosed) open[token >> 5]! &= ~bit
      else isOpen = true
      if (isClosed || isBegun) apart[token >> 5]! &= ~bit
      else isApart = true
    }
    return isApart ? apart : isOpen ? open : undefined
  }

  /** Forgets the last token, if it is held. */
  drop(): void {
    const step = this.steps.pop()
    if (!step) return
    this.text = this.text.slice(0, step.from - this.base)
    this.place = step.place
  }

  /**
   * Called at a dead end. Returns the tokens to undo, the last first, and the state before them;
   * undefined: there is no choice left, or it was tried often enough.
   */
  leave(): { readonly tokens: readonly number[]; readonly state: State } | undefined {
    const { steps } = this
    const nearest = steps.findLastIndex(({ isOpen }) => isOpen)
    if (nearest < 0) return this.beginAgain()
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
    const { from, own } = steps[to]!
    return this.undo(to, to === nearest && this.isExact ? this.end : from + own)
  }

  /** Tries everything once more, exactly. */
  private beginAgain() {
    this.undone += this.steps.length
    if (this.isExact || this.steps.length === 0 || this.undone > this.options.mostUndone)
      return undefined
    this.isExact = true
    this.round = 0
    this.frontier = 0
    const lost = this.undo(0, this.base)
    this.closed = []
    return lost
  }

  /** Closes the way up to an offset, and goes back to before a step. */
  private undo(to: number, closedUpTo: number) {
    const { steps } = this
    this.closed.push({ from: this.base, text: this.text.slice(0, closedUpTo - this.base) })
    if (this.closed.length > mostClosed) this.closed.shift()
    const { from, place, before } = steps[to]!
    this.place = place
    const tokens = steps.splice(to).map(({ token }) => token)
    this.text = this.text.slice(0, from - this.base)
    return { tokens: tokens.reverse(), state: before }
  }
}
