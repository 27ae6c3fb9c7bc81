import type { Priority } from "./protocol.ts"

export interface QueueEntry {
  readonly id: number
  readonly account: string
  readonly priority: Priority
}

/** The queued entries of an account, and when it last had its turn. */
interface AccountQueue<Entry> {
  readonly entries: Record<Priority, Entry[]>
  lastTurn: number
}

const maxAbsent = 10_000

/**
 * Requests that wait for a slot. Real-time requests come before batch requests; accounts with fewer
 * running requests come first, then accounts take turns (round robin); the requests of one account
 * keep their order.
 */
export class FairQueue<Entry extends QueueEntry> {
  private readonly accounts = new Map<string, AccountQueue<Entry>>()
  /** The last turns of accounts with nothing in the queue, while others wait. */
  private readonly absent = new Map<string, number>()
  private turn = 0

  push(entry: Entry): void {
    let queue = this.accounts.get(entry.account)
    if (!queue) {
      const lastTurn = this.absent.get(entry.account) ?? 0
      this.absent.delete(entry.account)
      queue = { entries: { realtime: [], batch: [] }, lastTurn }
      this.accounts.set(entry.account, queue)
    }
    queue.entries[entry.priority].push(entry)
  }

  /**
   * Returns the next entry, without removing it. `running` returns the number of running requests
   * of an account.
   */
  next(priority: Priority, running: (account: string) => number): Entry | undefined {
    let best:
      | { readonly entry: Entry; readonly load: number; readonly lastTurn: number }
      | undefined
    for (const [account, { entries, lastTurn }] of this.accounts) {
      const entry = entries[priority][0]
      if (!entry) continue
      const load = running(account)
      if (!best || load < best.load || (load === best.load && lastTurn < best.lastTurn))
        best = { entry, load, lastTurn }
    }
    return best?.entry
  }

  /** Removes an entry that gets a slot: its account had its turn. */
  take(entry: Entry): void {
    const queue = this.accounts.get(entry.account)!
    queue.lastTurn = ++this.turn
    this.remove(entry)
  }

  remove(entry: Entry): void {
    const queue = this.accounts.get(entry.account)
    const entries = queue?.entries[entry.priority]
    const index = entries?.indexOf(entry) ?? -1
    if (index >= 0) entries!.splice(index, 1)
    if (!queue || queue.entries.realtime.length || queue.entries.batch.length) return
    this.accounts.delete(entry.account)
    // an account with one request after the other would come before all that wait all the time
    this.absent.set(entry.account, queue.lastTurn)
    if (this.accounts.size === 0 || this.absent.size > maxAbsent) this.absent.clear()
  }

  find(id: number): Entry | undefined {
    for (const entry of this.all()) if (entry.id === id) return entry
    return undefined
  }

  *all(): Iterable<Entry> {
    for (const { entries } of this.accounts.values()) {
      yield* entries.realtime
      yield* entries.batch
    }
  }

  clear(): void {
    this.accounts.clear()
    this.absent.clear()
  }
}
