import { createServer, type Socket } from "node:net"
import { Effect } from "effect"
import { afterEach, expect, it } from "vitest"
import { openSmtp } from "../../testing/smtp.ts"
import { smtpDelivery, toFailure } from "./smtp-delivery.ts"
import { mailOf } from "./testing/outbox-fixture.ts"

const closes: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closes.splice(0)) await close()
})

/** Listens on a port of its own and passes each connection to `onConnection`. */
const listen = async (onConnection: (socket: Socket) => void) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {}).on("close", () => sockets.delete(socket))
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closes.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return { port: (server.address() as { port: number }).port, sockets }
}
const serverOn = (port: number) => ({
  host: "127.0.0.1",
  port,
  secure: false,
  requireTLS: false,
  rejectUnauthorized: false,
})
const from = { name: "", address: "a@b.co" }
const outgoing = { id: "id", mail: mailOf(), createdMs: 0 }

it("gives up on a server that says nothing", async () => {
  const { port } = await listen(() => {})
  const failure = await Effect.runPromise(
    Effect.flip(
      smtpDelivery(serverOn(port), from, { silenceMs: 50, attemptMs: 20_000 }).deliver(outgoing),
    ),
  )
  expect(failure).toMatchObject({
    isPermanent: false,
    reason: expect.stringMatching(/Greeting never received|Timeout/),
  })
})

it("gives up on a server that never comes to an end, and leaves", async () => {
  const { port, sockets } = await listen((socket) => {
    const dribble = setInterval(() => socket.write("220-still here\r\n"), 5)
    socket.on("close", () => clearInterval(dribble))
  })
  const failure = await Effect.runPromise(
    Effect.flip(
      smtpDelivery(serverOn(port), from, { silenceMs: 10_000, attemptMs: 100 }).deliver(outgoing),
    ),
  )
  expect(failure).toMatchObject({ isPermanent: false, reason: "the server took longer than 0.1 s" })
  await expect.poll(() => sockets.size).toBe(0)
})

it("sends nothing over a line that is not safe when it has to be", async () => {
  const smtp = await openSmtp()
  closes.push(smtp.close)
  const failure = await Effect.runPromise(
    Effect.flip(smtpDelivery({ ...serverOn(smtp.port), requireTLS: true }, from).deliver(outgoing)),
  )
  expect(failure.isPermanent).toBe(false)
  const secured = await openSmtp({ disabledCommands: [] })
  closes.push(secured.close)
  const strict = await Effect.runPromise(
    Effect.flip(
      smtpDelivery({ ...serverOn(secured.port), rejectUnauthorized: true }, from).deliver(outgoing),
    ),
  )
  expect(strict).toMatchObject({
    isPermanent: false,
    reason: expect.stringContaining("certificate"),
  })
  expect([...smtp.received, ...secured.received]).toEqual([])
})

it("knows what is final", () => {
  const failure = (error: object) => toFailure(error).isPermanent
  expect(
    failure({ code: "EENVELOPE", command: "RCPT TO", responseCode: 550, response: "550 no" }),
  ).toBe(true)
  expect(
    failure({ code: "EENVELOPE", command: "MAIL FROM", responseCode: 553, response: "553 no" }),
  ).toBe(true)
  expect(
    failure({ code: "EMESSAGE", command: "DATA", responseCode: 554, response: "554 no" }),
  ).toBe(true)
  expect(failure({ code: "EENVELOPE", command: "API", message: "No recipients defined" })).toBe(
    true,
  )
  expect(
    failure({ code: "EENVELOPE", command: "RCPT TO", responseCode: 450, response: "450 later" }),
  ).toBe(false)
  expect(
    failure({ code: "EAUTH", command: "AUTH PLAIN", responseCode: 535, response: "535 no" }),
  ).toBe(false)
  expect(
    failure({ code: "ECONNECTION", command: "CONN", responseCode: 554, response: "554 go away" }),
  ).toBe(false)
  expect(failure({ code: "ESOCKET", command: "CONN", message: "connect ECONNREFUSED" })).toBe(false)
  expect(failure(new TypeError("a bug"))).toBe(false)
})
