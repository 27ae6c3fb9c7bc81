import { type ChildProcess, fork } from "node:child_process"
import { join } from "node:path"
import { root } from "../deployment/code.ts"
import type { Calls, CallTimes } from "./protocol.ts"

/** An embedder in a process of its own. */
export interface Side {
  readonly name: string
  time(calls: Calls): Promise<CallTimes>
  vectors(texts: readonly string[]): Promise<readonly (readonly number[])[]>
  stop(): void
}

const answerOf = <Answer>(child: ChildProcess): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`an embedder ended with ${code}`))
    child.once("exit", ended)
    child.once("message", (message) => {
      child.off("exit", ended)
      resolve(message as Answer)
    })
  })

export const openSide = async (
  name: string,
  file: string,
  args: readonly string[],
): Promise<Side> => {
  const child = fork(join(root, "bench", file), [...args], {
    execArgv: file.endsWith(".ts") ? ["--import", "tsx"] : [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  })
  await answerOf(child)
  const ask = <Answer>(message: object): Promise<Answer> => {
    child.send(message)
    return answerOf<Answer>(child)
  }
  return {
    name,
    time: (calls) => ask<CallTimes>(calls),
    vectors: async (texts) =>
      (await ask<{ readonly vectors: readonly (readonly number[])[] }>({ texts })).vectors,
    stop: () => {
      if (child.connected) child.disconnect()
    },
  }
}
