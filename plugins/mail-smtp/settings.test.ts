import { Redacted, Schema } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { parseSender } from "./address.ts"
import { Settings, senderOf } from "./settings.ts"
import { parseSmtpUrl } from "./smtp-url.ts"

const decode = (settings: unknown) => Schema.decodeUnknownSync(Settings)(settings)

it("needs nothing, and takes empty texts for nothing", () => {
  for (const settings of [{}, { url: "", from: "" }]) {
    expect(Redacted.value(decode(settings).url)).toBe("")
    expect(senderOf(decode(settings))).toEqual({ name: "Rakit", address: "no-reply@localhost" })
  }
})

it("reads addresses of servers", () => {
  const plain = { requireTLS: false, rejectUnauthorized: true }
  expect(parseSmtpUrl("smtp://mail.example.com")).toEqual({
    host: "mail.example.com",
    port: 587,
    secure: false,
    ...plain,
  })
  expect(parseSmtpUrl("smtps://mail.example.com/")).toEqual({
    host: "mail.example.com",
    port: 465,
    secure: true,
    ...plain,
  })
  expect(parseSmtpUrl("smtp://u%40x:p%3A%2F@mail_host:2525?requireTLS=true")).toEqual({
    host: "mail_host",
    port: 2525,
    secure: false,
    requireTLS: true,
    rejectUnauthorized: true,
    auth: { user: "u@x", pass: "p:/" },
  })
  const requires = (url: string) => parseSmtpUrl(url)?.requireTLS
  expect(requires("smtp://user:password@mail.example.com")).toBe(true)
  expect(requires("smtp://user:password@mail.example.com?requireTLS=false")).toBe(false)
  expect(requires("smtp://user:password@localhost")).toBe(false)
  for (const host of ["localhost", "127.0.0.1", "[::1]"])
    expect(parseSmtpUrl(`smtp://${host}:25`)).toMatchObject({ port: 25, rejectUnauthorized: false })
  expect(parseSmtpUrl("smtp://127.0.0.1:25?rejectUnauthorized=true")).toMatchObject({
    rejectUnauthorized: true,
  })
})

it.each([
  "http://x",
  "mail.example.com",
  "smtp://",
  "smtp://h:0",
  "smtp://h:99999",
  "smtp://h/path",
  "smtp://h#x",
  "smtp://h?logger=true",
  "smtp://h?requireTLS=yes",
  "smtp://a%ZZ@h",
  "smtp://h h",
])("refuses %s without quoting it", (url) => {
  expect(parseSmtpUrl(url)).toBeUndefined()
  expect(() => decode({ url: url.replace("//", "//user:hunter2@") })).toThrow()
  try {
    decode({ url: url.replace("//", "//user:hunter2@") })
  } catch (error) {
    expect(String(error)).not.toContain("hunter2")
  }
})

it("reads senders, and lets none break out of the header", () => {
  expect(parseSender("a@b.co")).toEqual({ name: "", address: "a@b.co" })
  expect(parseSender('"Rakit, Inc." <a@b.co>')).toEqual({ name: "Rakit, Inc.", address: "a@b.co" })
  for (const from of ["Rakit", "Rakit <>", "a\r\nBcc: x <a@b.co>", "<a@b.co> x", "a@b.co, c@d.co"])
    expect(() => decode({ from })).toThrow()
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (name) => {
      const sender = parseSender(`${name}<a@b.co>`)
      if (sender) expect(sender.name).not.toMatch(/[\r\n\0]/)
    }),
  )
})
