import { Effect, Exit, Scope } from "effect"
import { afterAll, expect, it, vi } from "vitest"
import { fakeLog } from "../../../../testing/index.ts"
import { openScanHost, type ScanLink } from "./scan-host.ts"

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const query = { vector: Float32Array.from([1, 0]), limit: 1, nowMs: 0 }
/** One row, of chunk 5: (1, 0). */
const packed = () => ({
  document: 7,
  expiresMs: 1,
  rows: Uint8Array.from([0, 0, 0, 5, 0, 0x3c, 0, 0]),
})
const fill = (link: ScanLink) => {
  link.post({ type: "open", index: 1, dimensions: 2 })
  link.post({ type: "add", index: 1, packed: packed() })
}
const search = (link: ScanLink) => Effect.runPromise(link.ask({ type: "search", index: 1, query }))
const hit = { document: 7, chunk: 5, score: 1 }

it("a thread that fails fails its searches, and the next one begins anew", async () => {
  const log = fakeLog()
  const link = await Effect.runPromise(openScanHost(log, { slabs: 4 }).pipe(Scope.provide(scope)))
  const first = link()
  fill(first)
  expect(await search(first)).toEqual([hit])
  expect(link()).toBe(first)
  first.post({ type: "unknown" } as never)
  await expect(search(first)).rejects.toThrow(/ended/)
  await vi.waitUntil(() => !first.isAlive)
  expect(log.lines).toMatchObject([{ event: "retrieval.scan_failed" }])
  await expect(search(first)).rejects.toThrow(/ended/)
  const second = link()
  expect(second).not.toBe(first)
  fill(second)
  expect(await search(second)).toEqual([hit])
  const scan = second.ask({ type: "scan", packed: packed(), query })
  expect(await Effect.runPromise(scan)).toEqual([hit])
})

it("an index that was dropped before its search is a reason to try again", async () => {
  const link = await Effect.runPromise(
    openScanHost(fakeLog(), { slabs: 4 }).pipe(Scope.provide(scope)),
  )
  const current = link()
  fill(current)
  current.post({ type: "drop", index: 1 })
  await expect(search(current)).rejects.toMatchObject({ why: "busy" })
  current.post({ type: "drop", index: 1 })
  current.post({ type: "add", index: 1, packed: packed() })
  fill(current)
  expect(await search(current)).toEqual([hit])
})

it("refuses searches that would wait behind too many", async () => {
  const link = await Effect.runPromise(
    openScanHost(fakeLog(), { slabs: 4 }).pipe(Scope.provide(scope)),
  )
  const current = link()
  fill(current)
  const exits = await Promise.all(
    Array.from({ length: 201 }, () =>
      Effect.runPromise(Effect.exit(current.ask({ type: "search", index: 1, query }))),
    ),
  )
  expect(exits.filter(Exit.isSuccess).length).toBe(200)
  expect(exits.filter(Exit.isFailure)).toHaveLength(1)
  expect(await search(current)).toEqual([hit])
})
