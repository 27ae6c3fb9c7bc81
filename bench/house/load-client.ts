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

export interface LoadClient {
  /** One job at a time. */
  run(job: LoadJob): Promise<LoadResult>
  stop(): void
}

const ask = async (child: ChildProcess, job: LoadJob): Promise<LoadResult> => {
  child.send(job)
  const [answer] = (await once(child, "message")) as [{ readonly result?: LoadResult; readonly error?: string }]
  if (!answer.result) throw new Error(`the load client failed: ${answer.error}`)
  return answer.result
}

/** autocannon in a process of its own, kept for all rounds. */
export const startLoadClient = (): LoadClient => {
  const child = fork(fileURLToPath(new URL("../peers/load-client.js", import.meta.url)), [], { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] })
  return { run: (job) => ask(child, job), stop: () => child.disconnect() }
}
