import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { Effect, Stream } from "effect"
import { describe, expect, it } from "vitest"
import type { Call, Endpoint } from "../../core/ports/endpoint.ts"
import { type Asset, assetRoot, loadAssets } from "./assets.ts"
import { makeAssetsEndpoint, makePageEndpoint } from "./endpoint.ts"
import { contentSecurityPolicy, makePage } from "./page.ts"

const web = join(import.meta.dirname, "web")
const assets = loadAssets()
const textOf = ({ bytes }: Asset) => Buffer.from(bytes).toString("utf8")
const page = textOf(makePage(assets))

const answer = async (endpoint: Endpoint, params: Record<string, string> = {}) => {
  const { bound, run } = await Effect.runPromise(
    endpoint.plan({ params } as unknown as Call<unknown>),
  )
  const reply = await Effect.runPromise(Effect.scoped(run))
  if (!("bytes" in reply)) throw new Error("no bytes")
  const [bytes] = await Effect.runPromise(Stream.runCollect(reply.bytes))
  return { bound, reply, bytes }
}

/** The file that the bundler made of an entry. */
const nameOf = (entry: string) => [...assets.keys()].find((name) => name.startsWith(`${entry}-`))!
const scripts = [...assets].filter(([name]) => name.endsWith(".js"))

describe("the page", () => {
  it("loads three files, and they are served", () => {
    const named = [...page.matchAll(/(?:src|href)="\/dashboard\/assets\/([^"]+)"/g)]
    expect(named.map((match) => match[1])).toEqual(["icon", "styles", "main"].map(nameOf))
    expect(named.filter(([, name]) => !assets.has(name!))).toEqual([])
  })

  it("has nothing inline, and no policy for it", () => {
    expect(page).not.toMatch(/<script(?![^>]*src=)|<style|\son\w+=|\sstyle=/)
    expect(contentSecurityPolicy).toContain("script-src 'self'; style-src 'self';")
    expect(contentSecurityPolicy).not.toContain("unsafe")
  })
})

describe("the files", () => {
  it("are at most 150 kB as they are sent, the chart's with them", () => {
    const sizes = [...assets.values()].map(({ bytes }) => gzipSync(bytes).length)
    expect(sizes.reduce((all, one) => all + one, 0)).toBeLessThan(150_000)
  })

  it("import only what is served", () => {
    const imported = scripts.flatMap(([, asset]) =>
      [...textOf(asset).matchAll(/"(\.\/[\w.-]+\.js)"/g)].map(([, name]) => name!),
    )
    expect(imported.length).toBeGreaterThan(0)
    expect(imported.filter((name) => !assets.has(name.replace("./", "")))).toEqual([])
  })

  it("have names that follow their bytes, the same for the same sources", () => {
    expect([...loadAssets().keys()]).toEqual([...assets.keys()])
    for (const name of assets.keys()) expect(name).toMatch(/-[0-9A-Z]{8}\.(js|css|svg)$/)
  })

  it("put no text where markup is expected, and ask for nothing that is not there", () => {
    for (const name of readdirSync(web, { recursive: true, encoding: "utf8" }))
      if (name.endsWith(".js"))
        expect(readFileSync(join(web, name), "utf8"), name).not.toMatch(
          /innerHTML|dangerouslySetInnerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/,
        )
    for (const asset of assets.values()) expect(textOf(asset)).not.toContain("sourceMappingURL")
  })
})

describe("the endpoints", () => {
  it("the page is public and free", async () => {
    const endpoint = makePageEndpoint(makePage(assets))
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
    const [main, styles] = [nameOf("main"), nameOf("styles")]
    const found = await answer(endpoint, { file: main })
    expect(found.bytes).toEqual(assets.get(main)?.bytes)
    expect(found.reply).toMatchObject({
      mediaType: "text/javascript; charset=utf-8",
      headers: {
        etag: assets.get(main)?.etag,
        "cache-control": "public, max-age=31536000, immutable",
      },
    })
    const other = await answer(endpoint, { file: styles })
    expect(other.reply.headers?.etag).not.toBe(found.reply.headers?.etag)
  })

  it.each([
    { file: "nothing.js" },
    { file: "../plugin.ts" },
    { file: "main.js" },
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
