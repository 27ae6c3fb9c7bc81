import { readdirSync } from "node:fs"
import { posix } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Stream } from "effect"
import { describe, expect, it } from "vitest"
import type { Call, Endpoint } from "../../core/ports/endpoint.ts"
import { ownFiles, packageFiles } from "./asset-list.ts"
import { type Asset, assetRoot, loadAssets } from "./assets.ts"
import { makeAssetsEndpoint, makePageEndpoint } from "./endpoint.ts"
import { contentSecurityPolicy, makePage } from "./page.ts"

const assets = loadAssets()
const textOf = ({ bytes }: Asset) => Buffer.from(bytes).toString("utf8")
const page = textOf(makePage())

const answer = async (endpoint: Endpoint, params: Record<string, string> = {}) => {
  const { bound, run } = await Effect.runPromise(
    endpoint.plan({ params } as unknown as Call<unknown>),
  )
  const reply = await Effect.runPromise(Effect.scoped(run))
  if (!("bytes" in reply)) throw new Error("no bytes")
  const [bytes] = await Effect.runPromise(Stream.runCollect(reply.bytes))
  return { bound, reply, bytes }
}

describe("the page", () => {
  it("loads only assets that are served", () => {
    const named = [
      ...page.matchAll(/(?:src|href)="\/dashboard\/assets\/([^"]+)"/g),
      ...page.matchAll(/":"\/dashboard\/assets\/([^"]+)"/g),
    ].map((match) => match[1]!)
    expect(named.length).toBeGreaterThan(ownFiles.length)
    expect(named.filter((name) => !assets.has(name))).toEqual([])
  })

  it("has nothing inline but the import map, which its policy names by hash", () => {
    const inline = [...page.matchAll(/<script(?![^>]*src=)([^>]*)>([^<]*)</g)]
    expect(inline.map((match) => match[1])).toEqual([' type="importmap"'])
    expect(page).not.toMatch(/<style|\son\w+=|\sstyle=/)
    expect(contentSecurityPolicy).toMatch(/script-src 'self' 'sha256-[\w+/]+=*'; style-src 'self';/)
    expect(contentSecurityPolicy).not.toContain("unsafe")
  })
})

describe("the files", () => {
  it("are all those of the folder", () => {
    const folder = fileURLToPath(new URL("web/", import.meta.url))
    const found = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith(".test.ts"))
      .map((entry) => posix.relative(folder, posix.join(entry.parentPath, entry.name)))
    expect([...ownFiles].sort()).toEqual(found.sort())
  })

  it("import what is served, and nothing of a package that the map does not name", () => {
    for (const [name, asset] of assets)
      for (const [, imported] of textOf(asset).matchAll(
        /^(?:import|export)\b[^"']*?\bfrom\s*["']([^"']+)["']/gm,
      )) {
        const target = imported!.startsWith(".")
          ? posix.join(posix.dirname(name), imported!)
          : packageFiles[imported as keyof typeof packageFiles]
        expect(assets.has(target ?? ""), `${name} imports ${imported}`).toBe(true)
      }
  })

  it("put no text where markup is expected, and ask for nothing that is not there", () => {
    const own = ownFiles
      .filter((name) => name.endsWith(".js"))
      .map((name) => textOf(assets.get(name)!))
    for (const text of own)
      expect(text).not.toMatch(
        /innerHTML|dangerouslySetInnerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/,
      )
    for (const asset of assets.values()) expect(textOf(asset)).not.toContain("sourceMappingURL")
  })
})

describe("the endpoints", () => {
  it("the page is public and free", async () => {
    const endpoint = makePageEndpoint(makePage())
    const { bound, reply, bytes } = await answer(endpoint)
    expect([endpoint.access, bound]).toEqual(["public", {}])
    expect(reply).toMatchObject({
      status: 200,
      mediaType: "text/html; charset=utf-8",
      headers: { "content-security-policy": contentSecurityPolicy, "cache-control": "no-cache" },
    })
    expect(Buffer.from(bytes!).toString()).toBe(page)
  })

  it("a file answers its bytes, with a tag that follows them", async () => {
    const endpoint = makeAssetsEndpoint(assets)
    const [main, words] = [
      await answer(endpoint, { file: "main.js" }),
      await answer(endpoint, { folder: "words", file: "en.js" }),
    ]
    expect(main.bytes).toEqual(assets.get("main.js")?.bytes)
    expect(main.reply).toMatchObject({
      mediaType: "text/javascript; charset=utf-8",
      headers: { etag: assets.get("main.js")?.etag },
    })
    expect(words.reply.headers?.etag).not.toBe(main.reply.headers?.etag)
  })

  it.each([
    { file: "nothing.js" },
    { file: "../plugin.ts" },
    { folder: "..", file: "plugin.ts" },
    { folder: "../..", file: "package.json" },
    { file: "words" },
    { file: "constructor" },
    { file: "" },
    {},
  ])("nothing else is served: %j", async (params) => {
    await expect(
      answer(makeAssetsEndpoint(assets), params as Record<string, string>),
    ).rejects.toMatchObject({ code: "not_found" })
  })

  it("live below the page", () => expect(assetRoot).toBe("/dashboard/assets"))
})
