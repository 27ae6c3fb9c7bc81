import { Effect, Stream } from "effect"
import { describe, expect, it } from "vitest"
import type { Call } from "../../core/endpoint.ts"
import { loadAssets } from "./assets.ts"
import { makeAssetEndpoint } from "./endpoint.ts"

const text = new Map(loadAssets().map(({ path, bytes }) => [path, Buffer.from(bytes).toString("utf8")]))

describe("the page", () => {
  it("loads only assets that are served", () => {
    const named = [...(text.get("/dashboard") ?? "").matchAll(/(?:src|href)="(\/dashboard\/[^"]+)"/g)].map((match) => match[1])
    expect(named.length).toBeGreaterThan(1)
    for (const path of named) expect([...text.keys()]).toContain(path)
  })

  it("has every element that its script asks for", () => {
    const asked = [...(text.get("/dashboard/page.js") ?? "").matchAll(/\bat\("([^"]+)"\)/g)].map((match) => match[1])
    for (const id of asked) expect(text.get("/dashboard")).toContain(`id="${id}"`)
  })

  it("has nothing inline that its own policy would forbid", () => {
    expect(text.get("/dashboard")).not.toMatch(/<style|<script(?![^>]*src=)|\son\w+=|\sstyle=/)
  })
})

it("the endpoint is public, free and answers the bytes", async () => {
  const [asset] = loadAssets()
  const endpoint = makeAssetEndpoint(asset!)
  const plan = await Effect.runPromise(endpoint.plan({} as Call<unknown>))
  expect([endpoint.access, plan.bound]).toEqual(["public", {}])
  const reply = await Effect.runPromise(Effect.scoped(plan.run))
  if (!("bytes" in reply)) throw new Error("no bytes")
  const [bytes] = await Effect.runPromise(Stream.runCollect(reply.bytes))
  expect(reply).toMatchObject({ status: 200, mediaType: "text/html; charset=utf-8" })
  expect(bytes).toEqual(asset?.bytes)
})
