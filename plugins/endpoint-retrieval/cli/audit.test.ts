import { Effect } from "effect"
import { sql } from "kysely"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Tenant } from "../../../core/index.ts"
import { type VectorFixture, vectorFixture } from "../testing/vector-fixture.ts"
import { openVectorStore } from "../vectors/open-vector-store.ts"
import { openScanStore } from "../vectors/scan-store.ts"
import { tableOf } from "../vectors/vector-rows.ts"
import type { VectorStore } from "../vectors/vector-store.ts"
import { audit } from "./audit.ts"
import { auditJson, auditText, isSoundAudit } from "./audit-text.ts"

const space = { id: "flat", dimensions: 2 }
/** Vectors at so many angles, 1.5 degrees apart. */
const fan = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => {
    const angle = ((from + i * 1.5) * Math.PI) / 180
    return Float32Array.from([Math.cos(angle), Math.sin(angle)])
  })

// a server whose user may make the extension
const server = process.env.RAKIT_TEST_PGVECTOR_URL

const stores: readonly (readonly [string, object, string | undefined])[] = [
  ["exact scan", {}, undefined],
  ...(server
    ? ([
        ["pgvector exact", {}, server],
        ["pgvector hnsw", { index: "hnsw" }, server],
      ] as const)
    : []),
]

describe.each(stores)("rakit retrieval audit of the %s", (name, settings, url) => {
  let fixture: VectorFixture
  let accounts = 0
  let tenant: Tenant
  const auditOf = (store: VectorStore = fixture.store) =>
    Effect.runPromise(audit(fixture.deps, store, tenant.account))
  const run = (statement: ReturnType<typeof sql>) => statement.execute(fixture.database.queries())
  const add = async (documents: number, chunks: number) => {
    tenant = { account: `acct_${++accounts}`, mode: "live" }
    for (let i = 0; i < documents; i++) await fixture.add(tenant, space, fan(chunks, i * 40))
  }
  beforeAll(async () => {
    fixture = await vectorFixture(url ? openVectorStore : openScanStore, settings, url)
  })
  afterAll(() => fixture.close())

  it("finds nothing wrong with an exact scan, whose recall is 1", async () => {
    await add(3, 50)
    const found = await auditOf()
    expect(found.parts).toMatchObject([
      { documents: 3, chunks: 150, queries: 100, exact: 1000, found: 1000, foreign: 0 },
    ])
    expect(isSoundAudit(found)).toBe(true)
    expect(auditText(found)).toContain(
      `ok    ${tenant.account} (live), flat: 3 documents, 150 chunks; recall@10 1.0000, 100 queries`,
    )
    expect(JSON.parse(auditJson(found))).toMatchObject({
      sound: true,
      index: name,
      accounts: [{ account: tenant.account, recall: 1, chunks_without_vectors: 0 }],
    })
  })

  it("measures what an index misses, and sees hits of others", async () => {
    await add(1, 40)
    const lossy: VectorStore = {
      ...fixture.store,
      search: (query) =>
        Effect.map(fixture.store.search({ ...query, limit: 40 }), (hits) =>
          hits.filter(({ index }) => index % 4 > 0).slice(0, query.limit),
        ),
    }
    const lost = await auditOf(lossy)
    const { exact, found } = lost.parts[0]!
    expect(found / exact).toBeGreaterThan(0.6)
    expect(found / exact).toBeLessThan(0.85)
    expect(isSoundAudit(lost)).toBe(false)
    const leaky: VectorStore = {
      ...fixture.store,
      search: (query) =>
        Effect.map(fixture.store.search(query), (hits) => [
          { document: 999_999n, index: 0, score: 1 },
          ...hits.slice(1),
        ]),
    }
    const leaked = await auditOf(leaky)
    expect(leaked.parts[0]!.foreign).toBe(40)
    expect(auditText(leaked)).toContain("40 hits that are not the account's own")
  })

  it("counts chunks without vectors, vectors without chunks and without documents", async () => {
    await add(2, 4)
    const documents = sql`(SELECT no FROM retrieval_document WHERE account = ${tenant.account} ORDER BY no LIMIT 1)`
    const vectors = sql.table(tableOf(fixture.store))
    await run(sql`DELETE FROM ${vectors} WHERE document_no = ${documents} AND idx < 2`)
    await run(sql`DELETE FROM retrieval_chunk WHERE document_no = ${documents} AND idx = 3`)
    await run(sql`INSERT INTO ${vectors} (document_no, idx, space, vector)
      SELECT 888888, idx, space, vector FROM ${vectors} WHERE document_no = ${documents}`)
    const found = await auditOf()
    expect(found).toMatchObject({
      orphans: 2,
      parts: [{ chunksWithoutVectors: 2, vectorsWithoutChunks: 1 }],
    })
    expect(isSoundAudit(found)).toBe(false)
    const text = auditText(found)
    expect(text).toContain("2 chunks without a vector\n")
    expect(text).toContain("1 vector without a chunk\n")
    expect(text).toContain("2 vectors of documents that do not exist\n")
  })

  it("says when nothing is searched", async () => {
    tenant = { account: "acct_nobody", mode: "live" }
    await run(sql`DELETE FROM ${sql.table(tableOf(fixture.store))} WHERE document_no = 888888`)
    expect(auditText(await auditOf())).toBe("No document is ready, so nothing is searched.\n")
  })
})
