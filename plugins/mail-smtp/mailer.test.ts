import { Effect } from "effect"
import fc from "fast-check"
import { createTransport } from "nodemailer"
import PostalMime from "postal-mime"
import { expect, it } from "vitest"
import type { Mail } from "../../core/index.ts"
import { makeSecrets } from "../../runtime/services/secrets.ts"
import { runs } from "../../testing/property.ts"
import { isAddress } from "./address.ts"
import { makeMailer } from "./mailer.ts"
import { toMessage } from "./message.ts"
import type { OutboxRows } from "./outbox-rows.ts"

const secrets = makeSecrets("s")
const from = { name: "Rakit", address: "no-reply@localhost" }
const good: Mail = { to: "a@b.co", subject: "Hi", text: "t", html: "<p>h</p>" }

/** The mails that would be sent. */
const queued = (mail: Mail): Mail | undefined => {
  let found: Mail | undefined
  const insert = (_: string, content: string) =>
    Effect.sync(() => {
      found = JSON.parse(secrets.decrypt(content)!) as Mail
    })
  const rows = { insert } as unknown as OutboxRows
  Effect.runSyncExit(makeMailer(rows, secrets, () => {}).send(mail))
  return found
}
const composer = createTransport({ streamTransport: true, buffer: true, newline: "windows" })
const rawOf = async (mail: Mail) =>
  (
    (await composer.sendMail(toMessage({ id: "id", mail, createdMs: 0 }, from))).message as Buffer
  ).toString("latin1")
const headOf = (raw: string) =>
  raw
    .slice(0, raw.indexOf("\r\n\r\n"))
    .replaceAll(/\r\n[ \t]/g, " ")
    .split("\r\n")

it("refuses recipients that are not one plain address", () => {
  const bad = [
    "", "a", "@", "a@", "@b", "a@b@c", "a b@c.co", "a@b c.co", "a@b.co,c@d.co", "a@b.co;c@d.co", "<a@b.co>", "A <a@b.co>", "a@b.co\r\nBcc: c@d.co", "a@b.co\n", "\na@b.co",
    "a\0@b.co", "a@b.co\u2028", '"a b"@c.co', "a@[127.0.0.1]", "a(c)@b.co", "ä@b.co", `${"a".repeat(65)}@b.co`, `a@${"b".repeat(260)}.co`, "a@b.co>", "a@-b.co", "a@b.co RCPT",
  ] // biome-ignore format: a list
  for (const to of [
    ...bad,
    undefined as never,
    ["a@b.co"] as never,
    { address: "a@b.co" } as never,
  ])
    expect(queued({ ...good, to }), JSON.stringify(to)).toBeUndefined()
  for (const to of [
    "a@b.co",
    "tono+tag@mail.example.co.id",
    "o'neil@x.y",
    "a@localhost",
    "first.last_x@sub-domain.example",
  ])
    expect(queued({ ...good, to })?.to).toBe(to)
})

it("a recipient that passes has nothing that ends a line or a command", () => {
  const text = fc.string({
    unit: fc.oneof(
      fc.constantFrom("\r", "\n", "\0", " ", ",", ";", "<", ">", "@", '"', "a", "."),
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    ),
    maxLength: 20,
  })
  fc.assert(
    fc.property(fc.tuple(text, text), ([local, domain]) => {
      if (isAddress(`${local}@${domain}`)) expect(`${local}@${domain}`).toMatch(/^[\x21-\x7e]+$/)
    }),
    { numRuns: runs(2_000) },
  )
})

it("no subject adds a header, and every text arrives", async () => {
  const expected = headOf(await rawOf(good)).map((line) => line.split(":")[0])
  const nasty = fc.string({
    unit: fc.constantFrom(
      "\r",
      "\n",
      "\r\n",
      "\0",
      ":",
      " ",
      "Bcc: x@y.z",
      "=?utf-8?Q?=0D=0ABcc=3A?=",
      "é",
      "👋",
      "\u2028",
      "\u0085",
      "a",
    ),
    maxLength: 30,
  })
  await fc.assert(
    fc.asyncProperty(nasty, nasty, async (subject, text) => {
      const mail = queued({ ...good, subject: `s${subject}`, text: `t${text}` })!
      const raw = await rawOf(mail)
      expect(headOf(raw).map((line) => line.split(":")[0])).toEqual(expected)
      const parsed = await PostalMime.parse(raw)
      expect(parsed.bcc ?? []).toEqual([])
      expect(parsed.to).toEqual([{ name: "", address: "a@b.co" }])
    }),
    { numRuns: runs(200) },
  )
  expect(queued({ ...good, subject: " a\r\nBcc: c@d.co\u2028x " })?.subject).toBe("a Bcc: c@d.co x")
  expect(queued({ ...good, subject: "x".repeat(1_000) })?.subject).toHaveLength(250)
})

it("refuses what is too large", () => {
  expect(queued({ ...good, text: "x".repeat(200_000), html: "y".repeat(100_000) })).toBeUndefined()
  expect(queued({ ...good, text: "x".repeat(100_000) })).toBeDefined()
})
