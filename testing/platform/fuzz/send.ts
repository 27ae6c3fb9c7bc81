import { Agent, request } from "node:http"

export interface Sent {
  readonly method: string
  /** Path and query, as they stand in the request line. */
  readonly target: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: Buffer | undefined
}

export interface Answer {
  readonly status: number
  /** Lower-case names; those of trailers too. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** The client left a stream that goes on. */
  readonly isLeft?: boolean
}

const agent = new Agent({ keepAlive: true, maxSockets: 32 })
const limitMs = 60_000

/** Lasts for seconds, whatever happens: one event says what it is like. */
const onlyWatches = (target: string) => target.startsWith("/dashboard/events")

/** Sends one request; rejects when no whole reply comes. */
export const send = (url: string, { method, target, headers, body }: Sent): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const length = body ? { "content-length": String(body.length) } : {}
    const outgoing = request(
      {
        agent,
        hostname,
        port,
        method,
        path: target,
        headers: { ...length, ...(headers as Record<string, string | string[]>) },
        signal: AbortSignal.timeout(limitMs),
      },
      (reply) => {
        const chunks: Buffer[] = []
        const answer = (): Answer => ({
          status: reply.statusCode ?? 0,
          headers: { ...flat(reply.headers), ...flat(reply.trailers) },
          body: Buffer.concat(chunks),
        })
        reply.on("data", (chunk: Buffer) => {
          chunks.push(chunk)
          if (!onlyWatches(target) || reply.statusCode !== 200) return
          resolve({ ...answer(), isLeft: true })
          outgoing.destroy()
        })
        reply.on("error", reject)
        reply.on("end", () => resolve(answer()))
      },
    )
    outgoing.on("error", reject)
    outgoing.end(body)
  })

const flat = (headers: Readonly<Record<string, string | string[] | undefined>>) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, String(value ?? "")] as const),
  )

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
const shownBytes = 2_000

/** The request as a line for a shell. A long or binary body is given in base64. */
export const curlOf = (url: string, { method, target, headers, body }: Sent): string => {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((one) => `-H ${quoted(`${name}: ${one}`)}`),
  )
  const how = method === "HEAD" ? "-I" : `-X ${method}`
  const call = ["curl -si", how, quoted(url + target), ...lines].join(" ")
  if (!body) return call
  const text = body.toString()
  if (/^[\x20-\x7e\n\r]*$/.test(text) && text.length <= shownBytes)
    return `${call} --data-binary ${quoted(text)}`
  const base64 = body.toString("base64")
  return `printf %s ${base64.slice(0, 20_000)}${base64.length > 20_000 ? "..." : ""} | base64 -d | ${call} --data-binary @-`
}
