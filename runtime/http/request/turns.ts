import { Effect } from "effect"

export interface Turns {
  /** Does `work` in a turn; returns how to cancel that. */
  add(work: () => void): () => void
  /** Waits for a turn; what the caller does next, up to its next wait, is the turn's work. */
  readonly take: Effect.Effect<void>
}

/** As much work of large bodies is done at once; then the event loop does everything else. */
const sliceMs = 2
/** For each millisecond of that work the event loop has two for everything else. */
const restFactor = 2

/**
 * The turns of large bodies: pieces of work on the event loop, first come, first served. A body
 * queues again for each of its pieces, so all get on at the same pace; together they take at most a
 * third of the loop, however many there are.
 */
export const makeTurns = (nowMs: () => number = () => performance.now()): Turns => {
  const waiting = new Set<() => void>()
  let restUntilMs = 0
  let isScheduled = false
  const schedule = () => {
    if (isScheduled) return
    isScheduled = true
    const restMs = restUntilMs - nowMs()
    if (restMs < 1) setImmediate(work)
    else setTimeout(work, restMs)
  }
  const work = () => {
    const begunMs = nowMs()
    let spentMs = 0
    try {
      for (const piece of waiting) {
        waiting.delete(piece)
        piece()
        spentMs = nowMs() - begunMs
        if (spentMs >= sliceMs) break
      }
    } finally {
      isScheduled = false
      restUntilMs = begunMs + spentMs * (1 + restFactor)
      if (waiting.size) schedule()
    }
  }
  const add = (piece: () => void) => {
    waiting.add(piece)
    schedule()
    return () => void waiting.delete(piece)
  }
  return {
    add,
    take: Effect.callback<void>((resume) => Effect.sync(add(() => resume(Effect.void)))),
  }
}
