import { type Choices, noDatabase } from "./choices.ts"
import type { Entry } from "./models.ts"
import type { Parts } from "./parts.ts"

const pluginLines = ({ kinds }: Parts, serve: readonly string[]): string => {
  const plugins = [...new Set(serve.flatMap((name) => kinds[name]?.plugins ?? []))]
  const line = (plugin: string) => {
    const name = serve.find((one) => kinds[one]?.plugins[0] === plugin)
    return `  ${plugin}: {}${name ? ` # ${kinds[name]?.about}` : ""}\n`
  }
  return plugins.map(line).join("")
}

/** The text of the config file. */
export const configText = (parts: Parts, choices: Choices, entries: readonly Entry[]): string => {
  const { serve, database, storage } = choices
  const ground =
    database === noDatabase
      ? parts.withoutDatabase
      : `${parts.databases[database]}${parts.storages[storage]}${parts.withDatabase}`
  const models = entries.map(({ text }) => text).join("\n\n")
  return `${parts.head}
plugins:
${ground}${parts.always}${pluginLines(parts, serve)}
${entries.length > 0 ? `models:\n${models}` : "models: []"}
`
}

/** The variables without a default, which must be set before the start. */
export const unsetIn = (text: string): readonly string[] => [
  ...new Set([...text.matchAll(/(?<!\$)\$\{(\w+)\}/g)].map(([, name]) => name as string)),
]
