import "reflect-metadata/lite"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { container as root } from "tsyringe"
import { afterAll, describe, expect, it } from "vitest"
import type { Metrics } from "../../core/services/metrics.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { imageSafetyContract } from "../../testing/contracts/image-safety.ts"
import { fakeMetrics } from "../../testing/fakes/metrics.ts"
import { fakeWorkers } from "../../testing/fakes/workers.ts"
import { plugin } from "./plugin.ts"

const picture = (name: string) =>
  readFileSync(join(import.meta.dirname, "fixtures/pictures", `${name}.png`))

const folder = mkdtempSync(join(tmpdir(), "safety-images-"))
afterAll(() => rmSync(folder, { recursive: true }))

const open = (settings: object, metrics: Metrics = fakeMetrics()) =>
  Effect.gen(function* () {
    const container = root.createChildContainer()
    provide(container, Tokens.workers, fakeWorkers())
    provide(container, Tokens.metrics, metrics)
    const decoded = Schema.decodeUnknownSync(plugin.settings)(settings as never)
    yield* plugin.create(decoded).start!(container)
    return resolve(container, Tokens.imageSafety)
  })
const categoryOf = (settings: object, prompt: string | Buffer, metrics?: Metrics) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(open(settings, metrics), (safety) =>
        typeof prompt === "string" ? safety.prompt(prompt) : safety.picture(prompt),
      ),
    ),
  )

// no explicit picture is kept here: a threshold far below the default refuses an abstract one
const strict = { thresholds: { porn: 0.005 } }

imageSafetyContract(
  "safety-images",
  Effect.map(open(strict), (safety) => ({
    safety,
    harmless: { prompt: "a lighthouse in a storm", picture: picture("face") },
    refused: { prompt: { text: "a n4ked man", category: "nsfw" }, picture: picture("skin") },
  })),
)

describe("settings", () => {
  it("extend the lists and allow phrases", async () => {
    expect(await categoryOf({}, "a durian")).toBeUndefined()
    expect(await categoryOf({ extra: { nsfw: ["durian"] } }, "a dur1an")).toBe("nsfw")
    expect(await categoryOf({ extra: { public_figures: ["ann example"] } }, "AnnExample")).toBe(
      "public_figures",
    )
    expect(await categoryOf({ allow: ["nude study"] }, "a nude study")).toBeUndefined()
  })

  it("replace the lists by those of a folder", async () => {
    writeFileSync(join(folder, "nsfw.txt"), "# ours\ndurian # the fruit\n")
    expect(await categoryOf({ lists: folder }, "a durian")).toBe("nsfw")
    expect(await categoryOf({ lists: folder }, "a naked man")).toBeUndefined()
    writeFileSync(join(folder, "gore.de.txt"), "\nblut!\n")
    await expect(categoryOf({ lists: folder }, "")).rejects.toThrow("gore.de.txt, line 2: expected")
    rmSync(join(folder, "gore.de.txt"))
    rmSync(join(folder, "nsfw.txt"))
    await expect(categoryOf({ lists: folder }, "")).rejects.toThrow("has no word list")
  })

  it("turn a category off, or have it counted only", async () => {
    const counts: unknown[] = []
    const metrics: Metrics = {
      ...fakeMetrics(),
      counter: (name) => ({ add: (n, labels) => void counts.push([name, n, labels]) }),
    }
    const off = { categories: { nsfw: "off", public_figures: "off" } }
    expect(await categoryOf(off, "a naked man", metrics)).toBeUndefined()
    expect(await categoryOf(off, Buffer.from("no picture"), metrics)).toBeUndefined()
    expect(await categoryOf(off, "a naked child", metrics)).toBe("minors")
    expect(counts).toEqual([])
    const report = { categories: { nsfw: "report" }, ...strict }
    expect(await categoryOf(report, "a naked man", metrics)).toBeUndefined()
    expect(await categoryOf(report, "Joe Biden", metrics)).toBe("public_figures")
    expect(await categoryOf(report, picture("skin"), metrics)).toBeUndefined()
    const count = (stage: string) => ["rakit_safety_reports_total", 1, { stage, category: "nsfw" }]
    expect(counts).toEqual([count("prompt"), count("picture")])
  })

  it.each([
    { extra: { nsfw: ["a*b"] } },
    { allow: ["word = 3"] },
    { categories: { minors: "off" } },
    { categories: { nsfw: "on" } },
    { thresholds: { porn: 2 } },
  ])("are refused: %j", (settings) => {
    const decode = Schema.decodeUnknownSync(plugin.settings, { onExcessProperty: "error" })
    expect(() => decode(settings as never)).toThrow()
  })
})
