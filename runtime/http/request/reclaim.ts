import { getHeapStatistics } from "node:v8"

/** How long after a large body the heap is looked at, and again while it is large. */
const lookMs = 5_000
/** As much may be there beyond what the server holds when nothing happens. */
const slackBytes = 64 * 2 ** 20
/** V8 marks its heap, in small steps, when that much external memory is new (64 MB). */
const hintBytes = 96 * 2 ** 20

export interface Heap {
  usedBytes(): number
  /** Has garbage collected soon, without a long pause. */
  hint(): void
  after(ms: number, look: () => void): void
}

export const v8Heap: Heap = {
  usedBytes: () => {
    const { used_heap_size, external_memory } = getHeapStatistics()
    return used_heap_size + external_memory
  },
  // it is never written to, so it takes no memory; `gc()` would stop everything for 80 ms
  hint: () => void new ArrayBuffer(hintBytes),
  after: (ms, look) => void setTimeout(look, ms).unref(),
}

/**
 * To be called after each large body. V8 lets its heap grow to several times of what is in use,
 * and keeps it while nothing is allocated: some hundred megabytes of what bodies were decoded to.
 */
export const makeReclaim = (heap: Heap = v8Heap): (() => void) => {
  let inUseBytes = heap.usedBytes()
  let isWatching = false
  let isQuiet = true
  const look = (hasHinted: boolean) => {
    const usedBytes = heap.usedBytes()
    const isLarge = usedBytes > inUseBytes + slackBytes
    // a collection freed none of it
    const isInUse = hasHinted && isQuiet
    inUseBytes = isLarge && isInUse ? usedBytes : Math.min(inUseBytes, usedBytes)
    isWatching = isLarge && !isInUse
    isQuiet = true
    if (!isWatching) return
    heap.hint()
    heap.after(lookMs, () => look(true))
  }
  return () => {
    isQuiet = false
    if (isWatching) return
    isWatching = true
    heap.after(lookMs, () => look(false))
  }
}
