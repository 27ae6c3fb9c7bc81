import { afterEach, describe, expect, it } from "vitest"
import { type HttpFixture, openHttpFixture } from "../testing/fixture.ts"
import type { ScrapeSettings } from "./scrape.ts"

const bearer = "a-token-of-the-scraper"
let fixture: HttpFixture | undefined
afterEach(async () => {
  await fixture?.close()
  fixture = undefined
})

const open = async (scrape?: ScrapeSettings) => {
  fixture = await openHttpFixture(scrape ? { scrape } : {})
  const line = fixture.log.lines.find(({ event }) => event === "metrics.listening")
  return { api: `${fixture.url}/metrics`, own: String(line?.fields.url), log: fixture.log }
}
const read = async (url: string, authorization?: string, method = "GET") => {
  const reply = await fetch(url, { method, headers: authorization ? { authorization } : {} })
  return { status: reply.status, headers: reply.headers, text: await reply.text() }
}
const metric = "process_resident_memory_bytes"

it("is open beside the API by default", async () => {
  const { api, own } = await open()
  expect(await read(api)).toMatchObject({ status: 200, text: expect.stringContaining(metric) })
  expect(own).toBe("undefined")
})

describe("with a bearer", () => {
  it.each([
    ["none", undefined],
    ["another", "Bearer another-token"],
    ["its beginning", `Bearer ${bearer.slice(0, -1)}`],
    ["another scheme", `Basic ${bearer}`],
  ])("%s is refused", async (_, authorization) => {
    const { api, log } = await open({ host: "127.0.0.1", bearer })
    const { status, headers, text } = await read(api, authorization)
    expect([status, headers.get("www-authenticate")]).toEqual([401, "Bearer"])
    expect(JSON.parse(text).error.code).toBe("authentication_error")
    expect(text).not.toContain(metric)
    expect(JSON.stringify(log.lines)).not.toContain(bearer)
  })

  it("who has it reads", async () => {
    const { api } = await open({ host: "127.0.0.1", bearer })
    expect((await read(api, `Bearer ${bearer}`)).text).toContain(metric)
  })
})

describe("on a port of its own", () => {
  const settings = { host: "127.0.0.1", port: 0, bearer: "" }

  it("is there, and on that of the API no more", async () => {
    const { api, own } = await open(settings)
    expect((await read(own)).text).toContain(metric)
    expect((await read(own, undefined, "HEAD")).text).toBe("")
    expect((await read(api)).status).toBe(404)
  })

  it("serves nothing else", async () => {
    const { own } = await open(settings)
    expect((await read(own.replace("/metrics", "/v1/models"))).status).toBe(404)
    expect((await read(own, undefined, "POST")).status).toBe(405)
  })

  it("takes a bearer, too", async () => {
    const { own } = await open({ ...settings, bearer })
    const refused = await read(own)
    expect([refused.status, refused.headers.get("x-content-type-options")]).toEqual([
      401,
      "nosniff",
    ])
    expect((await read(own, `Bearer ${bearer}`)).status).toBe(200)
  })

  it("closes with the server", async () => {
    const { own } = await open(settings)
    await fixture?.close()
    fixture = undefined
    await expect(read(own)).rejects.toThrow()
  })
})

it("a port that is taken is a refusal that names the setting", async () => {
  const { own } = await open({ host: "127.0.0.1", port: 0, bearer: "" })
  const port = Number(new URL(own).port)
  await expect(
    openHttpFixture({
      scrape: { host: "127.0.0.1", port, bearer: "" },
      timings: { portWaitMs: 0 },
    }),
  ).rejects.toThrow(/^server\.metrics: Port \d+ is in use/)
})
