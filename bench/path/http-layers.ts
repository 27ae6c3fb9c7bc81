import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Pool } from "undici"
import {
  type PlainProcess,
  type ServerProcess,
  startBareServer,
} from "../deployment/server-process.ts"
import { cpuUsOf, type Side } from "../measure/timed-calls.ts"

export interface HttpCall {
  readonly path: string
  readonly body: object
}

/** The bare server's reply for one path. */
export interface Recorded {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly chunks: readonly string[]
}

/** Headers that Node itself writes. */
const ofTheConnection = new Set([
  "connection",
  "date",
  "keep-alive",
  "transfer-encoding",
  "trailer",
])

const keyed = (apiKey: string) => ({
  authorization: `Bearer ${apiKey}`,
  "content-type": "application/json",
})

/** Sends one request; returns the reply, one chunk per event. */
export const record = async (
  url: string,
  apiKey: string,
  path: string,
  body?: object,
): Promise<Recorded> => {
  const reply = await fetch(url + path, {
    headers: keyed(apiKey),
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  })
  const text = await reply.text()
  if (reply.status !== 200) throw new Error(`${path} answered ${reply.status}: ${text}`)
  const isStream = reply.headers.get("content-type")?.startsWith("text/event-stream") === true
  const headers = Object.fromEntries(
    [...reply.headers].filter(([name]) => !ofTheConnection.has(name)),
  )
  return { status: 200, headers, chunks: isStream ? text.split(/(?<=\n\n)/) : [text] }
}

export const startBarePeer = (
  folder: string,
  routes: Readonly<Record<string, Recorded>>,
): Promise<PlainProcess> => {
  const file = join(folder, "routes.json")
  writeFileSync(file, JSON.stringify(routes))
  return startBareServer(file)
}

/** Calls over keep-alive connections; one call at a time uses one of them. */
export const httpSide = (
  name: string,
  { url, pid }: Pick<ServerProcess, "url" | "pid">,
  apiKey: string,
  { path, body }: HttpCall,
): Side & { close(): Promise<void> } => {
  const client = new Pool(url, { connections: 16 })
  const request = {
    method: "POST",
    path,
    body: JSON.stringify(body),
    headers: keyed(apiKey),
  } as const
  const call = async () => {
    const reply = await client.request(request)
    const text = await reply.body.text()
    if (reply.statusCode !== 200) throw new Error(`${path} answered ${reply.statusCode}: ${text}`)
  }
  return { name, call, cpuUs: () => cpuUsOf(pid), close: () => client.close() }
}
