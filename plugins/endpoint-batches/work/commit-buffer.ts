import { Effect } from "effect"

/** What has ended and is not committed yet. */
export interface Tray<Item> {
  /** One more runs. */
  began(): void
  /** One less. Nothing is left of one that was given up. */
  ended(item: Item | undefined): void
  /** No further one begins. */
  close(): void
  /** Lets `take` answer now, if with nothing. */
  nudge(): void
  /** Waits for something to do. */
  readonly ready: Effect.Effect<void>
  /** `isOver`: nothing is left, and nothing can come any more. */
  take(): { readonly items: readonly Item[]; readonly isOver: boolean }
  /** All there is, at once. */
  rest(): readonly Item[]
}

export interface TrayOptions<Item> {
  /** Of one `take`, but for a single item. */
  readonly maxItems: number
  readonly maxBytes: number
  /** How long the first item waits for others. */
  readonly lingerMs: number
  readonly bytesOf: (item: Item) => number
}

export const makeTray = <Item>({
  maxItems,
  maxBytes,
  lingerMs,
  bytesOf,
}: TrayOptions<Item>): Tray<Item> => {
  const items: Item[] = []
  const watchers = new Set<() => void>()
  let bytes = 0
  let running = 0
  let isClosed = false
  let isNudged = false

  const isOver = () => isClosed && running === 0
  const isFull = () => items.length >= maxItems || bytes >= maxBytes || isNudged || isOver()
  const changed = () => {
    for (const look of watchers) look()
  }
  const until = (holds: () => boolean): Effect.Effect<void> =>
    Effect.callback<void>((resume) => {
      const look = () => {
        if (!holds()) return
        watchers.delete(look)
        resume(Effect.void)
      }
      watchers.add(look)
      look()
      return Effect.sync(() => void watchers.delete(look))
    })

  const takeOut = (): readonly Item[] => {
    let count = 0
    let sum = 0
    while (
      count < items.length &&
      count < maxItems &&
      (count === 0 || sum + bytesOf(items[count]!) <= maxBytes)
    )
      sum += bytesOf(items[count++]!)
    bytes -= sum
    return items.splice(0, count)
  }

  return {
    began: () => {
      running += 1
    },
    ended: (item) => {
      running -= 1
      if (item !== undefined) {
        items.push(item)
        bytes += bytesOf(item)
      }
      changed()
    },
    close: () => {
      isClosed = true
      changed()
    },
    nudge: () => {
      isNudged = true
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
      isNudged = false
      return { items: takeOut(), isOver: isOver() && items.length === 0 }
    },
    rest: () => {
      bytes = 0
      return items.splice(0)
    },
  }
}
