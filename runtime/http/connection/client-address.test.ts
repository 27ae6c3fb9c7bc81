import type { IncomingMessage } from "node:http"
import { describe, expect, it } from "vitest"
import { makeAddressOf, parseNetwork } from "./client-address.ts"

const from = (remoteAddress: string | undefined, forwarded?: string) =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
  }) as unknown as IncomingMessage

describe("the client's address", () => {
  const direct = makeAddressOf([])
  const behind = makeAddressOf(["10.0.0.0/8", "::1"])

  it("is the socket's, whatever a client writes into X-Forwarded-For", () => {
    expect(direct(from("203.0.113.7", "1.2.3.4"))).toBe("203.0.113.7")
    expect(behind(from("203.0.113.7", "1.2.3.4"))).toBe("203.0.113.7")
    expect(direct(from("::ffff:203.0.113.7"))).toBe("203.0.113.7")
    expect(direct(from(undefined))).toBe("unknown")
  })

  it("is what the nearest trusted proxies say, from the end", () => {
    expect(behind(from("10.1.2.3", "203.0.113.7"))).toBe("203.0.113.7")
    expect(behind(from("10.1.2.3", "6.6.6.6, 203.0.113.7, 10.9.9.9"))).toBe("203.0.113.7")
    expect(behind(from("::1", "[2001:db8::5]:443"))).toBe("2001:db8::5")
    expect(behind(from("::1", "203.0.113.7:4711"))).toBe("203.0.113.7")
  })

  it("stays the proxy's when it says nothing that is an address", () => {
    expect(behind(from("10.1.2.3"))).toBe("10.1.2.3")
    expect(behind(from("10.1.2.3", "203.0.113.7, unknown"))).toBe("10.1.2.3")
    expect(behind(from("10.1.2.3", ""))).toBe("10.1.2.3")
  })
})

it("knows networks and single addresses", () => {
  expect(parseNetwork("10.0.0.0/8")).toBeDefined()
  expect(parseNetwork("2001:db8::/32")).toBeDefined()
  expect(parseNetwork("127.0.0.1")?.[1]).toBe(32)
  expect(parseNetwork("localhost")).toBeUndefined()
})
