import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { type Database, PortError } from "../../../../core/index.ts"
import { fakeLog } from "../../../../testing/fakes.ts"
import { openTestDatabase, type TestDatabase } from "../../../../testing/postgres.ts"
import { migrations as retrievalMigrations } from "../../migrations.ts"
import { type OpenStore, vectorFixture } from "../../testing/vector-fixture.ts"
import { vectorStoreContract } from "../../testing/vector-store-contract.ts"
import { openVectorStore } from "../open-vector-store.ts"
import { openScanStore } from "../scan-store.ts"
import type { VectorSpace } from "../vector-store.ts"
import { openHalfvecTable } from "./halfvec-table.ts"
import { makeExactStore, makeHnswStore } from "./pgvector-store.ts"

// a server whose user may make the extension
const server = process.env.RAKIT_TEST_PGVECTOR_URL

const space: VectorSpace = { id: 'it\'s a "space"', dimensions: 16 }
const someVectors = (count: number) =>
  Array.from({ length: count }, () => Float32Array.from({ length: 16 }, () => Math.random() - 0.5))
const [mine, theirs] = (["mine", "theirs"] as const).map(
  (account) => ({ account, mode: "live" }) as const,
)
const documentsOf = (hits: readonly (readonly [bigint, number, number])[]) => [
  ...new Set(hits.map(([document]) => document)),
]
const countOf = async (database: Database, from: RawBuilder<unknown>): Promise<number> => {
  const { rows } = await sql<{ count: bigint }>`SELECT count(*) FROM ${from}`.execute(
    database.queries(),
  )
  return Number(rows[0]!.count)
}

/** How often the indices of vectors were searched; a connection reports after a while only. */
const indexScans = async (database: Database): Promise<number> => {
  await sql`SELECT pg_stat_force_next_flush()`.execute(database.queries())
  const { rows } = await sql<{ scans: bigint }>`
    SELECT coalesce(sum(idx_scan), 0)::bigint AS scans FROM pg_stat_user_indexes
    WHERE indexrelname LIKE 'retrieval_hnsw%'`.execute(database.queries())
  return Number(rows[0]!.scans)
}

/** With an index for accounts that are small enough for a test. */
const openIndexed: OpenStore = (deps, mode) =>
  Effect.as(openHalfvecTable(deps.database, deps.log, mode), makeHnswStore(deps, { from: 500 }))

describe.skipIf(!server)("with pgvector", () => {
  vectorStoreContract("the exact search of pgvector", () =>
    vectorFixture(openVectorStore, {}, server),
  )
  vectorStoreContract("the HNSW index of pgvector", () =>
    vectorFixture(openVectorStore, { index: "hnsw" }, server),
  )

  it("large accounts are searched by an index, which finds nearly all, and nothing of others", async () => {
    const fixture = await vectorFixture(openIndexed, {}, server)
    const { add, hide, search, log } = fixture
    const exactStore = makeExactStore(fixture.deps)
    try {
      const own = [
        await add(mine!, space, someVectors(600)),
        await add(mine!, space, someVectors(600)),
      ]
      const other = await add(theirs!, space, someVectors(1500))
      const query = { tenant: mine!, space, limit: 20 }
      await search({ ...query, vector: someVectors(1)[0]! })
      await vi.waitUntil(
        () => log.lines.some(({ event }) => event.startsWith("retrieval.index_")),
        {
          timeout: 15_000,
        },
      )
      let shared = 0
      for (const vector of someVectors(20)) {
        const hits = await search({ ...query, vector })
        expect(documentsOf(hits).every((document) => own.includes(document))).toBe(true)
        const exact = await Effect.runPromise(exactStore.search({ ...query, vector }))
        const same = exact.filter(({ document, index }) =>
          hits.some(([no, idx]) => no === document && idx === index),
        )
        shared += same.length
      }
      expect(shared / 400).toBeGreaterThan(0.95)
      // the exact search, which finds all, too, would stand in for an index that is not used
      await vi.waitUntil(async () => (await indexScans(fixture.database)) >= 20, 15_000)
      expect(log.lines.filter(({ event }) => event === "retrieval.index_failed")).toEqual([])
      // the same space with vectors of another length: such an index does not know them
      const wider = { ...space, dimensions: 20 }
      const [long] = [Float32Array.from({ length: 20 }, () => 0.1)]
      const document = await add(mine!, wider, [long!])
      expect(documentsOf(await search({ ...query, space: wider, vector: long! }))).toEqual([
        document,
      ])
      await hide(own[0]!)
      const [vector] = someVectors(1)
      expect(documentsOf(await search({ ...query, vector: vector! }))).toEqual([own[1]])
      await hide(other)
      expect(await search({ ...query, tenant: theirs!, vector: vector! })).toEqual([])
    } finally {
      await fixture.close()
    }
  })

  it("an index that failed is made anew after a while, and not by each search", async () => {
    const fixture = await vectorFixture(openIndexed, {}, server)
    const { add, search, log, clock, database } = fixture
    const db = database.queries()
    const count = (name: string) => log.lines.filter(({ event }) => event === name).length
    try {
      await sql`
        CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql
        AS 'BEGIN RAISE EXCEPTION ''no index today''; END'`.execute(db)
      await sql`
        CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE INDEX')
        EXECUTE FUNCTION refuse()`.execute(db)
      const [vector] = someVectors(1)
      await add(mine!, space, someVectors(600))
      const ask = () => search({ tenant: mine!, space, vector: vector!, limit: 20 })
      expect(await ask()).toHaveLength(20)
      await vi.waitUntil(() => count("retrieval.index_failed") > 0, { timeout: 15_000 })
      clock.advance(299_000)
      for (let n = 0; n < 5; n++) await ask()
      await sql`DROP EVENT TRIGGER refuse`.execute(db)
      await ask()
      clock.advance(1_000)
      expect(count("retrieval.index_made")).toBe(0)
      await ask()
      await vi.waitUntil(() => count("retrieval.index_made") > 0, { timeout: 15_000 })
      expect(count("retrieval.index_failed")).toBe(1)
    } finally {
      await fixture.close()
    }
  })

  it("vectors that were kept without it are moved into its columns", async () => {
    const fixture = await vectorFixture(openScanStore, {}, server)
    try {
      const vectors = someVectors(1200)
      await fixture.add(mine!, space, vectors)
      const query = { tenant: mine!, space, vector: vectors[700]!, limit: 1 }
      const before = await Effect.runPromise(fixture.store.search(query))
      expect(
        await Effect.runPromise(openHalfvecTable(fixture.database, fixture.log, "server")),
      ).toBeUndefined()
      expect(fixture.log.lines).toMatchObject([
        { event: "retrieval.vectors_moved", fields: { moved: 1200 } },
      ])
      const [hit] = await Effect.runPromise(makeExactStore(fixture.deps).search(query))
      expect(hit).toEqual({ ...before[0], score: expect.closeTo(before[0]!.score, 3) })
    } finally {
      await fixture.close()
    }
  })

  it("a command uses what the servers use, and makes and moves nothing", async () => {
    const fixture = await vectorFixture(openScanStore, { index: "hnsw" }, server)
    const { deps, database } = fixture
    const opened = (mode: "server" | "command") =>
      Effect.runPromise(Effect.scoped(Effect.map(openVectorStore(deps, mode), ({ name }) => name)))
    try {
      await fixture.add(mine!, space, someVectors(3))
      expect(await opened("command")).toBe("exact scan")
      expect(await countOf(database, sql`retrieval_vector`)).toBe(3)
      expect(await countOf(database, sql`pg_extension WHERE extname = 'vector'`)).toBe(0)
      expect(await opened("server")).toBe("pgvector hnsw")
      expect(await opened("command")).toBe("pgvector hnsw")
      expect(await countOf(database, sql`retrieval_halfvec`)).toBe(3)
      const store = makeHnswStore(deps, { from: 1, makesIndices: false })
      const query = { tenant: mine!, space, vector: someVectors(1)[0]!, limit: 1 }
      expect(await Effect.runPromise(store.search(query))).toHaveLength(1)
      expect(await countOf(database, sql`pg_class WHERE relname LIKE 'retrieval_hnsw%'`)).toBe(0)
    } finally {
      await fixture.close()
    }
  })

  describe("a user who may not make the extension", () => {
    const role = `rakit_test_${process.pid}`
    let test: TestDatabase
    const asUser = async () => {
      const db = test.database.queries()
      await sql`CREATE ROLE ${sql.id(role)}`.execute(db)
      await sql`GRANT ALL ON SCHEMA public TO ${sql.id(role)}`.execute(db)
      await sql`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${sql.id(role)}`.execute(db)
      const name = new URL(test.url).pathname.slice(1)
      await sql`ALTER DATABASE ${sql.id(name)} SET role = ${sql.lit(role)}`.execute(db)
      return await test.openAgain()
    }
    const open = (database: Database) =>
      Effect.runPromise(openHalfvecTable(database, fakeLog(), "server"))
    beforeEach(async () => {
      test = await openTestDatabase(server)
      await Effect.runPromise(test.database.migrate("endpoint-retrieval", retrievalMigrations))
    })
    afterEach(async () => {
      await sql`DROP OWNED BY ${sql.id(role)}`.execute(test.database.queries())
      await sql`DROP ROLE ${sql.id(role)}`.execute(test.database.queries())
      await test.remove()
    })

    it("does without", async () => {
      expect(await open(await asUser())).toMatch(/its user may not make the extension/)
    })

    it("uses it where the table is there", async () => {
      await open(test.database)
      expect(await open(await asUser())).toBeUndefined()
    })

    it("is not taken for another failure, which ends the start", async () => {
      const failure = new PortError({ port: "database", message: "timed out", why: "unavailable" })
      const broken = { ...(await asUser()), migrate: () => Effect.fail(failure) }
      await expect(open(broken)).rejects.toThrow("timed out")
    })
  })
})

it("a database without pgvector is searched by the own scan, and has no HNSW", async () => {
  const fixture = await vectorFixture(openVectorStore)
  try {
    if (fixture.store.name !== "exact scan") return
    await expect(vectorFixture(openVectorStore, { index: "hnsw" })).rejects.toThrow(
      /'index: hnsw' needs pgvector/,
    )
  } finally {
    await fixture.close()
  }
})
