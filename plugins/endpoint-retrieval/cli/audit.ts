import { Effect } from "effect"
import type { PortError } from "../../../core/index.ts"
import type { RetrievalDeps } from "../deps.ts"
import { roundedToHalves, unitPrefix } from "../vectors/half-floats.ts"
import { pagesOf, readyDocuments, versionOf } from "../vectors/stored-vectors.ts"
import { tableOf } from "../vectors/vector-rows.ts"
import type { VectorStore } from "../vectors/vector-store.ts"
import {
  type Gaps,
  gapsOf,
  orphans,
  type SearchedPart,
  type StoredVector,
  searchedParts,
  vectorsOf,
} from "./audited-rows.ts"
import { ExactSearch, type Recall } from "./exact-search.ts"

export const k = 10
const queriesOfPart = 100
/** An account whose documents change while they are compared is compared again. */
const attempts = 3

export interface AuditedPart extends SearchedPart, Gaps, Recall {
  readonly queries: number
  /** Documents changed during each attempt, so the figures may be of no one moment. */
  readonly changing: boolean
}

export interface Audit {
  /** The index in use. */
  readonly index: string
  readonly parts: readonly AuditedPart[]
  /** Vectors whose document does not exist. */
  readonly orphans: number
}

/** Calls `look` on every vector of the part. */
const eachVector = (
  { database, clock }: RetrievalDeps,
  table: ReturnType<typeof tableOf>,
  part: SearchedPart,
  look: (vector: StoredVector) => void,
): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const { tenant, space } = part
    const documents = yield* readyDocuments(database, tenant, space, clock.nowMs())
    for (const page of pagesOf(documents, space))
      for (const vector of yield* vectorsOf(database, table, space, page)) look(vector)
  })

/** Reservoir sampling (Vitter, 1985): each vector is drawn with the same probability. */
const makeSample = (size: number) => {
  const drawn: StoredVector[] = []
  let seen = 0
  return {
    drawn,
    offer: (vector: StoredVector) => {
      seen++
      const at = seen <= size ? seen - 1 : Math.floor(Math.random() * seen)
      if (at < size) drawn[at] = vector
    },
  }
}

const comparePart = (deps: RetrievalDeps, store: VectorStore, part: SearchedPart) =>
  Effect.gen(function* () {
    const table = tableOf(store)
    const { tenant, space } = part
    const sample = makeSample(queriesOfPart)
    yield* eachVector(deps, table, part, sample.offer)
    const queries = yield* Effect.forEach(sample.drawn, ({ vector: drawn, ...self }) => {
      const vector = roundedToHalves(unitPrefix(drawn, space.dimensions))
      const search = store.search({ tenant, space, vector, limit: k + 1 })
      return Effect.map(search, (found) => ({ self, vector, found }))
    })
    const exact = new ExactSearch(queries, k)
    yield* eachVector(deps, table, part, (vector) => exact.compare(vector))
    const gaps = yield* gapsOf(deps.database, table, part, deps.clock.nowMs())
    return { ...part, ...gaps, ...exact.recall(), queries: queries.length }
  })

const auditPart = (
  deps: RetrievalDeps,
  store: VectorStore,
  part: SearchedPart,
  attempt = 1,
): Effect.Effect<AuditedPart, PortError> =>
  Effect.gen(function* () {
    const before = yield* versionOf(deps.database, part.tenant)
    const compared = yield* comparePart(deps, store, part)
    const changing = (yield* versionOf(deps.database, part.tenant)) !== before
    if (changing && attempt < attempts) return yield* auditPart(deps, store, part, attempt + 1)
    return { ...compared, changing }
  })

/**
 * Compares the index in use with an exact scan: the vectors of up to 100 chunks of each account,
 * drawn at random, are its queries.
 */
export const audit = (
  deps: RetrievalDeps,
  store: VectorStore,
  account: string | undefined,
): Effect.Effect<Audit, PortError> =>
  Effect.gen(function* () {
    const found = yield* searchedParts(deps.database, deps.clock.nowMs(), account)
    const parts = yield* Effect.forEach(found, (part) => auditPart(deps, store, part))
    return { index: store.name, parts, orphans: yield* orphans(deps.database, tableOf(store)) }
  })
