import { once } from "node:events"
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A customer's server. Answers 200 unless `answer` says otherwise. */
export interface Receiver {
  /** `host:port`. */
  readonly host: string
  readonly url: string
  readonly received: Received[]
  answer: (reply: ServerResponse, request: Received) => void
  /** Requests that it has not answered yet. */
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

/** An answer with this status, and a byte in its text that no database takes. */
export const status = (code: number) => (reply: ServerResponse) => {
  reply.statusCode = code
  reply.end(`no\0 ${code}`)
}
