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
}

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
