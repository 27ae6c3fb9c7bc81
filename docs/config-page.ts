import { readFileSync } from "node:fs"
import { join } from "node:path"
import { stringify } from "yaml"
import type { Json } from "../core/json.ts"
import { configExamples } from "./config-examples.ts"
import { table } from "./table.ts"

/** docs/config-reference.md, from config/rakit.schema.json, which is what the schemas say. */
export interface SchemaNode {
  readonly $ref?: string
  readonly type?: string
  readonly description?: string
  readonly default?: Json
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum?: number
  readonly maxItems?: number
  readonly pattern?: string
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly items?: SchemaNode
  readonly anyOf?: readonly SchemaNode[]
  readonly $defs?: Readonly<Record<string, SchemaNode>>
}

const root = join(import.meta.dirname, "..")
const readSchema = (): SchemaNode =>
  JSON.parse(readFileSync(join(root, "config", "rakit.schema.json"), "utf8")) as SchemaNode

/** One key of the file; `path` has `[]` for the items of a list. */
export interface ConfigKey {
  readonly path: string
  readonly node: SchemaNode
  readonly isRequired: boolean
}

const isReference = ({ pattern, enum: values }: SchemaNode): boolean =>
  pattern === "\\$\\{" || values?.join() === "Infinity,-Infinity,NaN"

/** The node itself: behind `$ref`, and without the forms that only editors need. */
const plain = (node: SchemaNode, schema: SchemaNode): SchemaNode => {
  if (node.$ref !== undefined)
    return { ...schema.$defs![node.$ref.split("/").at(-1)!]!, ...node, $ref: undefined }
  const forms = node.anyOf?.filter((form) => !isReference(form))
  return forms?.length === 1 ? plain({ ...forms[0]!, ...node, anyOf: undefined }, schema) : node
}

/** The keys of a part of the file, those inside of objects and of items after their own. */
export const configKeys = (
  part: SchemaNode,
  path: string,
  schema: SchemaNode,
): readonly ConfigKey[] => {
  const node = plain(part, schema)
  const inside = [...(node.items ? [node.items] : []), ...(node.anyOf ?? [])]
  return [
    ...Object.entries(node.properties ?? {}).flatMap(([key, value]) => {
      const here = path === "" ? key : `${path}.${key}`
      return [
        {
          path: here,
          node: plain(value, schema),
          isRequired: node.required?.includes(key) ?? false,
        },
        ...configKeys(value, here, schema),
      ]
    }),
    ...inside.flatMap((form) => configKeys(form, node.items ? `${path}[]` : path, schema)),
  ]
}

const number = (value: number): string => value.toLocaleString("en-US")

const rangeOf = ({ minimum, exclusiveMinimum, maximum }: SchemaNode): string => {
  const least = minimum ?? (exclusiveMinimum === undefined ? undefined : exclusiveMinimum + 1)
  const from = least !== undefined && Math.abs(least) < 2 ** 53 - 1 ? least : undefined
  const to = maximum !== undefined && maximum < 2 ** 53 - 1 ? maximum : undefined
  if (from !== undefined && to !== undefined) return ` ${number(from)} to ${number(to)}`
  if (from !== undefined) return ` from ${number(from)}`
  return to === undefined ? "" : ` up to ${number(to)}`
}

export const typeOf = (part: SchemaNode, schema: SchemaNode): string => {
  const node = plain(part, schema)
  if (node.enum) return node.enum.map((value) => `\`${value}\``).join(", ")
  if (node.anyOf) return node.anyOf.map((form) => typeOf(form, schema)).join(", or ")
  if (node.type === "array") {
    const most = node.maxItems === undefined ? "" : `, at most ${number(node.maxItems)}`
    return `list of ${typeOf(node.items ?? {}, schema)}s${most}`
  }
  return `${node.type === "object" ? "map" : node.type}${rangeOf(node)}`
}

const isEmpty = (value: Json | undefined): boolean =>
  value === undefined ||
  ["", "[]", "{}"].includes(String(value) === "" ? "" : JSON.stringify(value))

/** @throws where a key has neither a default that says something nor an entry in the examples. */
export const exampleOf = (part: SchemaNode, path: string, schema: SchemaNode): Json => {
  const node = plain(part, schema)
  const given = configExamples[path]
  if (given !== undefined) return given
  if (node.properties)
    return Object.fromEntries(
      Object.entries(node.properties).map(([key, value]) => [
        key,
        exampleOf(value, path === "" ? key : `${path}.${key}`, schema),
      ]),
    )
  if (plain(node.items ?? {}, schema).properties)
    return [exampleOf(node.items!, `${path}[]`, schema)]
  if (node.type === "boolean") return node.default !== true
  if (!isEmpty(node.default)) return node.default!
  if (node.enum) return node.enum[0]!
  throw new Error(`docs/config-examples.ts: ${path} has no example`)
}

const defaultOf = ({ node, isRequired }: ConfigKey): string => {
  if (isRequired) return "required"
  if (node.properties || node.default === undefined) return ""
  return isEmpty(node.default) ? "empty" : `\`${JSON.stringify(node.default)}\``
}

/** Markdown takes `<dataDir>` outside of code for an element. */
const inText = (text: string): string =>
  text.replaceAll(/`[^`]*`|</g, (part) => (part === "<" ? "\\<" : part))

const keysTable = (keys: readonly ConfigKey[], base: string, schema: SchemaNode): string =>
  table(
    ["Key", "Type", "Default", "Meaning"],
    keys.map((key) => [
      `\`${key.path.slice(base.length)}\``,
      typeOf(key.node, schema),
      defaultOf(key),
      inText(key.node.description ?? ""),
    ]),
  )

const block = (value: Json): string =>
  `\`\`\`yaml\n${stringify(value, { lineWidth: 100, aliasDuplicateObjects: false })}\`\`\``

/** The settings of a plugin, each with its example. */
export const pluginExample = (name: string, schema = readSchema()): Json => {
  const settings = schema.properties!.plugins!.properties![name]!
  return settings.properties ? exampleOf(settings, `plugins.${name}`, schema) : {}
}

const pluginSection = (name: string, node: SchemaNode, schema: SchemaNode): string => {
  const keys = configKeys(node, `plugins.${name}`, schema)
  return `### ${name}

${node.description} [More](../plugins/${name}/README.md).

${keys.length === 0 ? "It has no settings." : keysTable(keys, `plugins.${name}.`, schema)}

${block({ plugins: { [name]: pluginExample(name, schema) } })}
`
}

/** The whole file with an example of every key that is not a plugin's. */
export const fileExample = (schema = readSchema()): Record<string, Json> => {
  const { plugins: _, models, ...rest } = schema.properties!
  return {
    ...(exampleOf({ properties: rest }, "", schema) as Record<string, Json>),
    plugins: { "backend-onnx": {} },
    models: exampleOf(models!, "models", schema),
  }
}

const sourceForms = (): string => {
  const readme = readFileSync(join(root, "runtime/services/model-files/README.md"), "utf8")
  return readme.slice(readme.indexOf("| url"), readme.indexOf("\n\n", readme.indexOf("| url")))
}

export const allConfigKeys = (schema = readSchema()): readonly ConfigKey[] => {
  const { plugins, ...rest } = schema.properties!
  return [
    ...configKeys({ ...schema, properties: rest }, "", schema),
    ...configKeys(plugins!, "plugins", schema).filter(({ path }) => path.split(".").length > 2),
  ]
}

const sourcesText = `A source is where the files of a model come from; the sources of a model are tried in order.

SOURCE_FORMS

\`./models/x.gguf\`, \`../x.gguf\` and \`/models/x.gguf\` are \`file:\`, too. A relative path is one from the folder of the config file. \`sha256\` is 64 hexadecimal digits in lower case;
the last column says what it is the digest of. What has none is pinned at its first download, in \`models.lock.yaml\` beside the config file
([the lock file](../runtime/services/model-files/README.md#the-lock-file)). A plugin is named by a built-in name, an npm package, or a path that begins with \`./\`, \`../\` or \`/\`.
\`\${NAME}\` and \`\${NAME:-default}\` stand for variables of the environment, wherever a value stands.`

export const configPage = (): string => {
  const schema = readSchema()
  const keys = allConfigKeys(schema).filter(({ path }) => !path.startsWith("plugins."))
  const isOf = (name: string) => (key: ConfigKey) =>
    key.path.startsWith(`${name}[]`) || key.path.startsWith(`${name}.`)
  const isNested = (key: ConfigKey) => isOf("models")(key) || isOf("include")(key)
  const { models, include, ...rest } = fileExample(schema) as Record<string, Json>
  const plugins = Object.entries(schema.properties!.plugins!.properties!)
  return `# Config reference

Every key of the config file and of the built-in plugins' settings: type and range, default, meaning, and an example of each.
[configuration.md](configuration.md) explains the file; [config/rakit.schema.json](../config/rakit.schema.json) is the same for editors.
This page is generated from the schemas by \`npm run docs\`; a test keeps them equal.

## The file

${keysTable(
  keys.filter((key) => !isNested(key)),
  "",
  schema,
)}
| \`plugins\` | map | required | ${schema.properties!.plugins!.description} |

${block(rest)}

## Models

Each entry of \`models\`. The keys of \`options\` are the backend's: [onnx and webgpu](../plugins/backend-onnx/README.md), [remote](../plugins/backend-remote/README.md).

${keysTable(keys.filter(isOf("models")), "models[].", schema)}

${block({ models: models! })}

## Sources

${sourcesText.replace("SOURCE_FORMS", sourceForms())}

## Include

${schema.properties!.include!.description}

${keysTable(keys.filter(isOf("include")), "include[].", schema).replaceAll("`nclude", "`include")}

${block({ include: include! })}

## Plugins

${plugins.map(([name, node]) => pluginSection(name, node, schema)).join("\n")}`
}
