import { Effect, Exit, Option } from "effect"
import { PortError } from "../../core/index.ts"
import { isAboutItems } from "./failure.ts"

export interface GatherOptions<Item, Answer> {
  /** Items of one statement. */
  readonly maxItems: number
  readonly maxInFlight: number
  readonly maxWaiting: number
  /** Items for which `can` holds wait up to `ms` for company, unless another one goes out, or a statement ends, meanwhile. */
  readonly patience?: { readonly ms: number; can(item: Item): boolean }
  /** Answers in the order of the items. */
  readonly run: (items: readonly Item[]) => Effect.Effect<readonly Answer[], PortError>
}

export interface Gatherer<Item, Answer> {
  submit(item: Item): Effect.Effect<Answer, PortError>
  /** Ends when nothing waits and nothing is in flight. */
  readonly idle: Effect.Effect<void>
}

interface Waiting<Item, Answer> {
  readonly item: Item
  readonly done: (exit: Exit.Exit<Answer, PortError>) => void
}

/**
 * Group commit: an item goes out at once while a statement is free; what comes meanwhile waits and goes out together.
 * When a statement fails because of what is in it, its items go out one by one, so that a bad one does not take others with it.
 */
export const makeGatherer = <Item, Answer>(
  options: GatherOptions<Item, Answer>,
): Gatherer<Item, Answer> => {
  const { patience } = options
  const waiting: Waiting<Item, Answer>[] = []
  const idlers = new Set<() => void>()
  let inFlight = 0
  let lingering: NodeJS.Timeout | undefined

  const send = (group: readonly Waiting<Item, Answer>[]): Effect.Effect<void> =>
    Effect.suspend(() => options.run(group.map(({ item }) => item))).pipe(
      Effect.exit,
      Effect.flatMap((exit) => {
        const error = Option.getOrUndefined(Exit.findErrorOption(exit))
        if (group.length > 1 && error && isAboutItems(error))
          return Effect.forEach(group, (one) => send([one]), { discard: true })
        return Effect.sync(() => {
          group.forEach(({ done }, index) => {
            done(Exit.map(exit, (answers) => answers[index] as Answer))
          })
        })
      }),
    )

  const pump = (): void => {
    clearTimeout(lingering)
    lingering = undefined
    while (waiting.length > 0 && inFlight < options.maxInFlight) {
      inFlight++
      const finished = () => {
        inFlight--
        pump()
      }
      Effect.runFork(
        Effect.ensuring(send(waiting.splice(0, options.maxItems)), Effect.sync(finished)),
      )
    }
    if (inFlight > 0) return
    for (const wake of idlers) wake()
    idlers.clear()
  }

  const submit = (item: Item) =>
    Effect.uninterruptible(
      Effect.callback<Answer, PortError>((resume) => {
        if (waiting.length >= options.maxWaiting)
          return resume(
            Effect.fail(
              new PortError({
                port: "billing",
                message: `too busy: ${options.maxWaiting} calls already wait for the ledger`,
                busy: true,
              }),
            ),
          )
        waiting.push({ item, done: resume })
        if (patience?.can(item) && waiting.length < options.maxItems)
          lingering ??= setTimeout(pump, patience.ms)
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
