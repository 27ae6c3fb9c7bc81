import { expect, test } from "vitest"
import { urlOf } from "./url.ts"

test("a text is a URL, alone or beside another, or none", () => {
  expect(urlOf("https://example.com/a")?.href).toBe("https://example.com/a")
  expect(urlOf("../b?c", "https://example.com/a/d")?.href).toBe("https://example.com/b?c")
  expect([urlOf("example.com"), urlOf(""), urlOf("https://"), urlOf("/a", "b")]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})

test("a name in Latin-1 stays one when the code is compiled", () => {
  const hosts = new Set<string | undefined>()
  for (let i = 0; i < 20_000; i++) hosts.add(urlOf("https://münchen.de/")?.host)
  expect([...hosts]).toEqual(["xn--mnchen-3ya.de"])
})
