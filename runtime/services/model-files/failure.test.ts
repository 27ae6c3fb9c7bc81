import { describe, expect, it } from "vitest"
import { startFileServer } from "../../../testing/files-server.ts"
import { readDocument } from "./download/web.ts"
import { networkFailure } from "./failure.ts"
import { setUp } from "./testing/fixture.ts"

const thrown = (code: string) =>
  new TypeError("fetch failed", { cause: Object.assign(new Error(`what ${code} says`), { code }) })

it.each([
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
])("%s: who is behind a proxy that signs for others reads what to set", (code) => {
  const failure = networkFailure(thrown(code), "https://pypi.example/simple/")
  expect(failure.message).toContain(`pypi.example: what ${code} says`)
  expect(failure.message).toContain("NODE_EXTRA_CA_CERTS")
  expect(failure.retry).toBe(false)
})

it("does not blame a proxy for anything else", () => {
  for (const code of [
    "CERT_HAS_EXPIRED",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "ENOTFOUND",
    "ECONNRESET",
  ])
    expect(networkFailure(thrown(code), "https://pypi.example/").message).not.toContain(
      "NODE_EXTRA_CA_CERTS",
    )
})

describe("a host that the hub redirects to", () => {
  const { server: hub, context } = setUp()

  /** What a pull says of the hub's file, which is to be had at an address elsewhere. */
  const failureAt = async (location: string) => {
    hub().handle("/file", (_, response) => response.writeHead(302, { location }).end())
    const request = { url: `${hub().url}/file`, headers: { authorization: "Bearer secret" } }
    const error = await readDocument(context(), request, AbortSignal.timeout(10_000)).catch(String)
    return String(error)
  }

  it("is named by its status, without its signed query", async () => {
    const cdn = await startFileServer()
    cdn.handle("/blob?signature=hidden", (_, response) => response.writeHead(403).end())
    expect(await failureAt(`${cdn.url}/blob?signature=hidden`)).toBe(
      `SourceFailed: ${cdn.url}/blob answered 403`,
    )
    await cdn.close()
  })

  it("is named where a firewall lets nobody through to it", async () => {
    const cdn = await startFileServer()
    await cdn.close()
    expect(await failureAt(`${cdn.url}/blob?signature=hidden`)).toBe(
      `SourceFailed: ${new URL(cdn.url).host} refused the connection`,
    )
  })
})
