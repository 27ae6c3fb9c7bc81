/** The way to an end as tokens; undefined: none within `most` tokens. */
export type FindCompletion = (most: number) => readonly number[] | undefined

// a single token can begin an object with many required members: this close to the end of the budget every token is checked, which takes 1 or 2 ms
const leastNear = 128
// otherwise it is enough to look again after so many tokens; each time that there is none, after twice as many: to find out takes up to half a second
const lookEvery = 16
// a way that is a little too long is found at once; that there is none is found out only after a long search
const beyond = 64

/**
 * Knows, for a document that must be whole when the tokens end, a way to its end that fits into what is left.
 * It is asked for with every token near the end of the budget, now and then before, and no more where a token only goes along the known way.
 */
export class ForcedCompletion {
  private readonly ask: FindCompletion
  private known: readonly number[] | undefined
  /** Where ways are long they may grow fast, too. */
  private near = leastNear
  private nextLook = 0
  private pause = lookEvery

  constructor(ask: FindCompletion, left: number) {
    this.ask = ask
    const found = ask(left + beyond)
    // here a long search is worth while: there is no other way to fall back to
    this.learn(found && found.length > left && found.length < left * 1.5 ? ask(left) : found, left)
  }

  /** From where the text stands; undefined while none is known. */
  get way(): readonly number[] | undefined {
    return this.known
  }

  private learn(found: readonly number[] | undefined, left: number): void {
    if (found) this.near = Math.max(this.near, leastNear + 2 * found.length)
    this.known = found && found.length <= left ? found : undefined
    if (!this.known) this.pause *= 2
    const isChecked = this.known && left <= this.near
    this.nextLook = isChecked ? left - 1 : Math.max(left - this.pause, this.known ? this.near : 0)
  }

  /** Whether there is no time for anything but the way. */
  isDue(left: number): boolean {
    return this.known !== undefined && left <= this.known.length
  }

  /** Goes along with a token, which leaves so many more; false when it would lead too far: then the way from before it must be taken instead. */
  follow(token: number, left: number): boolean {
    const before = this.known
    if (before?.[0] === token) {
      this.known = before.slice(1)
      return true
    }
    this.known = undefined
    if (left <= this.nextLook) this.learn(this.ask(left + beyond), left)
    if (this.known || !before || left > this.near) return true
    this.known = before
    return false
  }
}
