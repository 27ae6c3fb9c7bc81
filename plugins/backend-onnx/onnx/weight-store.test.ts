import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, expect, test } from "vitest"
import { regionAlignment, WeightStore } from "./weight-store.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-store-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const region = fc.record({
  bytes: fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 3_000_000 })),
  // reserved later than regions before it are written
  isLate: fc.boolean(),
  parts: fc.integer({ min: 1, max: 3 }),
})

test("regions that are filled in any order hold what was written, up to the last one's end", () => {
  let files = 0
  fc.assert(
    fc.property(
      fc.array(region, { minLength: 1, maxLength: 6 }),
      fc.infiniteStream(fc.nat()),
      (regions, order) => {
        const name = `${files++}.bin`
        const store = new WeightStore(folder, name)
        const wanted: { readonly offset: number; readonly data: Uint8Array }[] = []
        const pending: (() => void)[] = []
        const writeSome = () => {
          while (pending.length > 0) pending.splice(order.next().value! % pending.length, 1)[0]!()
        }
        for (const [index, { bytes, isLate, parts }] of regions.entries()) {
          if (isLate) writeSome()
          const place = store.reserve(bytes)
          expect(place.offset % regionAlignment).toBe(0)
          const data = new Uint8Array(bytes).fill(index + 1)
          wanted.push({ offset: place.offset, data })
          const size = Math.ceil(bytes / parts)
          for (let at = 0; at < bytes; at += size)
            pending.push(() => store.write(place, at, data.subarray(at, at + size)))
        }
        writeSome()
        store.close()
        const stored = readFileSync(join(folder, name))
        expect(stored.length).toBe(store.size)
        for (const { offset, data } of wanted)
          expect(stored.compare(data, 0, data.length, offset, offset + data.length)).toBe(0)
        rmSync(join(folder, name))
      },
    ),
    { numRuns: 30 },
  )
})
