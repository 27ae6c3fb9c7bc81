import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"

export interface LoadJob {
  readonly url: string
  readonly method: "GET" | "POST"
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly connections: number
  readonly ms: number
}

export interface LoadResult {
  readonly perSecond: number
  readonly medianMs: number
  readonly p95Ms: number
  /** Replies other than 200, broken connections and timeouts. */
  readonly failures: number
}

export interface OpenLoadJob extends LoadJob {
  readonly path: string
  /** Offered rate, regardless of the replies. */
  readonly perSecond: number
}

export interface OpenLoadResult {
  /** Successful replies per second. */
  readonly achieved: number
  /** Measured from the moment at which the request was due. */
  readonly medianMs: number
  readonly p95Ms: number
  readonly p99Ms: number
  /** Replies other than 200, and timeouts. */
  readonly failures: number
}

export interface ClosedLoadJob {
  /** Connections are spread over the servers. */
  readonly urls: readonly string[]
  readonly method: "GET" | "POST"
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Each request has one of them, at random. */
  readonly keys: readonly string[]
  /** Each server has keys of its own. */
  readonly apart?: boolean
  readonly bodies: readonly string[]
  readonly connections: number
  readonly ms: number
}

export interface ClosedLoadResult {
  /** Replies with 200 or 201. */
  readonly count: number
  readonly perSecond: number
  readonly medianMs: number
  readonly p99Ms: number
  /** Other replies, broken connections and timeouts. */
  readonly failures: number
  /** What the client itself took. */
  readonly cpuUs: number
}

export interface Client<Job, Result> {
  /** One job at a time. */
  run(job: Job): Promise<Result>
  stop(): void
}

export type LoadClient = Client<LoadJob, LoadResult>
export type OpenLoadClient = Client<OpenLoadJob, OpenLoadResult>
export type ClosedLoadClient = Client<ClosedLoadJob, ClosedLoadResult>

const startClient = <Job extends object, Result>(program: string): Client<Job, Result> => {
  const child: ChildProcess = fork(
    fileURLToPath(new URL(`../peers/${program}`, import.meta.url)),
    [],
    { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] },
  )
  const ended = once(child, "exit").then(() => [{ error: "it ended" }])
  const run = async (job: Job) => {
    child.send(job)
    const [answer] = (await Promise.race([once(child, "message"), ended])) as [
      { readonly result?: Result; readonly error?: string },
    ]
    if (!answer.result) throw new Error(`the load client failed: ${answer.error}`)
    return answer.result
  }
  return { run, stop: () => child.disconnect() }
}

/** autocannon in a process of its own, kept for all rounds: a closed loop on every connection. */
export const startLoadClient = (): LoadClient => startClient("load-client.js")

/** Requests at a constant rate. */
export const startOpenLoadClient = (): OpenLoadClient => startClient("open-load-client.js")

/** A closed loop on every connection, with many keys and servers. */
export const startClosedLoadClient = (): ClosedLoadClient => startClient("closed-load-client.js")
