import { once } from "node:events"
import { createServer, type RequestListener, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect, Exit, Option } from "effect"
import { afterEach, expect, it } from "vitest"
import { makeOutbound } from "./outbound.ts"
import type { Address } from "./resolve-name.ts"

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
    await once(server, "close")
  }
})

const serve = async (listener: RequestListener): Promise<number> => {
  const server = createServer(listener).listen(0, "127.0.0.1")
  servers.push(server)
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}

const get = (
  url: string,
  allow: readonly string[] = [],
  more: { timeoutMs?: number; maxBytes?: number } = {},
) =>
  Effect.runPromiseExit(
    makeOutbound(allow).send({ method: "GET", url, timeoutMs: 5_000, maxBytes: 1_000, ...more }),
  )

const errorOf = async (exit: ReturnType<typeof get>) =>
  Option.getOrUndefined(Exit.findErrorOption(await exit))

it("a name that leads to a closed address is refused on the connection itself, and nobody is called", async () => {
  let calls = 0
  const port = await serve((_, res) => {
    calls++
    res.end()
  })
  const outbound = makeOutbound([], async () => [{ address: "127.0.0.1", family: 4 }], [`${port}`])
  const exit = await Effect.runPromiseExit(
    outbound.send({
      method: "GET",
      url: `https://hooks.example.com:${port}/`,
      timeoutMs: 5_000,
      maxBytes: 10,
    }),
  )
  expect(Option.getOrUndefined(Exit.findErrorOption(exit))).toMatchObject({
    _tag: "OutboundRefused",
  })
  expect(calls).toBe(0)
})

it("one closed address among those of a name is enough; what was checked is what is connected to", async () => {
  const answers: (readonly Address[])[] = [
    [
      { address: "8.8.8.8", family: 4 },
      { address: "10.0.0.1", family: 4 },
    ],
    [{ address: "fe80::1", family: 6 }],
    [],
  ]
  const asked: string[] = []
  const outbound = makeOutbound([], async (name) => {
    asked.push(name)
    return answers[asked.length - 1] ?? []
  })
  for (const _ of answers) {
    const exit = await Effect.runPromiseExit(
      outbound.send({
        method: "POST",
        url: "https://hooks.example.com/x",
        body: "{}",
        timeoutMs: 5_000,
        maxBytes: 10,
      }),
    )
    expect(Option.getOrUndefined(Exit.findErrorOption(exit))).toMatchObject({
      _tag: "OutboundRefused",
    })
  }
  expect(asked).toEqual(Array(3).fill("hooks.example.com"))
})

it("an allowed host is called over http; a redirect is an answer like any other", async () => {
  const seen: string[] = []
  const port = await serve((req, res) => {
    seen.push(req.url ?? "")
    res.writeHead(302, { location: "/elsewhere", "x-two": ["a", "b"] }).end("moved")
  })
  const exit = await get(`http://127.0.0.1:${port}/hook`, [`127.0.0.1:${port}`])
  expect(
    Exit.isSuccess(exit) && { ...exit.value, body: Buffer.from(exit.value.body).toString() },
  ).toMatchObject({
    status: 302,
    headers: { location: "/elsewhere", "x-two": "a, b" },
    body: "moved",
    truncated: false,
  })
  expect(seen).toEqual(["/hook"])
})

it("reads no more than maxBytes", async () => {
  const port = await serve((_, res) => void res.end(Buffer.alloc(5_000_000, 97)))
  const exit = await get(`http://127.0.0.1:${port}/`, [`127.0.0.1:${port}`])
  expect(Exit.isSuccess(exit) && [exit.value.body.length, exit.value.truncated]).toEqual([
    1_000,
    true,
  ])
})

it("gives up in time, whether the head or the body is late, and whatever garbage is collected meanwhile; it says so and hangs up", async () => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  const left: Promise<unknown>[] = []
  const port = await serve((req, res) => {
    left.push(once(res, "close"))
    collect()
    if (req.url === "/head") return
    res.writeHead(200)
    res.write("a")
  })
  for (const path of ["/head", "/body"])
    expect(
      await errorOf(
        get(`http://127.0.0.1:${port}${path}`, [`127.0.0.1:${port}`], { timeoutMs: 100 }),
      ),
    ).toMatchObject({
      _tag: "OutboundFailed",
      message: "There was no answer in time.",
    })
  await Promise.all(left)
})

it("a connection that fails says how", async () => {
  const port = await serve((req) => req.socket.destroy())
  expect(await errorOf(get(`http://127.0.0.1:${port}/`, [`127.0.0.1:${port}`]))).toMatchObject({
    _tag: "OutboundFailed",
    message: /^The connection failed \(/,
  })
})
