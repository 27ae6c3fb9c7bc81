import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import type { Call, Endpoint } from "../../core/index.ts"
import { makeApiPage } from "./api-page.ts"
import { makeFilesEndpoint, makeGuideEndpoint, makePageEndpoint } from "./endpoints.ts"
import { inlineScripts, loadFolder, ownFolder, type ServedFile } from "./files.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-guide-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
mkdirSync(join(folder, "plugins"))
mkdirSync(join(folder, "assets"))
writeFileSync(join(folder, "index.html"), "<script>let a = 1</script><script src='x'></script>")
writeFileSync(join(folder, "plugins", "docs.html"), "<p>docs")
writeFileSync(join(folder, "assets", "app.Zwnl3-uu.js"), "run()")
writeFileSync(join(folder, "notes.txt"), "not served")

const answer = async (endpoint: Endpoint, params: Record<string, string> = {}) => {
  const plan = Effect.flatMap(
    endpoint.plan({ params } as unknown as Call<unknown>),
    ({ run }) => run,
  )
  const reply = await Effect.runPromise(Effect.scoped(plan))
  if (!("bytes" in reply)) throw new Error("no bytes")
  return { ...reply, text: Buffer.from(reply.shared!).toString("utf8") }
}
const refusal = (endpoint: Endpoint, params: Record<string, string> = {}) =>
  Effect.runPromise(Effect.flip(endpoint.plan({ params } as unknown as Call<unknown>)))

describe("the guide", () => {
  const guide = makeGuideEndpoint(loadFolder(folder))

  it("serves pages without their ending, at any depth", async () => {
    expect((await answer(guide)).text).toContain("let a = 1")
    expect((await answer(guide, { first: "plugins", second: "docs" })).text).toBe("<p>docs")
    expect((await answer(guide)).mediaType).toBe("text/html; charset=utf-8")
  })

  it("runs only this server's scripts, and inline ones by their hash", async () => {
    const policy = (await answer(guide)).headers!["content-security-policy"]!
    const [hash] = inlineScripts("<script>let a = 1</script>")
    expect(policy).toContain(`script-src 'self' ${hash};`)
    expect(policy).not.toMatch(/unsafe|https?:/)
  })

  it("has names with a hash cached for a year, and others revalidated", async () => {
    const asset = await answer(guide, { first: "assets", second: "app.Zwnl3-uu.js" })
    expect(asset.headers!["cache-control"]).toContain("immutable")
    expect((await answer(guide)).headers).toMatchObject({ "cache-control": "no-cache" })
  })

  it("serves nothing else, whatever the path says", async () => {
    for (const first of ["notes.txt", "none", "..", "../../package.json", "__proto__"])
      expect(await refusal(guide, { first })).toMatchObject({ code: "not_found" })
  })

  it("says how it is built where it is not", async () => {
    const nothing = makeGuideEndpoint(loadFolder(join(folder, "none")))
    expect((await refusal(nothing)).message).toContain("npm run docs:site")
  })
})

describe("the page of the API", () => {
  const file = (text: string): ServedFile => ({
    mediaType: "text/javascript",
    bytes: Buffer.from(text),
    etag: `"${text}"`,
  })

  it("names files only that are served, and has nothing inline", async () => {
    const page = makeApiPage(true)
    if (page === undefined) throw new Error("npm run build copies Swagger UI")
    const { text, headers } = await answer(makePageEndpoint(page))
    const named = [...text.matchAll(/"\/docs\/assets\/([^"]+)"/g)].map(([, name]) => name!)
    expect(named.length).toBe(4)
    expect(named.filter((name) => !page.files.has(name))).toEqual([])
    expect(inlineScripts(text)).toEqual([])
    expect(text).not.toMatch(/<style|\sstyle=|\son\w+=/)
    expect(headers!["content-security-policy"]).toContain("script-src 'self';")
  })

  it("serves its files by their names alone", async () => {
    const page = { page: file("page"), files: new Map([["a.js", file("a")]]) }
    const files = makeFilesEndpoint(page)
    expect((await answer(files, { file: "a.js" })).text).toBe("a")
    expect(await refusal(files, { file: "b.js" })).toMatchObject({ code: "not_found" })
    expect([...loadFolder(ownFolder).keys()].sort()).toEqual(["page.css", "page.js"])
  })
})
