/** Searches the shortest completion from where the text stands, while the model runs. */
export interface CompletionSearch {
  /** Begins to search one of at most `most` tokens. */
  begin(most: number): void
  /** Returns what was found. Waits, unless it is ready. */
  result(): readonly number[] | undefined
}

// one token can open an object with many required members: this close to the end of the budget
// every token is checked
const leastNear = 128
// farther from the end it is checked every 16 tokens, and half as often after each failure
const searchEvery = 16
/** A completion of a few tokens too many may fit after the next ones. */
const searchMargin = 64

/** What is known at one place of the text, to go back to. */
export interface KnownCompletion {
  readonly completion: readonly number[] | undefined
  readonly near: number
  readonly nextSearch: number
  readonly pause: number
}

/**
 * Keeps a completion at hand for a document that must be whole when the tokens run out.
 * It is searched with every token near the end of the budget and now and then before; a token that
 * follows the known completion only shortens it. States: known (maybe that there is none) ->
 * searching (`follow`) -> known (`settle`).
 */
export class ForcedCompletion {
  private readonly search: CompletionSearch
  private known: readonly number[] | undefined
  /** Long completions may also grow fast, so they are checked earlier. */
  private near = leastNear
  private nextSearch = 0
  private pause = searchEvery
  /** The search that runs: for how many tokens, and the completion before the last token. */
  private searching: { readonly left: number; readonly before?: readonly number[] } | undefined

  constructor(search: CompletionSearch, left: number) {
    this.search = search
    this.begin(left)
  }

  /** The known completion from the present end of the text; undefined while none is known. */
  get completion(): readonly number[] | undefined {
    return this.known
  }

  get isSearching(): boolean {
    return this.searching !== undefined
  }

  private begin(left: number, before?: readonly number[]): void {
    this.searching = { left, ...(before && { before }) }
    this.search.begin(left + searchMargin)
  }

  private learn(found: readonly number[] | undefined, left: number): void {
    if (found) this.near = Math.max(this.near, leastNear + 2 * found.length)
    this.known = found && found.length <= left ? found : undefined
    if (!this.known) this.pause *= 2
    const isChecked = this.known && left <= this.near
    this.nextSearch = isChecked ? left - 1 : Math.max(left - this.pause, this.known ? this.near : 0)
  }

  get state(): KnownCompletion {
    const { known: completion, near, nextSearch, pause } = this
    return { completion, near, nextSearch, pause }
  }

  set state({ completion, near, nextSearch, pause }: KnownCompletion) {
    this.known = completion
    this.near = near
    this.nextSearch = nextSearch
    this.pause = pause
    this.searching = undefined
  }

  /** Whether the remaining tokens suffice for the completion and nothing else. */
  isDue(left: number): boolean {
    return this.known !== undefined && left <= this.known.length
  }

  /**
   * Accounts for a chosen token, after which `left` more may be written. True: `settle` may find
   * that it must be taken back.
   */
  follow(token: number, left: number): boolean {
    const before = this.known
    if (before?.[0] === token) {
      this.known = before.slice(1)
      return false
    }
    this.known = undefined
    if (left > this.nextSearch) return false
    this.begin(left, before)
    return before !== undefined
  }

  /**
   * Takes in what the search found. False when no completion would fit after the last token: then
   * the earlier completion, which is known again, must be written instead of the token.
   */
  settle(): boolean {
    const { searching } = this
    if (!searching) return true
    this.searching = undefined
    const { left, before } = searching
    this.learn(this.search.result(), left)
    if (this.known || !before || left > this.near) return true
    this.known = before
    return false
  }
}
