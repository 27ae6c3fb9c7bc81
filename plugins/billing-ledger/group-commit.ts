import { Effect, Exit, Option } from "effect"
import { PortError } from "../../core/index.ts"
import { isAboutItems } from "./failure.ts"

export interface GroupCommitOptions<Item, Answer> {
  /** Most items in one statement. */
  readonly maxItems: number
  /** Most statements at once. */
  readonly maxInFlight: number
  readonly maxWaiting: number
  /**
   * Items that `allows` accepts wait up to `ms` for others, unless another item goes out or a
   * statement ends before that.
   */
  readonly linger?: { readonly ms: number; allows(item: Item): boolean }
  /** Returns one answer for each item, in their order. */
  readonly run: (items: readonly Item[]) => Effect.Effect<readonly Answer[], PortError>
}

export interface GroupCommit<Item, Answer> {
  submit(item: Item): Effect.Effect<Answer, PortError>
  /** Ends when nothing waits and nothing is in flight. */
  readonly idle: Effect.Effect<void>
}

interface Waiting<Item, Answer> {
  readonly item: Item
  readonly done: (exit: Exit.Exit<Answer, PortError>) => void
}

const tooBusy = (maxWaiting: number) =>
  new PortError({
    port: "billing",
    message: `too busy: ${maxWaiting} calls already wait for the ledger`,
    why: "busy",
  })

/**
 * Group commit: an item goes out at once while a statement is free; items that arrive meanwhile
 * wait and go out together. When a statement fails because of its data, its items are sent one by
 * one, so that a bad item fails alone.
 */
export const makeGroupCommit = <Item, Answer>(
  options: GroupCommitOptions<Item, Answer>,
): GroupCommit<Item, Answer> => {
  const { linger } = options
  const waiting: Waiting<Item, Answer>[] = []
  const idlers = new Set<() => void>()
  let inFlight = 0
  let lingerTimer: NodeJS.Timeout | undefined

  /** Calls `finished` when every item of the group has its answer. */
  const send = (group: readonly Waiting<Item, Answer>[], finished: () => void): void => {
    const fiber = Effect.runFork(Effect.suspend(() => options.run(group.map(({ item }) => item))))
    fiber.addObserver((exit) => {
      const error = Option.getOrUndefined(Exit.findErrorOption(exit))
      if (group.length > 1 && error && isAboutItems(error)) return sendEach(group, finished)
      group.forEach(({ done }, index) => {
        done(Exit.map(exit, (answers) => answers[index] as Answer))
      })
      finished()
    })
  }
  const sendEach = (group: readonly Waiting<Item, Answer>[], finished: () => void): void => {
    const [first, ...others] = group
    if (first) send([first], () => sendEach(others, finished))
    else finished()
  }

  const pump = (): void => {
    clearTimeout(lingerTimer)
    lingerTimer = undefined
    while (waiting.length > 0 && inFlight < options.maxInFlight) {
      inFlight++
      send(waiting.splice(0, options.maxItems), () => {
        inFlight--
        pump()
      })
    }
    if (inFlight > 0) return
    for (const wake of idlers) wake()
    idlers.clear()
  }

  const submit = (item: Item) =>
    Effect.uninterruptible(
      Effect.callback<Answer, PortError>((resume) => {
        if (waiting.length >= options.maxWaiting)
          return resume(Effect.fail(tooBusy(options.maxWaiting)))
        waiting.push({ item, done: resume })
        if (linger?.allows(item) && waiting.length < options.maxItems)
          lingerTimer ??= setTimeout(pump, linger.ms)
        else pump()
      }),
    )

  const idle = Effect.callback<void>((resume) => {
    if (inFlight === 0 && waiting.length === 0) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    idlers.add(wake)
    return Effect.sync(() => void idlers.delete(wake))
  })

  return { submit, idle }
}
