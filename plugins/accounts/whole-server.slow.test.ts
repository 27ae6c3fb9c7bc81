import type { AddressInfo } from "node:net"
import PostalMime, { type Email } from "postal-mime"
import { SMTPServer } from "smtp-server"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { type Platform, startPlatform } from "../../testing/platform.ts"

/** The whole server as a process, with a real SMTP server. */
let smtp: SMTPServer
let platform: Platform
const received: { readonly to: string; readonly mail: Email }[] = []

beforeAll(async () => {
  smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onData: (stream, session, done) => {
      const pieces: Buffer[] = []
      stream.on("data", (piece: Buffer) => pieces.push(piece))
      stream.on("end", async () => {
        received.push({
          to: session.envelope.rcptTo.map(({ address }) => address).join(),
          mail: await PostalMime.parse(Buffer.concat(pieces)),
        })
        done()
      })
    },
  })
  await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", resolve))
  const { port } = smtp.server.address() as AddressInfo
  platform = await startPlatform({
    env: { SMTP_URL: `smtp://127.0.0.1:${port}`, PUBLIC_URL: "https://rakit.example" },
  })
})
afterAll(async () => {
  await platform?.close()
  await new Promise<void>((resolve) => smtp.close(resolve))
})

const ask = async (
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  // biome-ignore lint/suspicious/noExplicitAny: replies of many shapes
): Promise<{ status: number; headers: Headers; json: any }> => {
  const json: Record<string, string> =
    body === undefined ? {} : { "content-type": "application/json" }
  const reply = await fetch(platform.url + path, {
    method,
    headers: { ...json, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: reply.status, headers: reply.headers, json: await reply.json() }
}
const post = (path: string, body?: unknown, headers?: Record<string, string>) =>
  ask("POST", `/dashboard/${path}`, body, headers)
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const mailed = async (to: string, subject: string): Promise<Email> => {
  const find = () => received.find((one) => one.to === to && one.mail.subject === subject)?.mail
  await vi.waitFor(() => expect(find()).toBeDefined(), { timeout: 10_000, interval: 20 })
  return find()!
}
const tokenIn = (mail: Email, purpose: string): string =>
  new RegExp(`https://rakit\\.example/dashboard#${purpose}=([\\w-]{43})`).exec(
    mail.text ?? "",
  )?.[1] ?? ""
const chat = (key: string) =>
  ask(
    "POST",
    "/v1/chat/completions",
    { model: "svc-lyt", messages: [{ role: "user", content: "hello" }] },
    bearer(key),
  )

const email = "ada@example.com"
const account = {
  object: "account",
  email,
  role: "user",
  suspended: false,
  balance_idr: 50_000,
  held_idr: 0,
}

describe("a person", () => {
  let session: string
  let key: string

  it("signs up, and gets a mail in their language, in text and HTML", async () => {
    const signup = await post(
      "signup",
      { email, password: "correct horse" },
      { "accept-language": "id-ID,id;q=0.9" },
    )
    expect(signup).toMatchObject({ status: 201, json: { ...account, email_verified: false } })
    const mail = await mailed(email, "Konfirmasi alamat email Anda")
    expect(mail.html).toContain(
      `href="https://rakit.example/dashboard#verify=${tokenIn(mail, "verify")}"`,
    )
  })

  it("signs in, and makes a key, which works only when the address is verified", async () => {
    const login = await post("login", { email, password: "correct horse" })
    expect(login).toMatchObject({
      status: 200,
      json: { account: { ...account, email_verified: false } },
    })
    session = login.json.token
    const made = await post("keys", { name: "first" }, bearer(session))
    expect(made.status).toBe(201)
    key = made.json.key
    const refused = await chat(key)
    expect(refused).toMatchObject({ status: 403, json: { error: { code: "email_not_verified" } } })
    for (const name of [
      "x-call-id",
      "x-cost-idr",
      "x-ratelimit-limit-requests",
      "x-ratelimit-remaining-requests",
      "server-timing",
    ])
      expect(refused.headers.get(name), name).toBeTruthy()
    const token = tokenIn(await mailed(email, "Konfirmasi alamat email Anda"), "verify")
    expect(await post("verify-email", { token })).toMatchObject({
      status: 200,
      json: { ...account, email_verified: true },
    })
    expect((await chat(key)).status).toBe(200)
    expect(await post("verify-email", { token })).toMatchObject({
      status: 200,
      json: { email_verified: true, already_verified: true },
    })
  })

  it("sees the account, with what calls cost", async () => {
    const me = await ask("GET", "/dashboard/me", undefined, bearer(session))
    expect(me).toMatchObject({ status: 200, json: { email, email_verified: true, held_idr: 0 } })
    expect(me.json.balance_idr).toBeLessThan(50_000)
  })

  it("has a session that is no key, and a key that is no session", async () => {
    expect(await chat(session)).toMatchObject({
      status: 401,
      json: { error: { code: "authentication_error" } },
    })
    expect(await ask("GET", "/dashboard/me", undefined, bearer(key))).toMatchObject({
      status: 401,
      json: { error: { code: "authentication_error" } },
    })
    expect((await ask("GET", "/admin/accounts", undefined, bearer(session))).status).toBe(403)
    expect((await ask("GET", "/dashboard/me")).status).toBe(401)
  })

  it("forgets the password, chooses another, and all old sessions are over, while keys of a verified account go on", async () => {
    expect(await post("forgot", { email })).toMatchObject({ status: 202, json: {} })
    const token = tokenIn(await mailed(email, "Buat kata sandi baru"), "reset")
    expect(await post("reset", { token, password: "another horse" })).toMatchObject({
      status: 200,
      json: { email, email_verified: true },
    })
    expect((await ask("GET", "/dashboard/me", undefined, bearer(session))).status).toBe(401)
    expect((await post("login", { email, password: "correct horse" })).status).toBe(401)
    expect((await post("login", { email, password: "another horse" })).status).toBe(200)
    expect((await chat(key)).status).toBe(200)
    await mailed(email, "Kata sandi Anda telah diubah")
  })
})

it("somebody who signs up with a known e-mail gets the same answer, and its owner a mail", async () => {
  const answer = await post("signup", {
    email,
    password: "a third horse",
    role: "admin",
    balance_idr: 1e9,
  })
  expect(answer).toMatchObject({ status: 201, json: { ...account, email_verified: false } })
  await mailed(email, "Anda sudah memiliki akun")
})

it("too many failed logins are refused over HTTP with Retry-After", async () => {
  for (let n = 0; n < 10; n++)
    expect((await post("login", { email: "bob@example.com", password: "wrong" })).status).toBe(401)
  const refused = await post("login", { email: "bob@example.com", password: "wrong" })
  expect(refused).toMatchObject({
    status: 429,
    json: { error: { type: "rate_limit_error", code: "rate_limit_error" } },
  })
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
  expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60)
  expect(Number(refused.headers.get("retry-after-ms"))).toBeLessThanOrEqual(60_000)
})

it("the first account signs in with what the first boot said, and is an admin", async () => {
  const { email: root, password } = platform.credentials
  const login = await post("login", { email: root, password })
  expect(login).toMatchObject({
    status: 200,
    json: { account: { role: "admin", email_verified: true } },
  })
  expect((await ask("GET", "/admin/accounts", undefined, bearer(login.json.token))).status).toBe(
    200,
  )
})

it("writes no password, token or session into its log", async () => {
  const { stdout, stderr } = platform.output()
  const secrets = [
    /correct horse|another horse|a third horse/,
    /eyJ[\w-]+\./,
    ...received.flatMap(
      ({ mail }) => /#(?:verify|reset)=([\w-]{43})/.exec(mail.text ?? "")?.[1] ?? [],
    ),
  ]
  for (const secret of secrets) expect(stdout + stderr).not.toMatch(secret)
  expect(stderr).toContain("dashboard")
})

it("/openapi.json promises the statuses that are answered", async () => {
  const { paths } = (await ask("GET", "/openapi.json")).json
  const promised = (path: string) =>
    Object.keys(paths[path].post.responses).filter((status) => status < "300")
  expect(
    ["signup", "forgot", "resend-verification", "keys", "playground-key", "login"].map((name) =>
      promised(`/dashboard/${name}`),
    ),
  ).toEqual([...[["201"], ["202"], ["202"], ["201"], ["201"], ["200"]]])
  expect(
    (await post("signup", { email: "statuses@example.com", password: "long enough" })).status,
  ).toBe(201)
  expect((await post("forgot", { email: "statuses@example.com" })).status).toBe(202)
})
