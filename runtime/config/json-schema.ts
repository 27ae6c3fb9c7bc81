import { JsonSchema, Schema } from "effect"
import type { Plugin } from "../../core/plugin.ts"
import { builtinPlugins } from "../../plugins/index.ts"
import { closed } from "./decode.ts"
import { DeploymentConfig } from "./schema.ts"

type Node = Record<string, unknown>

/** Notes of a key stand beside what its schema says, not in an `allOf` of their own. */
const withNotesOfKey = (node: Node): Node => {
  const { allOf, ...rest } = node
  const isNotes = (part: Node) =>
    Object.keys(part).every((key) => /^(description|default)$/.test(key))
  return Array.isArray(allOf) && allOf.every(isNotes) ? Object.assign(rest, ...allOf) : node
}

/**
 * Editors see the file before `${ENV}` is replaced, so a reference is allowed wherever a number or
 * a boolean is.
 */
const allowReferences = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(allowReferences)
  if (typeof node !== "object" || node === null) return node
  const entries = Object.entries(withNotesOfKey(node as Node)).map(([key, value]) => [
    key,
    key === "enum" || key === "default" ? value : allowReferences(value),
  ])
  const copy = Object.fromEntries(entries) as Node
  const isScalar = ["number", "integer", "boolean"].includes(String(copy.type))
  return isScalar
    ? {
        anyOf: [copy, { type: "string", pattern: "\\$\\{" }],
        ...(copy.description !== undefined && { description: copy.description }),
      }
    : copy
}

/**
 * What an entry's `options` are, by its backend and task: editors then complete and check them.
 * Backends with the same options share one condition.
 */
const optionsByBackend = (
  plugins: readonly Plugin[],
  inline: (schema: Schema.Top) => unknown,
): readonly Node[] => {
  const backends = new Map<Readonly<Record<string, Schema.Top>>, string[]>()
  for (const { modelOptions = {} } of plugins)
    for (const [backend, options] of Object.entries(modelOptions))
      backends.set(options, [...(backends.get(options) ?? []), backend])
  return [...backends].flatMap(([options, names]) =>
    Object.entries(options).map(([task, schema]) => ({
      if: {
        properties: { backend: { enum: names }, task: { const: task } },
        required: ["backend", "task"],
      },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { options: inline(closed(schema as Schema.Codec<unknown, unknown>)) } },
    })),
  )
}

/**
 * The JSON schema (draft 2020-12) of config files for editors, with the settings of all built-in
 * plugins.
 */
export const configJsonSchema = async (): Promise<Node> => {
  const plugins: Record<string, unknown> = {}
  const loaded: Plugin[] = []
  const definitions: Node = {}
  const inline = (schema: Schema.Top): unknown => {
    const document = Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" })
    Object.assign(definitions, document.definitions)
    return document.schema
  }
  for (const [name, load] of Object.entries(builtinPlugins)) {
    const { plugin } = await load()
    loaded.push(plugin)
    plugins[name] = { ...(inline(closed(plugin.settings)) as Node), description: plugin.about }
  }
  const deployment = inline(DeploymentConfig)
  Object.assign(definitions.Model as Node, { allOf: optionsByBackend(loaded, inline) })
  const root = (
    typeof deployment === "object" && deployment !== null && "$ref" in deployment
      ? definitions.AssembledDeployment
      : deployment
  ) as { properties: Node }
  const withPlugins = {
    ...root,
    properties: {
      ...root.properties,
      plugins: {
        type: "object",
        description: "Plugins and their settings: a built-in name, a package name, or a path.",
        properties: plugins,
        additionalProperties: true,
      },
    },
  }
  delete definitions.AssembledDeployment
  return allowReferences({
    $schema: JsonSchema.META_SCHEMA_URI_DRAFT_2020_12,
    title: "Rakit deployment",
    ...withPlugins,
    $defs: definitions,
  }) as Node
}
