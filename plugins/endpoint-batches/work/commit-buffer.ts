import { Effect } from "effect"

/**
 * Items that have ended and are not committed yet. It is closed, and over when no item is expected
 * any more.
 */
export interface CommitBuffer<Item> {
  /** Announces an item: the buffer is not over before it has come, or is abandoned. */
  expect(): void
  put(item: Item): void
  /** An expected item never comes. */
  abandon(): void
  /** Nothing further is expected. */
  close(): void
  /** Makes it ready at once, even while it is empty. */
  flush(): void
  /**
   * Waits until there are enough items, the first one has lingered, it is flushed, or it is over.
   */
  readonly ready: Effect.Effect<void>
  /**
   * Takes out what fits into one commit. `isOver`: nothing is left, and nothing can come any more.
   */
  take(): { readonly items: readonly Item[]; readonly isOver: boolean }
  /** Takes out everything. */
  drain(): readonly Item[]
}

export interface CommitBufferOptions<Item> {
  /** Limits of one `take`; a single item may be larger. */
  readonly maxItems: number
  readonly maxBytes: number
  /** How long the first item waits for others. */
  readonly lingerMs: number
  readonly bytesOf: (item: Item) => number
}

/** Wakes whoever waits for a condition, when something has changed. */
const makeWatchers = () => {
  const watchers = new Set<() => void>()
  return {
    changed: () => {
      for (const check of watchers) check()
    },
    until: (holds: () => boolean): Effect.Effect<void> =>
      Effect.callback<void>((resume) => {
        const check = () => {
          if (!holds()) return
          watchers.delete(check)
          resume(Effect.void)
        }
        watchers.add(check)
        check()
        return Effect.sync(() => void watchers.delete(check))
      }),
  }
}

/** Number and bytes of the first items that fit into one commit. */
const fitting = <Item>(
  items: readonly Item[],
  { maxItems, maxBytes, bytesOf }: CommitBufferOptions<Item>,
) => {
  let count = 0
  let bytes = 0
  while (
    count < items.length &&
    count < maxItems &&
    (count === 0 || bytes + bytesOf(items[count]!) <= maxBytes)
  )
    bytes += bytesOf(items[count++]!)
  return { count, bytes }
}

export const makeCommitBuffer = <Item>(options: CommitBufferOptions<Item>): CommitBuffer<Item> => {
  const { maxItems, maxBytes, lingerMs, bytesOf } = options
  const { changed, until } = makeWatchers()
  const items: Item[] = []
  let bytes = 0
  let expected = 0
  let isClosed = false
  let isFlushed = false

  const isOver = () => isClosed && expected === 0
  const isFull = () => items.length >= maxItems || bytes >= maxBytes || isFlushed || isOver()

  return {
    expect: () => {
      expected += 1
    },
    put: (item) => {
      expected -= 1
      items.push(item)
      bytes += bytesOf(item)
      changed()
    },
    abandon: () => {
      expected -= 1
      changed()
    },
    close: () => {
      isClosed = true
      changed()
    },
    flush: () => {
      isFlushed = true
      changed()
    },
    ready: Effect.suspend(() => until(() => items.length > 0 || isFull())).pipe(
      Effect.andThen(
        Effect.suspend(() =>
          isFull() ? Effect.void : Effect.asVoid(Effect.timeoutOption(until(isFull), lingerMs)),
        ),
      ),
    ),
    take: () => {
      isFlushed = false
      const next = fitting(items, options)
      bytes -= next.bytes
      const taken = items.splice(0, next.count)
      return { items: taken, isOver: isOver() && items.length === 0 }
    },
    drain: () => {
      bytes = 0
      return items.splice(0)
    },
  }
}
