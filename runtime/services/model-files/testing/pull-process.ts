import { Effect } from "effect"
import { makeModelFiles } from "../model-files.ts"
import { fastTiming } from "./timing.ts"

/** A process of its own that pulls one model: MODELS_DIR, SOURCE, SHA256. Prints JSON lines: progress, log lines, then the path or why not. */
const say = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`)
const { MODELS_DIR = "", SOURCE = "", SHA256 } = process.env
const log = {
  debug: () => {},
  info: (info: string) => say({ info }),
  warn: (warn: string) => say({ warn }),
  error: (error: string) => say({ error }),
  with: () => log,
}
const files = makeModelFiles({ modelsDir: MODELS_DIR, log, timing: fastTiming })
const result = await Effect.runPromiseExit(
  files.pull("svc", [{ url: SOURCE, sha256: SHA256 }], ({ doneBytes }) => say({ doneBytes })),
)
say(result._tag === "Success" ? { path: result.value } : { failed: String(result.cause) })
