import { Effect } from "effect"
import { makeModelFiles } from "../model-files.ts"
import { fastTiming } from "./timing.ts"

/**
 * Pulls one model as a process of its own: MODELS_DIR, SOURCE, SHA256. Prints progress, log lines
 * and the result as JSON lines.
 */
const say = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`)
const { MODELS_DIR = "", SOURCE = "", SHA256 } = process.env
const log = {
  debug: () => {},
  info: (_event: string, info: string) => say({ info }),
  warn: (_event: string, warn: string) => say({ warn }),
  error: (_event: string, error: string) => say({ error }),
  with: () => log,
}
const files = makeModelFiles({ modelsDir: MODELS_DIR, log, timing: fastTiming })
const result = await Effect.runPromiseExit(
  files.pull("svc", [{ url: SOURCE, sha256: SHA256 }], ({ doneBytes }) => say({ doneBytes })),
)
say(result._tag === "Success" ? { path: result.value } : { failed: String(result.cause) })
