import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { expect, it, vi } from "vitest"
import type { ExecutionProvider } from "../../../core/ports/execution-provider.ts"
import { vectorFixture } from "../testing/vector-fixture.ts"
import { vectorStoreContract } from "../testing/vector-store-contract.ts"
import { openVectorStore } from "./open-vector-store.ts"
import { openScanStore } from "./scan-store.ts"

vectorStoreContract("the exact scan", () => vectorFixture(openScanStore))
// memory for a few accounts of one page, so that most are given up, or read for each search
vectorStoreContract("the exact scan without memory", () =>
  vectorFixture(openScanStore, { cacheMb: 2 / 16 }),
)

it("a device that no plugin provides is refused, and without one that is provided the CPU searches", async () => {
  const settings = { device: "webgpu" }
  const opened = (providers: readonly ExecutionProvider[]) =>
    vectorFixture((deps, mode) => openVectorStore(deps, mode, providers), settings)
  await expect(opened([])).rejects.toThrow(/'device: webgpu' names no provider of devices/)
  const fixture = await opened([{ name: "webgpu", device: Effect.fail("no adapter was found") }])
  expect(fixture.log.lines).toContainEqual(
    // where the database has pgvector, that is the reason
    expect.objectContaining({
      event: "retrieval.device_unused",
      fields: { reason: expect.stringMatching(/no adapter was found|pgvector/) },
    }),
  )
  const [tenant, space] = [
    { account: "acct_1", mode: "live" },
    { id: "flat", dimensions: 2 },
  ] as const
  const vector = Float32Array.from([1, 0])
  const document = await fixture.add(tenant, space, [vector])
  expect(await fixture.search({ tenant, space, vector })).toEqual([[document, 0, 1]])
  await fixture.close()
})

it("sends the thread with each document its own ranges only, however many there are", async () => {
  const fixture = await vectorFixture(openScanStore, { cacheMb: 0 })
  const post = vi.spyOn(Worker.prototype, "postMessage")
  try {
    const tenant = { account: "acct_1", mode: "live" } as const
    const space = { id: "flat", dimensions: 2 }
    const vector = Float32Array.from([1, 0])
    const documents: bigint[] = []
    for (let i = 0; i < 9; i++) documents.push(await fixture.add(tenant, space, [vector, vector]))
    const ranges = documents.slice(1).flatMap((document) => [
      { document, from: 1, to: 1 },
      { document, from: 5, to: 9 },
    ])
    const hits = await fixture.search({ tenant, space, vector, ranges, limit: 20 })
    expect(hits.map(([document, index]) => [document, index])).toEqual(
      documents.slice(1).map((document) => [document, 1]),
    )
    const sent = post.mock.calls
      .filter(([{ type }]) => type === "scan")
      .map(([{ packed, query }]) => [packed.document, query.ranges])
    const own = (document: number) => [
      { document, from: 1, to: 1 },
      { document, from: 5, to: 9 },
    ]
    expect(sent).toEqual(documents.slice(1).map((no) => [Number(no), own(Number(no))]))
  } finally {
    post.mockRestore()
    await fixture.close()
  }
})
