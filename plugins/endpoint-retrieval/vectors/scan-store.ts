import { Effect, type Scope } from "effect"
import type { PortError } from "../../../core/index.ts"
import type { Device } from "../../../core/ports/execution-provider.ts"
import type { RetrievalDeps } from "../deps.ts"
import { roundedToHalves, toHalves, unitPrefix } from "./half-floats.ts"
import { BestChunks, type ScoredChunk } from "./scan/best.ts"
import { rangesByDocument, type ScanQuery } from "./scan/packed-rows.ts"
import { openScanHost } from "./scan/scan-host.ts"
import { slabBytes } from "./scan/slabs.ts"
import { ScanCache } from "./scan-cache.ts"
import { makePageReader, pagesOf, readyDocuments, versionOf } from "./stored-vectors.ts"
import { type VectorColumn, vectorRows } from "./vector-rows.ts"
import type { VectorHit, VectorQuery, VectorStore } from "./vector-store.ts"

const scanQuery = ({ vector, space, limit, ranges }: VectorQuery, nowMs: number): ScanQuery => ({
  vector: roundedToHalves(unitPrefix(vector, space.dimensions)),
  limit,
  nowMs,
  ...(ranges && {
    ranges: ranges.map(({ document, from = 0, to = Number.POSITIVE_INFINITY }) => ({
      document: Number(document),
      from,
      to,
    })),
  }),
})

/** Halves as bytes, little-endian. */
const column: VectorColumn = {
  table: "retrieval_vector",
  encode: (vector, dimensions) => Buffer.from(toHalves(unitPrefix(vector, dimensions)).buffer),
}

const asHits = (hits: readonly ScoredChunk[]): readonly VectorHit[] =>
  hits.map(({ document, chunk, score }) => ({ document: BigInt(document), index: chunk, score }))

/**
 * Vectors in a plain column, searched by an exact scan in a thread of its own. The accounts that
 * asked last are in its memory; one that is too large for that is read for each search. The scan of
 * a large one begins on the device.
 */
export const openScanStore = ({
  database,
  clock,
  log,
  settings,
  device,
}: RetrievalDeps & { readonly device?: Device | undefined }): Effect.Effect<
  VectorStore,
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const slabs = Math.floor((settings.cacheMb * 2 ** 20) / slabBytes)
    const data = { slabs, ...(device && { deviceRows: settings.deviceRows }) }
    const link = yield* openScanHost(log, data, device)
    const read = makePageReader(database)
    const cache = new ScanCache({ database, clock, read, link, slabs })
    const readAll = ({ tenant, space, limit }: VectorQuery, query: ScanQuery) =>
      Effect.gen(function* () {
        const wanted = query.ranges && rangesByDocument(query.ranges)
        const documents = yield* readyDocuments(database, tenant, space, query.nowMs)
        const searched = documents.filter(({ no }) => !wanted || wanted.has(no))
        const best = new BestChunks(limit)
        for (const page of pagesOf(searched, space))
          for (const packed of yield* read(space, page)) {
            // only its own ranges: those of all documents would be copied for each of them
            const ranges = wanted?.get(packed.document)
            const own = { ...query, ...(ranges && { ranges }) }
            const hits = yield* link().ask({ type: "scan", packed, query: own })
            for (const hit of hits) best.offer(hit)
          }
        return best.hits
      })
    const search = (asked: VectorQuery): Effect.Effect<readonly ScoredChunk[], PortError> =>
      Effect.gen(function* () {
        const query = scanQuery(asked, clock.nowMs())
        const version = yield* versionOf(database, asked.tenant)
        return yield* cache.use(
          { ...asked, version },
          (current, index) => current.ask({ type: "search", index, query }),
          readAll(asked, query),
        )
      })
    return {
      ...vectorRows(database, column),
      name: "exact scan",
      search: (asked) => Effect.map(search(asked), asHits),
    }
  })
