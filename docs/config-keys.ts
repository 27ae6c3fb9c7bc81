import { readFileSync } from "node:fs"
import { join } from "node:path"
import { stringify } from "yaml"
import type { Json } from "../core/json.ts"
import { configExamples } from "./config-examples.ts"
import { table } from "./table.ts"

/** A part of config/rakit.schema.json, which is what the schemas say. */
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
  /** What the options of an entry of `models` are, by its backend and task. */
  readonly allOf?: readonly {
    readonly if: { readonly properties: { backend: SchemaNode; task: { const: string } } }
    readonly then: { readonly properties: { options: SchemaNode } }
  }[]
}

export const root = join(import.meta.dirname, "..")
export const readSchema = (): SchemaNode =>
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
export const plain = (node: SchemaNode, schema: SchemaNode): SchemaNode => {
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
    const items = plain(node.items ?? {}, schema)
    return `list of ${items.enum ? `some of ${typeOf(items, schema)}` : `${typeOf(items, schema)}s`}${most}`
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

export const keysTable = (keys: readonly ConfigKey[], base: string, schema: SchemaNode): string =>
  table(
    ["Key", "Type", "Default", "Meaning"],
    keys.map((key) => [
      `\`${key.path.slice(base.length)}\``,
      typeOf(key.node, schema),
      defaultOf(key),
      inText(key.node.description ?? ""),
    ]),
  )

export const block = (value: Json): string =>
  `\`\`\`yaml\n${stringify(value, { lineWidth: 100, aliasDuplicateObjects: false })}\`\`\``

export const allConfigKeys = (schema = readSchema()): readonly ConfigKey[] => {
  const { plugins, ...rest } = schema.properties!
  return [
    ...configKeys({ ...schema, properties: rest }, "", schema),
    ...configKeys(plugins!, "plugins", schema).filter(({ path }) => path.split(".").length > 2),
  ]
}
