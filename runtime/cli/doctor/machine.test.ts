import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { clock, disk, memory, processor, versions } from "./machine.ts"

it.each([
  ["20.19.0", "ok"],
  ["24.1.0", "ok"],
  ["20.18.3", "problem"],
  ["18.20.0", "problem"],
])("Node %s: %s", (running, state) => expect(versions(running).state).toBe(state))

it("weights that do not fit beside the rest are a warning", () => {
  expect(memory(1 * 2 ** 30, 4 * 2 ** 30)).toMatchObject({ name: "memory", state: "ok" })
  expect(memory(3 * 2 ** 30, 4 * 2 ** 30)).toMatchObject({
    state: "warning",
    detail: "4.0 GB; the models that are here have 3.0 GB of weights",
  })
})

it.skipIf(process.arch !== "x64")("a CPU without AVX2 is a warning", () => {
  expect(processor(["sse", "sse2"]).state).toBe("warning")
  expect(processor(["avx2", "amx_tile"])).toMatchObject({
    state: "ok",
    detail: expect.stringContaining("(amx_tile, avx2)"),
  })
})

it("a clock that is off is a warning, one before the release a problem", () => {
  const now = Date.UTC(2027, 0, 1)
  expect(clock(now, now + 4_000).state).toBe("ok")
  expect(clock(now, now + 61_000)).toMatchObject({
    state: "warning",
    detail: "2027-01-01T00:00:00.000Z, 61 s off the database's",
  })
  expect(clock(0).state).toBe("problem")
})

it("a folder that is not there yet is judged by the one above", () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-doctor-"))
  expect(disk("disk", join(folder, "a", "b"))).toMatchObject({
    detail: expect.stringMatching(/ free for .*\/a\/b$/),
  })
  rmSync(folder, { recursive: true })
  expect(disk("disk", "/proc/nowhere").state).toBe("problem")
})
