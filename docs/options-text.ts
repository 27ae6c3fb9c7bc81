import type { Json } from "../core/json.ts"
import {
  block,
  type ConfigKey,
  configKeys,
  exampleOf,
  keysTable,
  readSchema,
  type SchemaNode,
} from "./config-keys.ts"

/** The options of model entries of some backends, for one task. */
export interface TaskOptions {
  readonly backends: readonly string[]
  readonly task: string
  readonly node: SchemaNode
}

export const taskOptions = (schema = readSchema()): readonly TaskOptions[] =>
  schema.$defs!.Model!.allOf!.map((one) => ({
    backends: one.if.properties.backend.enum!,
    task: one.if.properties.task.const,
    node: one.then.properties.options,
  }))

export const optionsExample = ({ node }: TaskOptions, schema = readSchema()): Json =>
  exampleOf(node, "options", schema)

const keysOf = ({ node }: TaskOptions, schema: SchemaNode): readonly ConfigKey[] =>
  configKeys(node, "options", schema)

const nameOf = ({ path }: ConfigKey): string => path.split(/[.[]/)[1]!

/** Options with one meaning for every task of the backend, which are said once. */
const sharedNames = (tasks: readonly TaskOptions[]): ReadonlySet<string> => {
  const [first, ...others] = tasks
  const same = ([name, node]: readonly [string, SchemaNode]) =>
    others.every((one) => JSON.stringify(one.node.properties![name]) === JSON.stringify(node))
  return new Set(
    Object.entries(first!.node.properties!)
      .filter(same)
      .map(([name]) => name),
  )
}

const titled = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

const exampleBlock = (options: TaskOptions, example: Json): string =>
  block({
    models: [
      {
        id: "my-model",
        task: options.task,
        backend: options.backends[0]!,
        limits: {
          contextTokens: 8192,
          ...(options.task === "chat" && { maxOutputTokens: 2048 }),
        },
        options: example,
      },
    ],
  })

const taskText = (
  task: TaskOptions,
  isShown: (key: ConfigKey) => boolean,
  example: Json,
  schema: SchemaNode,
): string => {
  const own = keysOf(task, schema).filter(isShown)
  const keys = own.length ? keysTable(own, "options.", schema) : "It has no further options."
  return `#### ${titled(task.task)} models of ${task.backends.join(" and ")}

${keys}

${exampleBlock(task, example)}`
}

const backendText = (tasks: readonly TaskOptions[], schema: SchemaNode): string => {
  const shared = sharedNames(tasks)
  const isOwn = (key: ConfigKey): boolean => !shared.has(nameOf(key))
  const ofAll = keysOf(tasks[0]!, schema).filter((key) => !isOwn(key))
  const texts = tasks.map((task, index) => {
    const all = Object.entries(optionsExample(task, schema) as Record<string, Json>)
    // the first example has the shared options, too
    const shown = all.filter(([name]) => index === 0 || !shared.has(name))
    return taskText(task, isOwn, Object.fromEntries(shown), schema)
  })
  const first = ofAll.length
    ? [`Of models of every task:\n\n${keysTable(ofAll, "options.", schema)}`]
    : []
  return [`### Options of ${tasks[0]!.backends.join(" and ")}`, ...first, ...texts].join("\n\n")
}

/** The section of the config reference about the `options` of model entries. */
export const optionsText = (schema: SchemaNode): string => {
  const options = taskOptions(schema)
  const backends = [...new Set(options.map((one) => one.backends.join()))]
  return `What an entry of \`models\` may have in \`options\` depends on its backend and its task. Each is optional unless it says otherwise.

${backends
  .map((names) =>
    backendText(
      options.filter((one) => one.backends.join() === names),
      schema,
    ),
  )
  .join("\n\n")}`
}
