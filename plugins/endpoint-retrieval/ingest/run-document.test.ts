import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type IngestFixture, openIngestFixture } from "../testing/ingest-fixture.ts"
import { runDocument } from "./run-document.ts"
import { sweepRemoved } from "./upkeep.ts"

let test: IngestFixture
beforeEach(async () => {
  test = await openIngestFixture()
})
afterEach(() => test.close())

const run = (id: string) => Effect.runPromise(runDocument(test.deps, id))
const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}`).join("\n")

it("a file becomes chunks and vectors, is processed, and its tokens are paid once", async () => {
  const id = await test.upload(lines(70))
  expect(await test.file(id)).toMatchObject({ status: "uploaded" })
  await run(id)
  expect(await test.document(id)).toMatchObject({
    state: "ready",
    chunks: 70,
    embedded: 70,
    tokens: 140n,
    space: "fake-words-v1",
    dimensions: 8,
  })
  expect([(await test.chunks()).length, (await test.vectors()).length]).toEqual([70, 70])
  expect(await test.file(id)).toMatchObject({
    status: "processed",
    progress: { chunks: 70, tokens: 140 },
  })
  expect(await test.calls()).toMatchObject([{ parent: id, state: "settled", tokens: 140 }])
  expect(await test.version()).toBe(1n)
  await run(id)
  expect((await test.calls()).length).toBe(1)
})

describe("a file fails with a reason", () => {
  it("of its own, and costs nothing", async () => {
    const id = await test.upload("!")
    await run(id)
    expect(await test.file(id)).toMatchObject({
      status: "failed",
      details: "It is encrypted.",
      progress: { code: "encrypted" },
    })
    expect(await test.document(id)).toMatchObject({ state: "failed" })
    expect(await test.calls()).toEqual([])
  })
})

it("a deleted file leaves nothing", async () => {
  const id = await test.upload(lines(3))
  await run(id)
  await Effect.runPromise(test.deps.files.remove({ account: "acct_1", mode: "live" }, id))
  expect(await test.document(id)).toMatchObject({ state: "removed" })
  expect(await test.version()).toBe(2n)
  await Effect.runPromise(sweepRemoved(test.deps))
  expect([await test.document(id), await test.chunks(), await test.vectors()]).toEqual([
    undefined,
    [],
    [],
  ])
})
