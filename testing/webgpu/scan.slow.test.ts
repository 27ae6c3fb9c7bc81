import { Effect, Exit, Scope } from "effect"
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import type { Device } from "../../core/ports/execution-provider.ts"
import { encoderFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import { collect, context, openBackend } from "../../plugins/backend-onnx/testing/open-backend.ts"
import { vectorFixture } from "../../plugins/endpoint-retrieval/testing/vector-fixture.ts"
import { vectorStoreContract } from "../../plugins/endpoint-retrieval/testing/vector-store-contract.ts"
import { toHalves, unitPrefix } from "../../plugins/endpoint-retrieval/vectors/half-floats.ts"
import {
  type PackedRows,
  packedRowBytes,
  type ScanQuery,
} from "../../plugins/endpoint-retrieval/vectors/scan/packed-rows.ts"
import {
  openScanHost,
  type ScanLink,
} from "../../plugins/endpoint-retrieval/vectors/scan/scan-host.ts"
import { openScanStore } from "../../plugins/endpoint-retrieval/vectors/scan-store.ts"
import { noDevice, testProvider } from "./test-device.ts"

const random = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32 - 0.5
  }
}

const unit = (next: () => number, dimensions: number) =>
  unitPrefix(Float32Array.from({ length: dimensions }, next), dimensions)

const packed = (
  document: number,
  count: number,
  dimensions: number,
  expiresMs = 10_000,
): PackedRows => {
  const rows = new Uint8Array(count * packedRowBytes(dimensions))
  const view = new DataView(rows.buffer)
  const next = random(document)
  for (let row = 0; row < count; row++) {
    const at = row * packedRowBytes(dimensions)
    view.setInt32(at, row)
    for (const [i, half] of toHalves(unit(next, dimensions)).entries())
      view.setUint16(at + 4 + 2 * i, half, true)
  }
  return { document, expiresMs, rows }
}

const slabs = 4_000
let scope: Scope.Closeable
beforeEach(() => {
  scope = Scope.makeUnsafe()
})
afterEach(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const opened = async (data: { readonly deviceRows?: number }, device?: Device) => {
  const { log } = testProvider()
  const host = openScanHost(log, { slabs, ...data }, device).pipe(Scope.provide(scope))
  return { link: (await Effect.runPromise(host))(), log }
}

/** A device that counts the searches for which it named rows. */
const counted = (device: Device) => {
  const counts = { found: 0 }
  const start: Device["start"] = (entry, data) => {
    const channel = device.start(entry, data)
    channel.on("message", ({ type, rows }: { type: string; rows?: Uint32Array }) => {
      if (type === "found" && rows) counts.found++
    })
    return channel
  }
  return { device: { ...device, start }, counts }
}

const ask = (link: ScanLink, query: ScanQuery) =>
  Effect.runPromise(link.ask({ type: "search", index: 1, query }))

describe.skipIf(noDevice)("the exact scan on a device", { timeout: 180_000 }, () => {
  test.each([384, 512, 100, 1024])(
    "finds what the CPU finds, of rows that change, of %i dimensions",
    async (dimensions) => {
      const { device } = testProvider()
      const { device: seen, counts } = counted(device)
      const { link } = await opened({ deviceRows: 5_000 }, seen)
      const { link: reference } = await opened({})
      const both = (message: () => Parameters<ScanLink["post"]>[0]) => {
        link.post(message())
        reference.post(message())
      }
      const next = random(7)
      const compare = async (nowMs = 0, limit = 10) => {
        const vector = unit(next, dimensions)
        const query = { vector, limit, nowMs }
        const hits = await ask(link, query)
        expect(hits).toEqual(await ask(reference, query))
        expect(hits).toHaveLength(limit)
      }
      const served = async () => {
        const before = counts.found
        await vi.waitUntil(
          async () => {
            await compare()
            return counts.found > before
          },
          { timeout: 60_000, interval: 10 },
        )
      }
      both(() => ({ type: "open", index: 1, dimensions }))
      for (let document = 1; document <= 12; document++)
        both(() => ({
          type: "add",
          index: 1,
          packed: packed(document, 700, dimensions, document % 3 === 0 ? 500 : 10_000),
        }))
      await served()
      // documents 3, 6, 9 and 12 have expired
      await compare(500)
      for (const limit of [1, 25]) await compare(0, limit)
      both(() => ({ type: "remove", index: 1, documents: [2, 5] }))
      both(() => ({ type: "add", index: 1, packed: packed(20, 300, dimensions) }))
      await served()
      // more than there was room for
      for (let document = 30; document < 40; document++)
        both(() => ({ type: "add", index: 1, packed: packed(document, 700, dimensions) }))
      await served()
      const ranges = [{ document: 31, from: 3, to: 50 }]
      const query = { vector: unit(next, dimensions), limit: 5, nowMs: 0, ranges }
      expect(await ask(link, query)).toEqual(await ask(reference, query))
    },
  )

  test("goes on without it when its process is killed, and with it when there is another", async () => {
    const { device } = testProvider({ restarts: 1 })
    const { device: seen, counts } = counted(device)
    const { link, log } = await opened({ deviceRows: 1_000 }, seen)
    link.post({ type: "open", index: 1, dimensions: 64 })
    link.post({ type: "add", index: 1, packed: packed(1, 5_000, 64) })
    const next = random(3)
    const search = async () => {
      const hits = await ask(link, { vector: unit(next, 64), limit: 3, nowMs: 0 })
      expect(hits).toHaveLength(3)
    }
    const until = (holds: () => boolean) =>
      vi.waitUntil(
        async () => {
          await search()
          return holds()
        },
        { timeout: 60_000, interval: 10 },
      )
    await until(() => counts.found > 0)
    process.kill(device.pid()!, "SIGKILL")
    await Promise.all(Array.from({ length: 20 }, search))
    const before = counts.found
    await until(() => counts.found > before)
    process.kill(device.pid()!, "SIGKILL")
    await until(() => device.failure() !== undefined)
    await Promise.all(Array.from({ length: 20 }, search))
    expect(log.lines.map(({ event }) => event)).toEqual([
      "retrieval.scan_on_device",
      "retrieval.scan_on_cpu",
      "retrieval.scan_on_device",
      "retrieval.scan_on_cpu",
    ])
  })

  test("searches beside engines that run graphs in the same process", async () => {
    const { device, provider } = testProvider()
    const { device: seen, counts } = counted(device)
    const { link } = await opened({ deviceRows: 1_000 }, seen)
    const fixture = openBackend({}, provider)
    const model = await fixture.open("embed", encoderFolder("bert"))
    const embed = async () => {
      const items = [{ type: "text" as const, text: "the dog sleeps" }]
      const plan = model.task.plan({ items, truncate: "END" as const }, context())
      const [event] = await collect(await Effect.runPromise(plan))
      return event!.vector
    }
    const alone = await embed()
    link.post({ type: "open", index: 1, dimensions: 64 })
    link.post({ type: "add", index: 1, packed: packed(1, 5_000, 64) })
    const next = random(3)
    const search = () => ask(link, { vector: unit(next, 64), limit: 3, nowMs: 0 })
    await vi.waitUntil(
      async () => {
        const [vector, hits] = await Promise.all([embed(), search()])
        expect([vector, hits.length]).toEqual([alone, 3])
        return counts.found >= 5
      },
      { timeout: 60_000, interval: 10 },
    )
    expect(device.failure()).toBeUndefined()
    await fixture.close()
  })

  test("leaves what the device has no room for to the CPU, and says so once", async () => {
    const { device } = testProvider()
    const { device: seen, counts } = counted(device)
    const { link, log } = await opened(
      { deviceRows: 10 },
      {
        ...seen,
        start: (entry, data) => {
          const channel = seen.start(entry, data)
          return {
            on: (event, listener) => channel.on(event, listener),
            // as if there were a thousand times as many
            postMessage: (message) => {
              const { type, rows } = message as { type: string; rows: number }
              channel.postMessage(
                type === "open" ? { ...(message as object), rows: rows * 1e7 } : message,
              )
            },
          }
        },
      },
    )
    link.post({ type: "open", index: 1, dimensions: 64 })
    link.post({ type: "add", index: 1, packed: packed(1, 500, 64) })
    const next = random(3)
    const search = () => ask(link, { vector: unit(next, 64), limit: 3, nowMs: 0 })
    await search()
    await vi.waitUntil(() => log.lines.length > 0, { timeout: 60_000 })
    for (let i = 0; i < 20; i++) expect(await search()).toHaveLength(3)
    expect(log.lines).toMatchObject([{ event: "retrieval.scan_on_cpu" }])
    expect(counts.found).toBe(0)
  })
})

describe.skipIf(noDevice)("kept in the database", { timeout: 180_000 }, () => {
  vectorStoreContract("the exact scan on a device", () =>
    vectorFixture((deps) => openScanStore({ ...deps, device: testProvider().device }), {
      deviceRows: 1,
    }),
  )
})
