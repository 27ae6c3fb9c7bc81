import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"

export interface Attack {
  readonly url: string
  readonly apiKey: string
  /** What is sent, in turn; see peers/hostile-client.js. */
  readonly names: readonly string[]
  readonly connections: number
  readonly ms: number
  /** How long each connection waits between two requests; 20 by default. */
  readonly pauseMs?: number
}

/** Hostile bodies, and over how many connections each is sent when it comes alone. */
export const connectionsOf: Readonly<Record<string, number>> = {
  "600,000 keys": 8,
  "600,000 keys, gzip": 8,
  "39,000 keys": 16,
  "250,000 tool properties": 8,
  "9,900 tool properties": 16,
  "16,000 blocks of text": 16,
  "600,000 token ids": 8,
  "48 MB of words": 8,
  "7.9 MB of words": 16,
  "1 MB of words": 200,
  "49 MB of words, not announced": 30,
  "45 MB of spaces in 45 kB": 30,
  "24 MB of image": 8,
  "49 MB form": 16,
  "7 MB, a byte a second": 100,
}
export const bodies: readonly string[] = Object.keys(connectionsOf)

/** Replies by status; `cut`: none; `open`: none yet at the end. */
export type Answers = Readonly<Record<string, number>>

interface Message {
  readonly begun?: true
  readonly result?: { readonly answers: Answers }
  readonly error?: string
}

/** Starts an attack from a process of its own; resolves once its bodies are made. */
export const startAttack = async (
  attack: Attack,
): Promise<{ readonly ended: Promise<Answers> }> => {
  const child = fork(fileURLToPath(new URL("../peers/hostile-client.js", import.meta.url)), [], {
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  })
  const next = async (): Promise<Message> => {
    const [message] = (await once(child, "message")) as [Message]
    if (message.error !== undefined) throw new Error(`the attacker failed: ${message.error}`)
    return message
  }
  child.send(attack)
  await next()
  const answers = async () => {
    const { result } = await next()
    child.disconnect()
    return result!.answers
  }
  return { ended: answers() }
}
