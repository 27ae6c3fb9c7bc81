// What the schema in the prompt changes: exact values of fields over 100 tasks, with and without, in
// one run. `node --import tsx bench/fields.ts model.gguf`
import { writeFileSync } from "node:fs"
import { resolve } from "node:path"
import OpenAI from "openai"
import { stringify } from "yaml"
import { codeInWords } from "./deployment/code.ts"
import { makeDeployment } from "./deployment/deployment.ts"
import { startServer } from "./deployment/server-process.ts"
import { starterConfigOf } from "./deployment/starter-config.ts"
import { type FieldTask, fieldTasks } from "./fields/tasks.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { figure, printTable } from "./measure/table.ts"

const ways = { without: "svc-lyt", "in the prompt": "svc-omni" } as const

interface Result {
  readonly right: number
  readonly fields: number
  readonly promptTokens: number
  readonly isWhole: boolean
}

const resultOf = (
  { document }: FieldTask,
  { choices: [choice], usage }: OpenAI.ChatCompletion,
): Result => {
  const names = Object.keys(document)
  let found: Readonly<Record<string, unknown>> = {}
  // cut by max_tokens: nothing of it counts
  if (choice?.finish_reason === "stop") found = JSON.parse(choice.message.content ?? "{}")
  const right = names.filter((name) => found[name] === document[name]).length
  return {
    right,
    fields: names.length,
    promptTokens: usage?.prompt_tokens ?? 0,
    isWhole: right === names.length,
  }
}

const startWith = async (model: string) => {
  const deployment = makeDeployment({ config: "starter.yaml" })
  const config = starterConfigOf(deployment)
  const models = Object.values(ways).map((id) => ({
    ...config.models.find((entry) => entry.id === id),
    sources: [{ url: `file:${resolve(model)}` }],
    options: { schemaInPrompt: id === ways["in the prompt"] },
  }))
  writeFileSync(deployment.config, stringify({ ...config, models }))
  const server = await startServer(deployment)
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: deployment.apiKey })
  const ask = (id: string, { text, schema }: FieldTask) =>
    client.chat.completions.create({
      model: id,
      temperature: 0,
      max_tokens: 150,
      messages: [{ role: "user", content: `Extract the facts from this text.\n\n${text}` }],
      response_format: {
        type: "json_schema",
        json_schema: { name: "facts", strict: true, schema },
      },
    })
  const stop = async () => {
    await server.stop()
    deployment.remove()
  }
  return { ask, stop }
}

const [model] = process.argv.slice(2)
if (model === undefined) throw new Error("name a model: a GGUF file")
const startedMs = performance.now()
printMachine(`Exact field values over ${fieldTasks.length} tasks: ${model}`, codeInWords)
const { ask, stop } = await startWith(model)
try {
  const results = Object.keys(ways).map((name) => ({ name, all: [] as Result[] }))
  const waiting = [...fieldTasks]
  const client = async () => {
    for (let task = waiting.shift(); task; task = waiting.shift())
      for (const { name, all } of results)
        all.push(resultOf(task, await ask(ways[name as keyof typeof ways], task)))
  }
  await Promise.all(Array.from({ length: 4 }, client))
  const sum = (all: readonly Result[], of: (one: Result) => number) =>
    all.reduce((total, one) => total + of(one), 0)
  printTable(
    "the schema",
    ["", "fields right", "of", "documents right", "of", "prompt tokens a task"],
    results.map(({ name, all }) => [
      name,
      String(sum(all, ({ right }) => right)),
      String(sum(all, ({ fields }) => fields)),
      String(sum(all, ({ isWhole }) => Number(isWhole))),
      String(all.length),
      figure(sum(all, ({ promptTokens }) => promptTokens) / all.length),
    ]),
  )
} finally {
  await stop()
}
printLoadAfter(startedMs)
