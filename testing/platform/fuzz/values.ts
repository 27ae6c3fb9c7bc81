import type { Json } from "../../../core/json.ts"
import type { JsonSchema } from "./document.ts"
import type { Random } from "./random.ts"

export interface ValueMaker {
  readonly random: Random
  resolve(schema: JsonSchema): JsonSchema
  /** What a field of this name holds in real use; undefined: any value of its schema. */
  hint(field: string, schema: JsonSchema): Json | undefined
}

const words = [
  "Selamat pagi",
  "capital",
  "one two three",
  "x",
  "42",
  "caf\u00e9",
  "\u{1f600}",
  "a\nb",
]

const stringOf = (schema: JsonSchema, random: Random): string => {
  const least = Number(schema.minLength ?? 0)
  const most = Number(schema.maxLength ?? 200)
  const text = random.chance(0.05) ? "" : random.pick(words)
  return text.padEnd(least, "x").slice(0, Math.max(most, least))
}

const numberOf = (schema: JsonSchema, random: Random): number => {
  const min = Number(schema.minimum ?? schema.exclusiveMinimum ?? -1000)
  const max = Number(schema.maximum ?? schema.exclusiveMaximum ?? 1000)
  const low = Math.max(min, Math.min(-20, max))
  const high = Math.min(max, low + 40)
  if (schema.type === "integer") return random.int(Math.ceil(low), Math.floor(high))
  return Math.round((low + random.next() * (high - low)) * 1000) / 1000
}

const arrayOf = (maker: ValueMaker, schema: JsonSchema, field: string, depth: number): Json => {
  const first = ((schema.prefixItems ?? []) as readonly JsonSchema[]).map((one) =>
    makeValue(maker, one, field, depth + 1),
  )
  const least = Number(schema.minItems ?? 0)
  const most = Math.min(Number(schema.maxItems ?? 3), least + 2)
  const length = maker.random.int(least, Math.max(least, most))
  const rest = Array.from({ length: Math.max(0, length - first.length) }, () =>
    typeof schema.items === "object"
      ? makeValue(maker, schema.items as JsonSchema, field, depth + 1)
      : null,
  )
  return [...first, ...rest]
}

const objectOf = (maker: ValueMaker, schema: JsonSchema, depth: number): Json => {
  const { random } = maker
  const required = new Set((schema.required ?? []) as readonly string[])
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)
  const share = depth === 0 ? 0.15 : 0.3
  const kept = properties.filter(([name]) => required.has(name) || random.chance(share))
  const fields = kept.map(([name, one]) => [name, makeValue(maker, one, name, depth + 1)] as const)
  const more = schema.additionalProperties
  const free = typeof more === "object" ? random.int(0, 2) : 0
  const extra = Array.from({ length: free }, (_, i) => [
    String(i + 1),
    makeValue(maker, more as JsonSchema, "", depth + 1),
  ])
  return Object.fromEntries([...fields, ...extra])
}

const branchOf = (branches: readonly JsonSchema[], random: Random): JsonSchema => {
  const real = branches.filter(({ type }) => type !== "null")
  return real.length === 0 || (real.length < branches.length && random.chance(0.1))
    ? { type: "null" }
    : random.pick(real)
}

/** A value that the schema allows, more often of the common kind than of the odd. */
export const makeValue = (
  maker: ValueMaker,
  given: JsonSchema,
  field: string,
  depth: number,
): Json => {
  const { random } = maker
  const schema = maker.resolve(given)
  const hinted = maker.hint(field, schema)
  if (hinted !== undefined) return hinted
  const examples = schema.examples as readonly Json[] | undefined
  if (examples?.length && random.chance(0.3)) return random.pick(examples)
  if (schema.const !== undefined) return schema.const
  if (Array.isArray(schema.enum)) return random.pick(schema.enum as readonly Json[])
  const branches = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined
  if (branches) return makeValue(maker, branchOf(branches, random), field, depth)
  if (schema.allOf) {
    const all = (schema.allOf as readonly JsonSchema[]).map((one) => maker.resolve(one))
    return makeValue(maker, Object.assign({}, ...all) as JsonSchema, field, depth)
  }
  const type = Array.isArray(schema.type) ? random.pick(schema.type as string[]) : schema.type
  if (type === "string") return stringOf(schema, random)
  if (type === "integer" || type === "number") return numberOf({ ...schema, type }, random)
  if (type === "boolean") return random.chance(0.5)
  if (type === "array") return arrayOf(maker, schema, field, depth)
  if (type === "object" || schema.properties) return objectOf(maker, schema, depth)
  return type === "null" ? null : random.pick<Json>([{}, 1, "x", true])
}
