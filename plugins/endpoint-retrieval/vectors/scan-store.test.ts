import { Worker } from "node:worker_threads"
import { expect, it, vi } from "vitest"
import { vectorFixture } from "../testing/vector-fixture.ts"
import { vectorStoreContract } from "../testing/vector-store-contract.ts"
import { openScanStore } from "./scan-store.ts"

vectorStoreContract("the exact scan", () => vectorFixture(openScanStore))
// memory for a few accounts of one page, so that most are given up, or read for each search
vectorStoreContract("the exact scan without memory", () =>
  vectorFixture(openScanStore, { cacheMb: 2 / 16 }),
)

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
