import { type ChildProcess, fork } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { EngineSpec } from "../../plugins/backend-onnx/worker/protocol.ts"
import { root } from "../deployment/code.ts"
import type { Place } from "../measure/open-device.ts"
import type { Task, Timing } from "./protocol.ts"

/** A child process with an open model. */
export interface EngineProcess {
  readonly name: string
  /** From the start of the process to the open model. */
  readonly readyMs: number
  residentMb(): number
  run(task: Omit<Task, "id">): Promise<Timing>
  ask<Answer>(message: object): Promise<Answer>
  /** The tokens of each text; of Rakit's engine. */
  encode(texts: readonly string[]): Promise<readonly (readonly number[])[]>
  stop(): void
}

const answerTo = <Answer>(child: ChildProcess): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const done = () => {
      child.off("message", onMessage)
      child.off("exit", onExit)
    }
    const onMessage = (message: unknown) => {
      done()
      resolve(message as Answer)
    }
    const onExit = (code: number | null) => {
      done()
      reject(new Error(`an engine's process ended with ${code}`))
    }
    child.on("message", onMessage)
    child.on("exit", onExit)
  })

const open = async (
  name: string,
  file: string,
  args: readonly string[],
  execArgv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<EngineProcess> => {
  const startedMs = performance.now()
  const child = fork(join(root, file), [...args], {
    execArgv: [...execArgv],
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  })
  await answerTo(child)
  const readyMs = performance.now() - startedMs
  let id = 0
  const ask = <Answer>(message: object): Promise<Answer> => {
    child.send(message)
    return answerTo<Answer>(child)
  }
  return {
    name,
    readyMs,
    residentMb: () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024,
    ask,
    encode: async (texts) =>
      (await ask<{ readonly ids: readonly (readonly number[])[] }>({ texts })).ids,
    run: (task) => ask<Timing>({ ...task, id: id++ }),
    stop: () => child.disconnect(),
  }
}

export const openRakit = (
  name: string,
  spec: EngineSpec,
  place: Place = "cpu",
): Promise<EngineProcess> =>
  open(name, "bench/chat/rakit-engine.ts", [JSON.stringify(spec), place], ["--import", "tsx"])

export const openLlamaCpp = (
  name: string,
  model: string,
  threads: number,
): Promise<EngineProcess> => open(name, "bench/peers/llama-cpp.js", [model, String(threads)], [])

/** Single steps of the model; `kernels`: see RAKIT_KERNELS. */
export const openSteps = (
  { path, graphs, threads }: EngineSpec,
  kernels: string,
): Promise<EngineProcess> =>
  open(
    `steps ${kernels}`,
    "bench/chat/step-process.ts",
    [path, graphs, String(threads)],
    ["--import", "tsx"],
    { RAKIT_KERNELS: kernels },
  )
