import { Agent, request } from "node:http"

export interface Call {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
}

export interface CallResult {
  readonly status: number
  /** Until the first bytes of the body that hold some content. */
  readonly firstMs: number
  readonly wholeMs: number
  readonly text: string
}

const patienceMs = 60_000

/** A chunk of a chat's stream that holds text; any other body counts from its first byte. */
const isContent = (piece: string): boolean =>
  !piece.includes("data: ") || /"content":"[^"]/.test(piece)

/** One call; rejects when no whole reply comes within a minute. */
export const makeCaller = (url: string, maxSockets: number) => {
  const agent = new Agent({ keepAlive: true, maxSockets })
  const { hostname, port } = new URL(url)
  return ({ method, path, headers, body }: Call): Promise<CallResult> =>
    new Promise((resolve, reject) => {
      const startedMs = performance.now()
      const length = body ? { "content-length": String(Buffer.byteLength(body)) } : {}
      const signal = AbortSignal.timeout(patienceMs)
      const options = { agent, hostname, port, method, path, signal }
      const outgoing = request({ ...options, headers: { ...headers, ...length } }, (reply) => {
        let text = ""
        let firstMs = Number.NaN
        reply.setEncoding("utf8")
        reply.on("data", (piece: string) => {
          if (Number.isNaN(firstMs) && isContent(piece)) firstMs = performance.now() - startedMs
          text += piece
        })
        reply.on("error", reject)
        reply.on("end", () =>
          resolve({
            status: reply.statusCode ?? 0,
            firstMs,
            wholeMs: performance.now() - startedMs,
            text,
          }),
        )
      })
      outgoing.on("error", reject)
      outgoing.end(body)
    })
}
