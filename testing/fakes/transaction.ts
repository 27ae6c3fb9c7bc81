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

/** `Database.transaction` for the fakes: what they were told in it happens at its end, all together, or never. */
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
 * What a fake does with its optional `tx`: `action` at the commit, and `after`, once, when all the transaction's actions are done.
 * Without one, or with a real database's, both happen at once.
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
