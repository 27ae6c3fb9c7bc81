import { readFileSync } from "node:fs"
import { join } from "node:path"
import { loadConfig } from "../config/load.ts"
import { runLoad, whenReady } from "./bench/load.ts"
import { figuresOf, reportText } from "./bench/report.ts"
import { defaultConfig } from "./config-option.ts"
import { refuse } from "./refuse.ts"
import { quotable } from "./table.ts"

export interface BenchOptions {
  /** Its data folder says where the server listens, and has the first account's key. */
  readonly config?: string
  readonly key?: string
  readonly model?: string
  readonly requests: number
  readonly parallel: number
  readonly maxTokens: number
  readonly prompt?: string
  readonly json: boolean
}

interface Listed {
  readonly id: string
  readonly type?: string
  readonly capabilities?: readonly string[]
  readonly pricing?: { readonly output_idr?: number }
}

/** The chat model whose answers cost least. */
const cheapestChat = async (url: string): Promise<string> => {
  const reply = await fetch(`${url}/v1/models`, { signal: AbortSignal.timeout(10_000) })
  const { data = [] } = (await reply.json()) as { readonly data?: readonly Listed[] }
  const chats = data.filter(({ capabilities }) => capabilities?.includes("chat"))
  const price = ({ pricing }: Listed) => pricing?.output_idr ?? 0
  const [first] = chats.sort((a, b) => price(a) - price(b))
  if (!first) throw new Error("The server has no chat model. Fix: name one with --model.")
  return first.id
}

const defaultPrompt = "Explain in a few sentences how a bicycle stays upright."

interface Address {
  readonly base_url?: string
  readonly api_key?: string
}

/** What the server of a config file wrote for its operator at the first start. */
const addressOf = (file: string): Address => {
  const { dataDir, server } = loadConfig(file, process.env).deployment
  const base_url = `http://127.0.0.1:${server.port}`
  try {
    const path = join(dataDir, "credentials.json")
    return { base_url, ...(JSON.parse(readFileSync(path, "utf8")) as Address) }
  } catch {
    return { base_url }
  }
}

const standardUrl = "http://127.0.0.1:8080"

/** Exits with 1 when no request succeeded. */
export const bench = async (typed: string | undefined, options: BenchOptions): Promise<void> => {
  let known: Address = {}
  try {
    // the server at an address that was typed need not be that of a config file here
    const file = options.config ?? (typed === undefined ? defaultConfig : undefined)
    if (file !== undefined) known = addressOf(file)
  } catch (error) {
    return refuse(error)
  }
  const url = (typed ?? known.base_url ?? standardUrl).replace(/\/(v1\/?)?$/, "")
  const key = options.key ?? process.env.RAKIT_API_KEY ?? known.api_key
  if (!key)
    return refuse(
      new Error(
        "No API key. Fix: --key, or RAKIT_API_KEY, or -c with the config file of a server that runs here.",
      ),
    )
  const { requests, parallel, maxTokens, prompt = defaultPrompt, json } = options
  try {
    const model = options.model ?? (await cheapestChat(url))
    const target = { url, key, model, maxTokens, prompt }
    const isShown = process.stderr.isTTY === true
    await whenReady(target, (reason) => {
      if (isShown) process.stderr.write(`\r\u001b[K${reason.slice(4, 100)}`)
    })
    const load = await runLoad(target, { requests, parallel }, (done) => {
      if (isShown) process.stderr.write(`\r\u001b[K${done} / ${requests}`)
    })
    if (isShown) process.stderr.write("\r\u001b[K")
    const about = { url, model, parallel, max_tokens: maxTokens }
    process.stdout.write(
      json
        ? `${JSON.stringify({ object: "bench", ...about, ...figuresOf(load), failures: Object.fromEntries(load.failures) }, null, 2)}\n`
        : `${quotable(model)} at ${url}, ${parallel} at once\n${reportText(load)}`,
    )
    if (load.samples.length === 0) process.exit(1)
  } catch (error) {
    const { cause, message } = error as Error
    const reason = cause instanceof Error ? `: ${cause.message}` : ""
    const fix = cause instanceof Error ? " Fix: start the server, or name its address." : ""
    refuse(new Error(`${url} can't be asked: ${`${message}${reason}`.replace(/\.$/, "")}.${fix}`))
  }
}
