import { Effect, Exit } from "effect"
import type { Transaction } from "../../core/ports/transaction.ts"

interface Pending {
  readonly actions: (() => void)[]
  readonly after: Set<() => void>
}

const pending = new WeakMap<Transaction, Pending>()

const commit = ({ actions, after }: Pending): void => {
  for (const action of actions) action()
  for (const action of after) action()
}

/**
 * `Database.transaction` for the fakes: their actions are applied together at the commit, or not at
 * all.
 */
export const fakeTransaction = <A, E>(
  body: (tx: Transaction) => Effect.Effect<A, E>,
): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const tx = {} as Transaction
    const work: Pending = { actions: [], after: new Set() }
    pending.set(tx, work)
    return Effect.onExit(body(tx), (exit) =>
      Effect.sync(() => {
        pending.delete(tx)
        if (Exit.isSuccess(exit)) commit(work)
      }),
    )
  })

/**
 * For a fake with an optional `tx`: runs `action` at the commit, and `after` once when all actions
 * of the transaction are done.
 * Without a `tx`, or with that of a real database, both run at once.
 */
export const whenCommitted = (
  tx: Transaction | undefined,
  action: () => void,
  after: () => void = () => {},
): void => {
  const work = tx && pending.get(tx)
  if (work === undefined) commit({ actions: [action], after: new Set([after]) })
  else {
    work.actions.push(action)
    work.after.add(after)
  }
}
