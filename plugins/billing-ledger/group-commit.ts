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
   * Items that `allows` accepts wait up to `ms` for others, unless another item goes out or, without
   * `isPatient`, a statement ends before that.
   */
  readonly linger?: {
    readonly ms: number
    readonly isPatient?: boolean
    allows(item: Item): boolean
  }
  /** Items whose rows a statement has locked wait for its end; undefined: it locks none we know. */
  readonly locks?: { readonly turns: Turns; of(item: Item): string | undefined }
  /** Returns one answer for each item, in their order. */
  readonly run: (items: readonly Item[]) => Effect.Effect<readonly Answer[], PortError>
}

export interface GroupCommit<Item, Answer> {
  submit(item: Item): Effect.Effect<Answer, PortError>
  /** The same without a fiber. `done` must not throw. */
  add(item: Item, done: (exit: Exit.Exit<Answer, PortError>) => void): void
  /** Ends when nothing waits and nothing is in flight. */
  readonly idle: Effect.Effect<void>
  /** What lingers goes out now. */
  hurry(): void
}

interface Waiting<Item, Answer> {
  readonly item: Item
  readonly done: (exit: Exit.Exit<Answer, PortError>) => void
}

/** The rows that statements in flight have locked, for the groups of one database. */
export interface Turns {
  isFree(row: string): boolean
  take(rows: ReadonlySet<string>): void
  /** Gives the other groups their turn first, so that none is starved. */
  release(rows: ReadonlySet<string>, by: () => void): void
  join(pump: () => void): void
}

export const makeTurns = (): Turns => {
  const taken = new Set<string>()
  const pumps: (() => void)[] = []
  return {
    isFree: (row) => !taken.has(row),
    take: (rows) => {
      for (const row of rows) taken.add(row)
    },
    release: (rows, by) => {
      for (const row of rows) taken.delete(row)
      for (const pump of pumps) if (pump !== by) pump()
    },
    join: (pump) => void pumps.push(pump),
  }
}

const tooBusy = (maxWaiting: number) =>
  new PortError({
    port: "billing",
    message: `too busy: ${maxWaiting} calls already wait for the ledger`,
    why: "busy",
  })

const mayGo = <Item>(item: Item, locks: GroupCommitOptions<Item, never>["locks"]): boolean => {
  const row = locks?.of(item)
  return row === undefined || locks?.turns.isFree(row) === true
}

/** What may go out together now, in its order; the rest stays in `waiting`. */
const takeGroup = <Item, Answer>(
  waiting: Waiting<Item, Answer>[],
  { maxItems, locks }: Pick<GroupCommitOptions<Item, Answer>, "maxItems" | "locks">,
) => {
  const group: Waiting<Item, Answer>[] = []
  const later: Waiting<Item, Answer>[] = []
  for (const one of waiting.splice(0))
    (group.length < maxItems && mayGo(one.item, locks) ? group : later).push(one)
  for (const one of later) waiting.push(one)
  const rows = new Set(group.flatMap(({ item }) => locks?.of(item) ?? []))
  return { group, rows }
}

/** Calls `finished` when every item of the group has its answer. */
const send = <Item, Answer>(
  run: GroupCommitOptions<Item, Answer>["run"],
  group: readonly Waiting<Item, Answer>[],
  finished: () => void,
): void => {
  const sendEach = ([first, ...others]: readonly Waiting<Item, Answer>[]): void => {
    if (first) send(run, [first], () => sendEach(others))
    else finished()
  }
  const fiber = Effect.runFork(Effect.suspend(() => run(group.map(({ item }) => item))))
  fiber.addObserver((exit) => {
    const error = Option.getOrUndefined(Exit.findErrorOption(exit))
    if (group.length > 1 && error && isAboutItems(error)) return sendEach(group)
    group.forEach(({ done }, index) => {
      done(Exit.map(exit, (answers) => answers[index] as Answer))
    })
    finished()
  })
}

/**
 * Group commit: while a statement is free, items go out at the end of the event loop's turn, with
 * all others that arrived in it; items that arrive later wait and go out together. When a statement
 * fails because of its data, its items are sent one by one, so that a bad item fails alone.
 *
 * An item whose row another statement has locked would wait for it inside the database, and keep
 * all others of its group and a connection waiting. So it stays here, and its group grows.
 */
export const makeGroupCommit = <Item, Answer>(
  options: GroupCommitOptions<Item, Answer>,
): GroupCommit<Item, Answer> => {
  const { linger, locks } = options
  const waiting: Waiting<Item, Answer>[] = []
  const idlers = new Set<() => void>()
  let inFlight = 0
  /** Something waits not for its time but for a statement to end: this group's, or who has its row. */
  let isDue = false
  let lingerTimer: NodeJS.Timeout | undefined
  let turnEnd: NodeJS.Immediate | undefined

  const pump = (): void => {
    clearTimeout(lingerTimer)
    clearImmediate(turnEnd)
    lingerTimer = turnEnd = undefined
    while (waiting.length > 0 && inFlight < options.maxInFlight) {
      const { group, rows } = takeGroup(waiting, options)
      if (group.length === 0) break
      inFlight++
      locks?.turns.take(rows)
      send(options.run, group, () => {
        inFlight--
        locks?.turns.release(rows, whenFree)
        if (isDue || !linger?.isPatient) pump()
        else wakeIdlers()
      })
    }
    isDue = waiting.length > 0
    wakeIdlers()
  }
  const wakeIdlers = (): void => {
    if (inFlight > 0 || waiting.length > 0) return
    for (const wake of idlers) wake()
    idlers.clear()
  }
  // what lingers goes on doing so
  const whenFree = () => {
    if (isDue) pump()
  }
  locks?.turns.join(whenFree)

  const add: GroupCommit<Item, Answer>["add"] = (item, done) => {
    if (waiting.length >= options.maxWaiting) return done(Exit.fail(tooBusy(options.maxWaiting)))
    waiting.push({ item, done })
    if (linger?.allows(item) && waiting.length < options.maxItems)
      lingerTimer ??= setTimeout(pump, linger.ms)
    // what is held back is looked at again when a row is free, not for each that joins it
    else if (mayGo(item, locks) && inFlight < options.maxInFlight) turnEnd ??= setImmediate(pump)
    else isDue = true
  }
  const submit = (item: Item) =>
    Effect.uninterruptible(Effect.callback<Answer, PortError>((resume) => add(item, resume)))

  const idle = Effect.callback<void>((resume) => {
    if (inFlight === 0 && waiting.length === 0) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    idlers.add(wake)
    return Effect.sync(() => void idlers.delete(wake))
  })

  return { submit, add, idle, hurry: () => (lingerTimer ? pump() : undefined) }
}
