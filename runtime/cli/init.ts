import { existsSync, writeFileSync } from "node:fs"
import { createInterface } from "node:readline/promises"
import { ownConfig } from "./config-option.ts"
import { type Choices, databasesOf, noDatabase, refusalOf, unknown } from "./init/choices.ts"
import { entriesOf } from "./init/models.ts"
import { modelsByTask, type Parts, readParts } from "./init/parts.ts"
import { configText, unsetIn } from "./init/text.ts"
import { refuse } from "./refuse.ts"
import { wrapped } from "./table.ts"

export interface InitOptions {
  readonly serve?: readonly string[]
  readonly model?: readonly string[]
  readonly database?: string
  readonly storage?: string
  readonly force: boolean
  /** Asks nothing: what no option says is as by default. */
  readonly yes: boolean
  readonly json: boolean
}

const listed = (text: string): readonly string[] =>
  text.split(/[\s,]+/).filter((name) => name !== "")

const defaultsOf = (parts: Parts): Choices => ({
  serve: ["chat", "embeddings"],
  models: [],
  database: databasesOf(parts)[0] ?? noDatabase,
  storage: Object.keys(parts.storages)[0] ?? "",
})

type Ask = (
  question: string,
  otherwise: string,
  refuses: (answer: string) => string | undefined,
) => Promise<string>

const say = (text: string): void => void process.stderr.write(text)

const askKinds = async (parts: Parts, ask: Ask, standard: Choices) => {
  const rows = Object.entries(parts.kinds).map(
    ([name, { about }]) => `  ${name.padEnd(12)}${about}`,
  )
  say(`What is to be served?\n${rows.join("\n")}\n`)
  const refuses = (answer: string) =>
    unknown("What is served", listed(answer), Object.keys(parts.kinds))
  return listed(await ask("Several, with commas", standard.serve.join(","), refuses))
}

const smallOnes = "small ones"
const columns = 100
const taskWidth = 12

const askModels = async (parts: Parts, ask: Ask) => {
  const rows = [...modelsByTask()].flatMap(([task, names]) =>
    wrapped(names.join(", "), columns - taskWidth - 2).map(
      (line, index) => `  ${(index === 0 ? task : "").padEnd(taskWidth)}${line}\n`,
    ),
  )
  say(`Models: a path (./x.gguf), or of these:\n${rows.join("")}`)
  const named = (answer: string) => listed(answer === smallOnes ? "" : answer)
  const refuses = (answer: string) => {
    try {
      entriesOf(parts, { serve: [], models: named(answer) }, ownConfig)
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  }
  return named(await ask("Several, with commas", smallOnes, refuses))
}

/** Asks on the terminal for what no option says; a wrong answer is asked for again. */
const askFor = async (parts: Parts, given: Partial<Choices>): Promise<Choices> => {
  const standard = defaultsOf(parts)
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const ask: Ask = async (question, otherwise, refuses) => {
    for (;;) {
      const answer = (await terminal.question(`${question} [${otherwise}] `)).trim() || otherwise
      const refusal = refuses(answer)
      if (refusal === undefined) return answer
      say(`${refusal}\n`)
    }
  }
  const askOne = (what: string, known: readonly string[], otherwise: string) =>
    ask(`${what}: ${known.join(", ")}`, otherwise, (answer) => unknown(what, [answer], known))
  try {
    const serve = given.serve ?? (await askKinds(parts, ask, standard))
    const models = given.models ?? (await askModels(parts, ask))
    const needy = serve.some((name) => parts.kinds[name]?.database)
    const databases = databasesOf(parts).filter((name) => name !== noDatabase || !needy)
    const database = given.database ?? (await askOne("Database", databases, standard.database))
    const storage =
      given.storage ??
      (database === noDatabase
        ? standard.storage
        : await askOne("Storage", Object.keys(parts.storages), standard.storage))
    return { serve, models, database, storage }
  } finally {
    terminal.close()
  }
}

const choicesOf = (parts: Parts, options: InitOptions): Promise<Choices> => {
  const { serve, model: models, database, storage, yes } = options
  const given = {
    ...(serve && { serve }),
    ...(models && { models }),
    ...(database && { database }),
    ...(storage && { storage }),
  }
  return process.stdin.isTTY === true && !yes
    ? askFor(parts, given)
    : Promise.resolve({ ...defaultsOf(parts), ...given })
}

const nextSteps = (file: string, text: string, { database }: Choices): string => {
  const unset = unsetIn(text).filter((name) => process.env[name] === undefined)
  const steps = [
    ...unset.map((name) => `export ${name}=...`),
    ...(database === noDatabase
      ? ["npx rakit keys hash   # then export RAKIT_KEY_HASH=sha256:..."]
      : []),
    `npx rakit doctor ${file}`,
    `npx rakit serve ${file}`,
  ]
  return `Wrote ${file}. Next:\n${steps.map((step) => `  ${step}\n`).join("")}`
}

/** Writes a commented config file that `rakit check` takes. */
export const init = async (file: string, options: InitOptions): Promise<void> => {
  try {
    if (existsSync(file) && !options.force)
      throw new Error(`${file} is there already. Fix: name another file, or --force.`)
    const parts = readParts()
    const choices = await choicesOf(parts, options)
    const refusal = refusalOf(parts, choices)
    if (refusal) throw new Error(refusal)
    const entries = entriesOf(parts, choices, file)
    const text = configText(parts, choices, entries)
    writeFileSync(file, text, options.force ? {} : { flag: "wx" })
    const models = entries.map(({ id }) => id)
    const facts = { object: "config", file, ...choices, models, unset: unsetIn(text) }
    process.stdout.write(
      options.json ? `${JSON.stringify(facts, null, 2)}\n` : nextSteps(file, text, choices),
    )
  } catch (error) {
    refuse(error)
  }
}
