import { Effect } from "effect"
import {
  type Clock,
  type Database,
  makeSingleFlight,
  type PortError,
  type Tenant,
} from "../../../core/index.ts"
import type { ScanLink } from "./scan/scan-host.ts"
import { layoutOf, slabsOf } from "./scan/slabs.ts"
import {
  pagesOf,
  type ReadPage,
  type ReadyDocument,
  readyDocuments,
  versionOf,
} from "./stored-vectors.ts"
import type { VectorSpace } from "./vector-store.ts"

/** An index that the thread has. */
interface Entry {
  readonly link: ScanLink
  readonly index: number
  /** Undefined while it changes. */
  version: bigint | undefined
  readonly documents: Map<number, ReadyDocument>
  slabs: number
  usedAt: number
  users: number
}

export interface ScanCacheDeps {
  readonly database: Database
  readonly clock: Clock
  readonly read: ReadPage
  readonly link: () => ScanLink
  /** The memory of the thread. */
  readonly slabs: number
}

export interface Lookup {
  readonly tenant: Tenant
  readonly space: VectorSpace
  /** What the index must know at least. */
  readonly version: bigint
}

const keyOf = ({ tenant: { account, mode }, space: { id, dimensions } }: Lookup): string =>
  JSON.stringify([account, mode, id, dimensions])

/**
 * Which vectors the thread has: those of the accounts that searched last. States of an index:
 * absent -> changing (documents are removed and added) -> current; current -> changing (the
 * tenant's version moved on); any -> absent (others need the memory, or the thread ended).
 */
export class ScanCache {
  private readonly deps: ScanCacheDeps
  private readonly entries = new Map<string, Entry>()
  private readonly flights = makeSingleFlight<boolean, PortError>()
  private taken = 0
  private lastIndex = 0
  private uses = 0

  constructor(deps: ScanCacheDeps) {
    this.deps = deps
  }

  /**
   * Uses the tenant's index, which is brought up to date before; it stays while it is used.
   * `otherwise` where the memory has no room for it.
   */
  use<A>(
    lookup: Lookup,
    body: (link: ScanLink, index: number) => Effect.Effect<A, PortError>,
    otherwise: Effect.Effect<A, PortError>,
  ): Effect.Effect<A, PortError> {
    const key = keyOf(lookup)
    const pin = Effect.sync(() => {
      const entry = this.entries.get(key)
      if (!entry?.link.isAlive || entry.version === undefined || entry.version < lookup.version)
        return undefined
      entry.users++
      entry.usedAt = ++this.uses
      return entry
    })
    const attempt = Effect.acquireUseRelease(
      pin,
      (entry) => (entry ? body(entry.link, entry.index) : Effect.succeed(undefined)),
      (entry) =>
        Effect.sync(() => {
          if (entry) entry.users--
        }),
    )
    const refresh = this.flights.run(key, this.refresh(key, lookup))
    return Effect.gen(function* () {
      let found = yield* attempt
      // the second try is for one that was given up, or became old, between its refresh and its use
      for (let tries = 0; found === undefined && tries < 2; tries++) {
        if (!(yield* refresh)) break
        found = yield* attempt
      }
      return found ?? (yield* otherwise)
    })
  }

  /** Leaves the index current, or absent where it has no room: then it returns false. */
  private refresh(key: string, { tenant, space }: Lookup): Effect.Effect<boolean, PortError> {
    const { database, clock, read } = this.deps
    return Effect.gen({ self: this }, function* () {
      const version = yield* versionOf(database, tenant)
      const documents = yield* readyDocuments(database, tenant, space, clock.nowMs())
      const entry = this.open(key, space)
      if (!entry) return false
      entry.version = undefined
      const added = this.removeOthers(entry, documents)
      const rows = documents.reduce((sum, { chunks }) => sum + chunks, 0)
      if (!this.reserve(entry, slabsOf(rows, layoutOf(space.dimensions)))) {
        this.drop(key, entry)
        return false
      }
      entry.users++
      yield* Effect.forEach(
        pagesOf(added, space),
        (page) =>
          Effect.map(read(space, page), (rows) => {
            for (const packed of rows) entry.link.post({ type: "add", index: entry.index, packed })
          }),
        // the database reads one while the thread takes in the other
        { concurrency: 2, discard: true },
      ).pipe(
        Effect.onError(() => Effect.sync(() => this.drop(key, entry))),
        Effect.ensuring(Effect.sync(() => void entry.users--)),
      )
      for (const document of added) entry.documents.set(document.no, document)
      entry.version = version
      return true
    })
  }

  /** Undefined where not even one vector fits. */
  private open(key: string, { dimensions }: VectorSpace): Entry | undefined {
    if (!layoutOf(dimensions)) return undefined
    const known = this.entries.get(key)
    if (known?.link.isAlive) return known
    if (known) this.drop(key, known)
    const link = this.deps.link()
    const index = ++this.lastIndex
    const entry = {
      link,
      index,
      version: undefined,
      documents: new Map(),
      slabs: 0,
      usedAt: ++this.uses,
      users: 0,
    }
    link.post({ type: "open", index, dimensions })
    this.entries.set(key, entry)
    return entry
  }

  /** Removes documents that are not searched any more. Returns those that the index lacks. */
  private removeOthers(
    { link, index, documents }: Entry,
    wanted: readonly ReadyDocument[],
  ): readonly ReadyDocument[] {
    const stays = new Set(
      wanted.filter(({ no, epoch }) => documents.get(no)?.epoch === epoch).map(({ no }) => no),
    )
    const removed = [...documents.keys()].filter((known) => !stays.has(known))
    if (removed.length > 0) link.post({ type: "remove", index, documents: removed })
    for (const no of removed) documents.delete(no)
    return wanted.filter(({ no }) => !stays.has(no))
  }

  /** Gives up the indices that were not used for longest, until there is room. */
  private reserve(entry: Entry, slabs: number): boolean {
    const others = [...this.entries]
      .filter(([, other]) => other !== entry && other.users === 0)
      .sort(([, a], [, b]) => a.usedAt - b.usedAt)
    const fits = () => this.taken - entry.slabs + slabs <= this.deps.slabs
    const freeable = others.reduce((sum, [, other]) => sum + other.slabs, 0)
    if (this.taken - entry.slabs - freeable + slabs > this.deps.slabs) return false
    for (const [key, other] of others) {
      if (fits()) break
      this.drop(key, other)
    }
    this.taken += slabs - entry.slabs
    entry.slabs = slabs
    return true
  }

  private drop(key: string, entry: Entry): void {
    if (entry.link.isAlive) entry.link.post({ type: "drop", index: entry.index })
    this.taken -= entry.slabs
    entry.slabs = 0
    entry.version = undefined
    if (this.entries.get(key) === entry) this.entries.delete(key)
  }
}
