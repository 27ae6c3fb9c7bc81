import { getHeapStatistics } from "node:v8"
import { systemClock } from "../../../core/services/clock.ts"

/** How long after a large body, or a call, the heap is looked at, and again while it is large. */
const lookMs = 5_000
/** As much may be there beyond what the server holds when nothing happens. */
const slackBytes = 64 * 2 ** 20
/** V8 marks its heap, in small steps, when that much external memory is new (64 MB). */
const hintBytes = 96 * 2 ** 20

/** By as much a heap may have grown while its server has nothing to do. */
const grownBytes = 16 * 2 ** 20

export interface Heap {
  usedBytes(): number
  /** Memory that the heap has from the system. */
  committedBytes(): number
  /** Has garbage collected soon, without a long pause. */
  hint(): void
  nowMs(): number
  after(ms: number, look: () => void): void
}

export const v8Heap: Heap = {
  usedBytes: () => {
    const { used_heap_size, external_memory } = getHeapStatistics()
    return used_heap_size + external_memory
  },
  committedBytes: () => getHeapStatistics().total_physical_size,
  // it is never written to, so it takes no memory; `gc()` would stop everything for 80 ms
  hint: () => void new ArrayBuffer(hintBytes),
  nowMs: () => systemClock.monotonicMs(),
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

/**
 * To be called after each call, and after the start; `isIdle`: none is being served. V8 keeps what
 * its heap has grown by, at a start already (a young generation of 32 MB, and garbage), as long as
 * little is allocated. It collects twice: V8 shrinks the young generation only where less than a
 * megabyte a second was allocated before a collection, and the first comes too soon after calls.
 */
export const makeQuietReclaim = (isIdle: () => boolean, heap: Heap = v8Heap): (() => void) => {
  let servedMs = 0
  let isWatching = false
  let isHinted = false
  let leastBytes: number | undefined
  const watch = (ms: number) => {
    isWatching = true
    heap.after(ms, look)
  }
  const look = () => {
    const quietMs = isIdle() ? heap.nowMs() - servedMs : 0
    const wasHinted = isHinted
    isHinted = false
    if (quietMs < lookMs) return watch(lookMs - quietMs)
    isWatching = false
    const bytes = heap.committedBytes()
    const hasGrown = leastBytes === undefined || bytes > leastBytes + grownBytes
    leastBytes = Math.min(leastBytes ?? bytes, bytes)
    if (wasHinted) return heap.hint()
    if (!hasGrown) return
    heap.hint()
    isHinted = true
    watch(lookMs)
  }
  return () => {
    servedMs = heap.nowMs()
    if (!isWatching) watch(lookMs)
  }
}
