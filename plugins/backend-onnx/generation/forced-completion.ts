/**
 * Returns the shortest completion found, as tokens; undefined: none within `most` tokens, or within
 * `masks` that are computed.
 */
export type FindCompletion = (most: number, masks?: number) => readonly number[] | undefined

// one token can open an object with many required members: this close to the end of the budget
// every token is checked, which takes 1 or 2 ms
const leastNear = 128
// farther from the end it is checked every 16 tokens, and half as often after each failure
const searchEvery = 16
// a search that may return a completion of slightly too many tokens ends early; one that must prove
// there is none takes long
const searchMargin = 64

/** The length of the first search, which is the only one that takes all the masks it wants. */
export const firstSearch = (left: number): number => left + searchMargin

// all streams of the engine wait for a search but the first; counted, not timed, so that an answer
// does not depend on load
const leastMasks = 256

/** What is known at one place of the text, to go back to. */
interface Known {
  readonly completion: readonly number[] | undefined
  readonly near: number
  readonly nextSearch: number
  readonly pause: number
}

/** Enough to find a completion that is about as long as an earlier one. */
const masksFor = (known: readonly number[] | undefined): number =>
  leastMasks + 2 * (known?.length ?? 0)

/**
 * Keeps a completion at hand for a document that must be whole when the tokens run out.
 * It is searched with every token near the end of the budget and now and then before; a token that
 * follows the known completion only shortens it.
 */
export class ForcedCompletion {
  private readonly find: FindCompletion
  private known: readonly number[] | undefined
  /** Long completions may also grow fast, so they are checked earlier. */
  private near = leastNear
  private nextSearch = 0
  private pause = searchEvery

  constructor(find: FindCompletion, left: number) {
    this.find = find
    const found = find(firstSearch(left))
    const isNearlyFitting = found && found.length > left && found.length < left * 1.5
    this.learn(isNearlyFitting ? find(left, masksFor(found)) : found, left)
  }

  /** The known completion from the present end of the text; undefined while none is known. */
  get completion(): readonly number[] | undefined {
    return this.known
  }

  private learn(found: readonly number[] | undefined, left: number): void {
    if (found) this.near = Math.max(this.near, leastNear + 2 * found.length)
    this.known = found && found.length <= left ? found : undefined
    if (!this.known) this.pause *= 2
    const isChecked = this.known && left <= this.near
    this.nextSearch = isChecked ? left - 1 : Math.max(left - this.pause, this.known ? this.near : 0)
  }

  get state(): Known {
    const { known: completion, near, nextSearch, pause } = this
    return { completion, near, nextSearch, pause }
  }

  set state({ completion, near, nextSearch, pause }: Known) {
    this.known = completion
    this.near = near
    this.nextSearch = nextSearch
    this.pause = pause
  }

  /** Whether the remaining tokens suffice for the completion and nothing else. */
  isDue(left: number): boolean {
    return this.known !== undefined && left <= this.known.length
  }

  /**
   * Accounts for a chosen token, after which `left` more may be written. False when no completion
   * would fit after it: then the earlier completion must be written instead of the token.
   */
  follow(token: number, left: number): boolean {
    const before = this.known
    if (before?.[0] === token) {
      this.known = before.slice(1)
      return true
    }
    this.known = undefined
    if (left <= this.nextSearch) this.learn(this.find(left + searchMargin, masksFor(before)), left)
    if (this.known || !before || left > this.near) return true
    this.known = before
    return false
  }
}
