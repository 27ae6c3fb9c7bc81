import { once } from "node:events"
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/**
 * A customer's server that receives webhooks. It replies with 200 by default; set `answer` to
 * change that.
 */
export interface Receiver {
  /** `host:port`. */
  readonly host: string
  readonly url: string
  readonly received: Received[]
  answer: (reply: ServerResponse, request: Received) => void
  /** The number of requests without a reply yet. */
  readonly open: number
  readonly mostOpen: number
  close(): Promise<void>
}

export const openReceiver = async (): Promise<Receiver> => {
  const received: Received[] = []
  let open = 0
  let mostOpen = 0
  const server = createServer((request, reply) => {
    mostOpen = Math.max(mostOpen, ++open)
    reply.on("close", () => open--)
    const chunks: Buffer[] = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const one = {
        path: request.url ?? "",
        headers: request.headers,
        body: Buffer.concat(chunks).toString("utf8"),
      }
      received.push(one)
      receiver.answer(reply, one)
    })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const receiver: Receiver = {
    host,
    url: `http://${host}/hook`,
    received,
    answer: (reply) => void reply.end("thanks"),
    get open() {
      return open
    },
    get mostOpen() {
      return mostOpen
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    },
  }
  return receiver
}

/** Replies with this status, and with a NUL byte in the text, which PostgreSQL refuses. */
export const status = (code: number) => (reply: ServerResponse) => {
  reply.statusCode = code
  reply.end(`no\0 ${code}`)
}
