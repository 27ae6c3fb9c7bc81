import { Effect } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import type { Tenant } from "../../../core/index.ts"
import { runs } from "../../../testing/index.ts"
import { type VectorFixture, vectorFixture } from "../testing/vector-fixture.ts"
import { unitPrefix } from "./half-floats.ts"
import { openVectorStore } from "./open-vector-store.ts"
import { openScanStore } from "./scan-store.ts"
import type { ChunkRange, VectorSpace } from "./vector-store.ts"

const tenants: readonly Tenant[] = [
  { account: "a", mode: "live" },
  { account: "a", mode: "test" },
  { account: "b", mode: "live" },
]
const spaces: readonly VectorSpace[] = [
  { id: "one", dimensions: 4 },
  { id: "one", dimensions: 3 },
  { id: "two", dimensions: 4 },
]

interface Known {
  readonly document: bigint
  readonly tenant: Tenant
  readonly space: VectorSpace
  readonly vectors: readonly Float32Array[]
  readonly expiresMs: number
}

const vector = fc
  .array(fc.integer({ min: -9, max: 9 }), { minLength: 4, maxLength: 4 })
  .filter((numbers) => numbers.slice(0, 3).some((value) => value !== 0))
  .map((numbers) => Float32Array.from(numbers))
const someone = { tenant: fc.constantFrom(...tenants), space: fc.constantFrom(...spaces) }
const range = fc.record({ nth: fc.nat(), from: fc.nat(3), to: fc.nat(6) })
const operation = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("add" as const),
      ...someone,
      vectors: fc.array(vector, { minLength: 1, maxLength: 40 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("hide" as const), nth: fc.nat() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("wait" as const),
      ms: fc.integer({ min: 1, max: 900_000 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant("search" as const),
      ...someone,
      vector,
      limit: fc.integer({ min: 1, max: 60 }),
      ranges: fc.option(fc.array(range, { maxLength: 4 })),
    }),
  },
)
type Operation = typeof operation extends fc.Arbitrary<infer A> ? A : never

/** A store beside a list of all documents, which are compared with one by one. */
class Model {
  private readonly fixture: VectorFixture
  private known: readonly Known[] = []

  constructor(fixture: VectorFixture) {
    this.fixture = fixture
  }

  async run(operation: Operation): Promise<void> {
    const { fixture } = this
    if (operation.type === "wait") fixture.clock.advance(operation.ms)
    else if (operation.type === "hide") await this.hide(operation.nth)
    else if (operation.type === "search") await this.search(operation)
    else {
      const { tenant, space, vectors } = operation
      const expiresMs = fixture.clock.nowMs() + 1_000_000
      const document = await fixture.add(tenant, space, vectors)
      this.known = [...this.known, { document, tenant, space, vectors, expiresMs }]
    }
  }

  private async hide(nth: number): Promise<void> {
    const hidden = this.known[nth % this.known.length]
    if (!hidden) return
    await this.fixture.hide(hidden.document)
    this.known = this.known.filter((one) => one !== hidden)
  }

  private async search({
    tenant,
    space,
    vector: asked,
    limit,
    ranges: drawn,
  }: Extract<Operation, { type: "search" }>): Promise<void> {
    const ranges =
      drawn?.flatMap(({ nth, from, to }): readonly ChunkRange[] => {
        const document = this.known[nth % this.known.length]?.document
        return document === undefined ? [] : [{ document, from, to }]
      }) ?? undefined
    const query = { tenant, space, vector: asked, limit, ...(ranges && { ranges }) }
    const hits = await Effect.runPromise(this.fixture.store.search(query))
    const all = this.scores(query)
    for (const { document, index, score } of hits)
      expect(all.get(`${document}/${index}`)).toBeCloseTo(score, 2)
    const best = [...all.values()].sort((a, b) => b - a).slice(0, limit)
    expect(hits.length).toBe(best.length)
    for (const [i, { score }] of hits.entries()) expect(score).toBeCloseTo(best[i]!, 2)
    expect(new Set(hits.map(({ document, index }) => `${document}/${index}`)).size).toBe(
      hits.length,
    )
  }

  /** The cosine of each chunk that may be found. */
  private scores({
    tenant,
    space,
    vector: asked,
    ranges,
  }: {
    tenant: Tenant
    space: VectorSpace
    vector: Float32Array
    ranges?: readonly ChunkRange[]
  }) {
    const nowMs = this.fixture.clock.nowMs()
    const isFound = (document: bigint, index: number) =>
      ranges?.some((one) => one.document === document && one.from! <= index && index <= one.to!) ??
      true
    const unit = unitPrefix(asked, space.dimensions)
    return new Map(
      this.known
        .filter((one) => one.tenant === tenant && one.space === space && one.expiresMs > nowMs)
        .flatMap(({ document, vectors }) =>
          vectors.map((stored, index) => ({
            document,
            index,
            stored: unitPrefix(stored, space.dimensions),
          })),
        )
        .filter(({ document, index }) => isFound(document, index))
        .map(({ document, index, stored }): readonly [string, number] => [
          `${document}/${index}`,
          stored.reduce((sum, value, i) => sum + value * unit[i]!, 0),
        ]),
    )
  }
}

const server = process.env.RAKIT_TEST_PGVECTOR_URL

it.each([
  ["the own scan", openScanStore, {}, undefined],
  // 4 slabs: two accounts fit, the third is read or takes their place
  ["the own scan with little memory", openScanStore, { cacheMb: 4 / 16 }, undefined],
  ...(server ? [["pgvector", openVectorStore, {}, server] as const] : []),
] as const)(
  "%s finds what a list of all documents has, and nothing of others",
  async (_, open, settings, at) => {
    const fixture = await vectorFixture(open, settings, at)
    try {
      const model = new Model(fixture)
      await fc.assert(
        // one database for all runs: what earlier ones left must not be found either
        fc.asyncProperty(
          fc.array(operation, { minLength: 1, maxLength: 25 }),
          async (operations) => {
            for (const one of operations) await model.run(one)
          },
        ),
        { numRuns: runs(40), endOnFailure: true },
      )
    } finally {
      await fixture.close()
    }
  },
)
