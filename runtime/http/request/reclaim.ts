import { getHeapStatistics } from "node:v8"

/** How long after a large body, or a request, the heap is looked at, and again while it is large. */
const lookMs = 5_000
/** As much may be there beyond what the server holds when nothing happens. */
const slackBytes = 64 * 2 ** 20
/** V8 marks its heap, in small steps, when that much external memory is new (64 MB). */
const hintBytes = 96 * 2 ** 20

/** With as many requests between two looks the server is quiet: probes of load balancers, mostly. */
const quietRequests = 25
/** As much of the heap may be empty. */
const emptyBytes = 16 * 2 ** 20
/** V8 shrinks its young generation in the second collection after the work, 2 s after the first. */
const mostHints = 2
const betweenHintsMs = 2_500
/** Where collections don't help, they become rare. */
const mostWaitMs = 10 * 60_000

export interface Heap {
  usedBytes(): number
  /** Memory of the heap that nothing is in. */
  emptyBytes(): number
  /** Has garbage collected soon, without a long pause. */
  hint(): void
  after(ms: number, look: () => void): void
}

export const v8Heap: Heap = {
  usedBytes: () => {
    const { used_heap_size, external_memory } = getHeapStatistics()
    return used_heap_size + external_memory
  },
  emptyBytes: () => {
    const { total_physical_size, used_heap_size } = getHeapStatistics()
    return total_physical_size - used_heap_size
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

/**
 * To be called after each request, and after the start. V8 lets its young generation grow to 32 MB,
 * at a start already, and keeps it, and what it has freed of the old one, while little happens.
 *
 *     watching -> (quiet, and much is empty) hint -> hint -> (still much) watching, for longer
 *      ^    |
 *       busy                 (little is empty) -> not watching
 *
 * `isIdle`: nothing is being served.
 */
export const makeQuietReclaim = (isIdle: () => boolean, heap: Heap = v8Heap): (() => void) => {
  let requests = 0
  let isWatching = false
  let waitMs = lookMs
  const watch = (hints: number, ms: number) => {
    isWatching = true
    requests = 0
    heap.after(ms, () => look(hints))
  }
  const look = (hints: number) => {
    if (requests > quietRequests || !isIdle()) return watch(0, lookMs)
    if (heap.emptyBytes() <= emptyBytes) {
      isWatching = false
      waitMs = lookMs
    } else if (hints < mostHints) {
      heap.hint()
      watch(hints + 1, betweenHintsMs)
    } else {
      waitMs = Math.min(2 * waitMs, mostWaitMs)
      watch(0, waitMs)
    }
  }
  return () => {
    requests++
    if (!isWatching) watch(0, lookMs)
  }
}
