import { Effect } from "effect"
import { sql } from "kysely"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { makeSecrets } from "../../runtime/services/secrets.ts"
import { openSmtp, smtpError } from "../../testing/smtp.ts"
import { mailOf, openOutboxFixture } from "./testing/outbox-fixture.ts"

let fixture: Awaited<ReturnType<typeof openOutboxFixture>>
let smtp: Awaited<ReturnType<typeof openSmtp>>
beforeAll(async () => {
  fixture = await openOutboxFixture()
})
afterEach(async () => {
  await fixture.reset()
  await smtp?.close()
})
afterAll(() => fixture?.close())

const until = (check: () => unknown) => expect.poll(check, { timeout: 15_000, interval: 10 })
const rowsLeft = () => until(async () => (await fixture.rows()).length)
const minutes = 60_000

describe("a mail", () => {
  it("arrives whole: both parts, the sender, a subject that is not ASCII", async () => {
    smtp = await openSmtp()
    const { send, log } = await fixture.open({
      settings: { url: smtp.url, from: "Rakit Ümlaut <no-reply@rakit.example>" },
    })
    await send({ ...mailOf(), to: "tono+x@example.com" })
    await until(() => smtp.received.length).toBe(1)
    const [{ mail, to, raw }] = smtp.received as [(typeof smtp.received)[0]]
    expect(to).toEqual(["tono+x@example.com"])
    expect(mail).toMatchObject({
      from: { name: "Rakit Ümlaut", address: "no-reply@rakit.example" },
      to: [{ address: "tono+x@example.com" }],
      subject: "Verifikasi – mail 1",
    })
    expect(mail.text?.trim()).toBe(mailOf().text.trim())
    expect(mail.html?.trim()).toBe(mailOf().html)
    expect(mail.messageId).toMatch(/^<[0-9a-f-]{36}@rakit\.example>$/)
    expect(mail.date).toBe(new Date(fixture.clock.nowMs()).toISOString())
    expect(raw).toContain("Content-Type: multipart/alternative")
    await rowsLeft().toBe(0)
    expect(log.lines.filter((line) => line.level !== "debug")).toEqual([])
  })

  it("is stored encrypted in the outbox, and goes only when its transaction commits", async () => {
    smtp = await openSmtp()
    const { mailer } = await fixture.open({ settings: { url: smtp.url } })
    const rolledBack = fixture.database.transaction((tx) =>
      Effect.andThen(mailer.send(mailOf("never"), tx), Effect.fail("no" as const)),
    )
    expect(await Effect.runPromise(Effect.flip(rolledBack))).toBe("no")
    let stored: string | null | undefined
    const committed = fixture.database.transaction((tx) =>
      Effect.gen(function* () {
        yield* mailer.send(mailOf("later"), tx)
        const { rows } = yield* fixture.database.run(() =>
          sql<{ content: string }>`SELECT content FROM mail_outbox`.execute(
            fixture.database.queries(tx),
          ),
        )
        stored = rows[0]?.content
        // the dispatcher is awake and finds nothing yet
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 50)))
      }),
    )
    await Effect.runPromise(committed)
    await until(() => smtp.received.length).toBe(1)
    expect(smtp.received[0]?.to).toEqual(["userlater@example.com"])
    expect(stored).toMatch(/^[0-9a-f]{12}\.[\w-]+$/)
    await rowsLeft().toBe(0)
  })

  it("with credentials, over TLS that is there", async () => {
    const logins: string[] = []
    smtp = await openSmtp({
      authOptional: false,
      disabledCommands: [],
      onAuth: ({ username, password }, session, done) => {
        logins.push(`${username}/${password}/${session.secure}`)
        done(null, { user: username })
      },
    })
    const { send } = await fixture.open({
      settings: { url: smtp.url.replace("//", "//me%40x:p%3Aw@") },
    })
    await send(mailOf())
    await until(() => smtp.received.length).toBe(1)
    expect(logins).toEqual(["me@x/p:w/true"])
  })
})

describe("trouble", () => {
  it("a server that is down gets the mail when it is back; waits grow", async () => {
    smtp = await openSmtp()
    const { port, url } = smtp
    await smtp.close()
    const { send, log } = await fixture.open({ settings: { url } })
    await send(mailOf())
    const warned = () => log.lines.filter((line) => line.message.includes("tried again"))
    await until(() => warned().length).toBe(1)
    expect(warned()[0]?.fields).toMatchObject({
      attempts: 1,
      reason: expect.stringContaining("ECONNREFUSED"),
    })
    fixture.clock.advance(18_000)
    await until(() => warned().length).toBe(2)
    const waits = warned().map((line) => line.fields.waitMs as number)
    expect(waits[0]).toBeGreaterThanOrEqual(15_000)
    expect(waits[0]).toBeLessThanOrEqual(18_000)
    expect(waits[1]).toBeGreaterThanOrEqual(60_000)
    smtp = await openSmtp({}, port)
    fixture.clock.advance(2 * minutes)
    await until(() => smtp.received.length).toBe(1)
    await rowsLeft().toBe(0)
  })

  it("is given up after six attempts in about an hour, and its content is gone", async () => {
    let asked = 0
    smtp = await openSmtp({
      onRcptTo: (_, __, done) => {
        asked++
        done(smtpError(451, "4.3.0 try later, token-1 quoted"))
      },
    })
    const { send, log } = await fixture.open({ settings: { url: smtp.url } })
    const startMs = fixture.clock.nowMs()
    await send(mailOf())
    for (let attempt = 1; attempt <= 6; attempt++) {
      await until(() => log.lines.filter((line) => line.fields.attempts === attempt).length).toBe(1)
      const waitMs = log.lines.find((line) => line.fields.attempts === attempt)?.fields.waitMs as
        | number
        | undefined
      if (waitMs !== undefined) fixture.clock.advance(waitMs)
    }
    const last = log.lines.at(-1)
    expect(last).toMatchObject({
      level: "error",
      message: "a mail was given up",
      fields: { attempts: 6, reason: "the server answered 451 4.3.0 to RCPT TO (EENVELOPE)" },
    })
    expect((fixture.clock.nowMs() - startMs) / minutes).toSatisfy(
      (total: number) => total > 60 && total < 75,
    )
    expect(await fixture.rows()).toEqual([{ state: "given_up", content: null, attempts: 6 }])
    expect(asked).toBe(6)
    expect(JSON.stringify(log.lines)).not.toContain("token-1")
  })

  it.each([
    [
      "RCPT TO",
      {
        onRcptTo: (_: unknown, __: unknown, done: (error: Error) => void) =>
          done(smtpError(550, "5.1.1 no such user")),
      },
    ],
    [
      "DATA",
      {
        onData: (stream: NodeJS.ReadableStream, _: unknown, done: (error: Error) => void) =>
          void stream.on("end", () => done(smtpError(554, "5.7.1 spam: #verify=token-1"))).resume(),
      },
    ],
  ])("a final no to %s ends it at once", async (command, options) => {
    smtp = await openSmtp(options as never)
    const { send, log } = await fixture.open({ settings: { url: smtp.url } })
    await send(mailOf())
    await until(() => log.lines.filter((line) => line.level === "error").length).toBe(1)
    expect(log.lines.at(-1)?.fields).toMatchObject({
      attempts: 1,
      reason: expect.stringMatching(
        new RegExp(`^the server answered 55[04] 5\\.\\d\\.1 to ${command} `),
      ),
    })
    expect(JSON.stringify(log.lines)).not.toContain("token-1")
    expect(await fixture.rows()).toEqual([{ state: "given_up", content: null, attempts: 1 }])
  })

  it("a wrong password says nothing about the mail: it is tried again, and the log has no password", async () => {
    smtp = await openSmtp({
      authOptional: false,
      onAuth: (_, __, done) => done(smtpError(535, "5.7.8 bad hunter2")),
      allowInsecureAuth: true,
    })
    const { send, log } = await fixture.open({
      settings: { url: smtp.url.replace("//", "//me:hunter2@") },
    })
    await send(mailOf())
    await until(() => log.lines.length).toBe(1)
    expect(log.lines[0]).toMatchObject({
      level: "warn",
      fields: { reason: expect.stringContaining("535") },
    })
    expect(JSON.stringify(log.lines)).not.toContain("hunter2")
  })

  it("a mail whose deliverer died is taken over when its lease ends", async () => {
    smtp = await openSmtp()
    const quiet = await fixture.open({ mode: "command" })
    await quiet.send(mailOf())
    await sql`UPDATE mail_outbox SET attempts = 1, due_at = ${new Date(fixture.clock.nowMs() + minutes)}`.execute(
      fixture.database.queries(),
    )
    await fixture.open({ settings: { url: smtp.url } })
    await until(async () => (await fixture.rows())[0]?.attempts).toBe(1)
    expect(smtp.received).toHaveLength(0)
    fixture.clock.advance(minutes)
    await until(() => smtp.received.length).toBe(1)
  })
})

describe("several replicas", () => {
  it("deliver each mail once", async () => {
    smtp = await openSmtp()
    const replicas = await Promise.all(
      Array.from({ length: 3 }, async () =>
        fixture.open({ settings: { url: smtp.url }, database: await fixture.openAgain() }),
      ),
    )
    await Promise.all(Array.from({ length: 120 }, (_, n) => replicas[n % 3]!.send(mailOf(n))))
    await until(() => smtp.received.length).toBe(120)
    await rowsLeft().toBe(0)
    expect(new Set(smtp.received.flatMap((one) => one.to)).size).toBe(120)
    expect(smtp.received).toHaveLength(120)
  })

  it("take over what others wrote, if they can open it", async () => {
    smtp = await openSmtp()
    const stranger = await fixture.open({ mode: "command", secrets: makeSecrets("another") })
    const command = await fixture.open({ mode: "command" })
    await stranger.send(mailOf("encrypted"))
    await command.send(mailOf("open"))
    const server = await fixture.open({ settings: { url: smtp.url } })
    await until(() => smtp.received.length).toBe(1)
    expect(smtp.received[0]?.to).toEqual(["useropen@example.com"])
    await rowsLeft().toBe(1)
    expect((await fixture.rows()).map(({ state, attempts }) => ({ state, attempts }))).toEqual([
      { state: "waiting", attempts: 0 },
    ])
    await server.stop()
    const other = await fixture.open({
      settings: { url: smtp.url },
      secrets: makeSecrets("another"),
    })
    await until(() => smtp.received.length).toBe(2)
    await other.stop()
  })

  it("of four at once: one that stops waits for the mails on their way", async () => {
    let open = 0
    const finish: (() => void)[] = []
    smtp = await openSmtp({
      onData: (stream, _, done) => {
        open++
        stream.on("end", () => finish.push(done))
        stream.resume()
      },
    })
    const server = await fixture.open({ settings: { url: smtp.url } })
    await Promise.all(Array.from({ length: 10 }, (_, n) => server.send(mailOf(n))))
    await until(() => finish.length).toBe(4)
    const stopped = server.stop()
    for (const one of finish.splice(0)) one()
    await stopped
    expect(open).toBe(4)
    expect(await fixture.rows()).toHaveLength(6)
  })
})
