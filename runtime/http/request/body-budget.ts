import { type ApiError, apiError } from "../../../core/errors.ts"

/** Bodies up to this size are read and parsed at once, and have memory of their own. */
export const smallBodyBytes = 64 * 1024

export interface BodyMemory {
  /** Bodies of all open requests together. */
  readonly maxBufferedBytes: number
  /** The same for each account. */
  readonly maxBufferedBytesPerAccount: number
}

/** The memory of one body. */
export interface Reservation {
  /** Takes more; returns the refusal where there is none. */
  grow(bytes: number): ApiError | undefined
  release(): void
}

export interface BodyBudget {
  /** The largest body that fits in, where nothing else is held. */
  readonly maxBytes: number
  /** What all bodies hold now. */
  heldBytes(): number
  open(account: string): Reservation
}

const busy = (code: "backend_busy" | "concurrency_exceeded", message: string) =>
  apiError(code, message, { retryAfterMs: 2_000 })
const tooMany = () => busy("backend_busy", "The server holds too many large bodies at the moment.")
const tooManyOfAccount = () =>
  busy("concurrency_exceeded", "The account's requests in flight have too large bodies together.")

/**
 * The memory that bodies may take together. Small ones have a part of their own, a quarter: large
 * ones never lock them out.
 */
export const makeBodyBudget = ({
  maxBufferedBytes,
  maxBufferedBytesPerAccount,
}: BodyMemory): BodyBudget => {
  const held = { small: 0, large: 0 }
  const heldBy = new Map<string, number>()
  const most = {
    small: Math.max(maxBufferedBytes / 4, smallBodyBytes),
    large: maxBufferedBytes,
  }
  const open = (account: string): Reservation => {
    let bytes = 0
    const move = (change: number) => {
      const before = bytes
      bytes += change
      const [from, to] = [before, bytes].map((size) => (size > smallBodyBytes ? "large" : "small"))
      held[from as "small"] -= before
      held[to as "small"] += bytes
      const ofAccount = (heldBy.get(account) ?? 0) + change
      if (ofAccount > 0) heldBy.set(account, ofAccount)
      else heldBy.delete(account)
    }
    return {
      grow: (more) => {
        const next = bytes + more
        const isLarge = next > smallBodyBytes
        const [all, limit] = isLarge ? [held.large, most.large] : [held.small, most.small]
        const isCounted = isLarge === bytes > smallBodyBytes
        if (all + (isCounted ? more : next) > limit) return tooMany()
        if (isLarge && (heldBy.get(account) ?? 0) + more > maxBufferedBytesPerAccount)
          return tooManyOfAccount()
        move(more)
        return undefined
      },
      release: () => move(-bytes),
    }
  }
  return {
    maxBytes: Math.min(maxBufferedBytes, maxBufferedBytesPerAccount),
    heldBytes: () => held.small + held.large,
    open,
  }
}
