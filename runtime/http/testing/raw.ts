import { connect, type Socket } from "node:net"
import { vi } from "vitest"

export interface RawAnswer {
  readonly text: string
  readonly status: number
  readonly closed: boolean
  /** The body as JSON, `undefined` when it is none. */
  readonly json:
    | { readonly error?: { readonly code: string }; readonly request_id?: string }
    | undefined
}

const parse = (text: string, closed: boolean): RawAnswer => {
  const body = text.slice(text.indexOf("\r\n\r\n") + 4)
  let json: RawAnswer["json"]
  try {
    json = JSON.parse(body)
  } catch {
    json = undefined
  }
  return { text, status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), closed, json }
}

/**
 * Sends bytes as they are and collects the reply until the server closes or `waitMs` have passed.
 */
export const raw = (
  port: number,
  parts: string | Uint8Array | readonly (string | Uint8Array)[],
  waitMs = 3_000,
): Promise<RawAnswer> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" })
    const chunks: Buffer[] = []
    const finish = (closed: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(parse(Buffer.concat(chunks).toString("latin1"), closed))
    }
    const timer = setTimeout(() => finish(false), waitMs)
    socket.on("data", (chunk) => chunks.push(chunk))
    socket.on("error", () => {})
    socket.on("close", () => finish(true))
    for (const part of Array.isArray(parts) ? parts : [parts]) socket.write(part as string)
  })

/** An open connection whose replies the test reads itself. */
export const openSocket = (port: number): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" }, () => resolve(socket))
    socket.on("error", () => {})
  })

/** Polls until `check` is true; fails the test after 15 s. */
export const until = async (check: () => boolean): Promise<void> => {
  await vi.waitUntil(check, { timeout: 15_000, interval: 2 })
}
