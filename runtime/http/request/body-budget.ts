import { type ApiError, apiError } from "../../../core/errors.ts"

/** Bodies up to this size are read and parsed at once, and have memory of their own. */
export const smallBodyBytes = 64 * 1024

export interface BodyMemory {
  /** Bodies of all open requests together. */
  readonly maxBufferedBytes: number
  /** The same for each account. */
  readonly maxBufferedBytesPerAccount: number
}

/**
 * The memory of one body. `bytes` is no getter: an object literal with one has a hidden class of its
 * own each time it is made, which keeps the request until the next full collection.
 */
export interface Reservation {
  bytes(): number
  /** Takes more; returns the refusal where there is none. */
  grow(bytes: number): ApiError | undefined
  release(): void
}

export interface BodyBudget {
  /** The largest body that fits in, where nothing else is held. */
  readonly maxBytes: number
  /** What all bodies hold now. */
  heldBytes(): number
  /** `holder`: an account, or the address of a client without one. */
  open(holder: string): Reservation
}

const sizeOf = (bytes: number) => (bytes > smallBodyBytes ? "large" : "small")

const busy = (code: "backend_busy" | "concurrency_exceeded", message: string) =>
  apiError(code, message, { retryAfterMs: 2_000 })
const tooMany = () => busy("backend_busy", "The server holds too many large bodies at the moment.")
const tooManyOfAccount = () =>
  busy(
    "concurrency_exceeded",
    "The bodies of the account's requests in flight are too large together.",
  )

/**
 * The memory that bodies may take together. Small ones have a part of their own, a quarter: large
 * ones never lock them out. No holder may take more than half of that part.
 */
export const makeBodyBudget = (
  { maxBufferedBytes, maxBufferedBytesPerAccount }: BodyMemory,
  releasedLarge: () => void = () => {},
): BodyBudget => {
  const smallPart = Math.max(maxBufferedBytes / 4, smallBodyBytes)
  const most = { small: smallPart, large: maxBufferedBytes }
  const mostOfHolder = {
    small: Math.max(smallPart / 2, smallBodyBytes),
    large: maxBufferedBytesPerAccount,
  }
  const held = { small: 0, large: 0 }
  const heldBy = new Map<string, { small: number; large: number }>()
  const open = (holder: string): Reservation => {
    let bytes = 0
    const move = (change: number) => {
      const from = sizeOf(bytes)
      const to = sizeOf(bytes + change)
      const ofHolder = heldBy.get(holder) ?? { small: 0, large: 0 }
      for (const counts of [held, ofHolder]) {
        counts[from] -= bytes
        counts[to] += bytes + change
      }
      bytes += change
      if (ofHolder.small + ofHolder.large > 0) heldBy.set(holder, ofHolder)
      else heldBy.delete(holder)
    }
    return {
      bytes: () => bytes,
      grow: (more) => {
        const size = sizeOf(bytes + more)
        const added = size === sizeOf(bytes) ? more : bytes + more
        if (held[size] + added > most[size]) return tooMany()
        if ((heldBy.get(holder)?.[size] ?? 0) + added > mostOfHolder[size])
          return tooManyOfAccount()
        move(more)
        return undefined
      },
      release: () => {
        if (bytes > smallBodyBytes) releasedLarge()
        move(-bytes)
      },
    }
  }
  return {
    maxBytes: Math.min(maxBufferedBytes, maxBufferedBytesPerAccount),
    heldBytes: () => held.small + held.large,
    open,
  }
}
