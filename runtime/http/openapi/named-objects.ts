import type { Json } from "../../../core/json.ts"

type Node = Readonly<Record<string, Json>>

const isNode = (value: Json): value is Node =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** `tool_choice` -> `ToolChoice`, `chat.completions` -> `ChatCompletions` */
export const pascal = (text: string): string =>
  text.replace(/(^|[^A-Za-z0-9]+)([A-Za-z0-9]?)/g, (_, __, letter: string) => letter.toUpperCase())

const singular = (name: string): string =>
  /ies$/.test(name) ? name.replace(/ies$/, "y") : name.replace(/(?<=[^s])s$/, "")

const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const nameIn = ($ref: Json) => String($ref).slice("#/components/schemas/".length)

/** Generators make a literal of `const`, of `enum` a class with one value. */
const withConst = ({ enum: values, ...node }: Node): Node => {
  if (!Array.isArray(values)) return node
  return values.length === 1 ? { ...node, const: values[0] } : { ...node, enum: values }
}

/** The only value that a property may have. */
const literalOf = (property: Json): string | undefined => {
  const value = isNode(property) ? withConst(property).const : undefined
  return typeof value === "string" ? value : undefined
}

const literalsOf = ({ properties }: Node): ReadonlyMap<string, string> => {
  const required = Object.entries((properties ?? {}) as Node)
  return new Map(
    required.flatMap(([key, property]) => {
      const literal = literalOf(property)
      return literal === undefined ? [] : [[key, literal] as const]
    }),
  )
}

const isNull = (node: Json): boolean =>
  isNode(node) && (node.type === "null" || (Array.isArray(node.anyOf) && node.anyOf.every(isNull)))

/**
 * Further fields are always allowed, which is what an absent keyword means. Generators read it
 * otherwise: beside fields `true` makes them write an index signature, and without fields its
 * absence an object that is empty.
 */
const withExtras = ({ additionalProperties, ...node }: Node): Node => {
  if (node.type !== "object") return node
  if (additionalProperties !== undefined && additionalProperties !== true)
    return { ...node, additionalProperties }
  return node.properties ? node : { ...node, additionalProperties: true }
}

/**
 * Generators make a property with a default required, as it is in replies; in a request it may be
 * left out, so the default is said in words.
 */
const withSpokenDefault = ({ default: value, ...node }: Node): Node => {
  if (value === undefined || value === "") return node
  const words = `Default: ${JSON.stringify(value)}.`
  return { ...node, description: node.description ? `${node.description} ${words}` : words }
}

/** A field that may only be left out, as its other values are refused, is no field for clients. */
const isSayable =
  (required: Json = []) =>
  ([key, property]: readonly [string, Json]): boolean =>
    !isNull(property) || (required as readonly string[]).includes(key)

/**
 * Arrays of different items become one of any of them: generators can't tell arrays apart. This
 * allows a mixture that the server refuses.
 */
const withOneArray = (anyOf: readonly Json[]): readonly Json[] => {
  const arrays = anyOf.filter((node) => isNode(node) && node.type === "array") as readonly Node[]
  if (arrays.length < 2) return anyOf
  const items = arrays.flatMap(({ items: one = {} }) =>
    isNode(one) && Array.isArray(one.anyOf) ? (one.anyOf as readonly Json[]) : [one],
  )
  const different = new Map(items.map((item) => [JSON.stringify(item), item]))
  const merged = { type: "array", items: { anyOf: [...different.values()] } }
  return anyOf.flatMap((node) => {
    if (node === arrays[0]) return [merged]
    return arrays.includes(node as Node) ? [] : [node]
  })
}

/** With a `discriminator`, if one property tells all members apart. `members` are as they are. */
const unionOf = (node: Node, anyOf: readonly Json[], members: readonly Node[]): Node => {
  const literals = members.map(literalsOf)
  const property = [...(literals[0]?.keys() ?? [])].find(
    (key) => new Set(literals.map((all) => all.get(key) ?? "")).size === members.length,
  )
  if (property === undefined || literals.some((all) => !all.has(property)))
    return { ...node, anyOf }
  const { anyOf: _, ...rest } = node
  const mapping = literals.map((all, i) => [all.get(property), (anyOf[i] as Node).$ref])
  return {
    ...rest,
    oneOf: anyOf,
    discriminator: { propertyName: property, mapping: Object.fromEntries(mapping) },
  }
}

/** Components by name. Another one with a taken name gets a number. */
const makeComponents = (reserved: ReadonlySet<string>) => {
  const byName = new Map<string, Json>()
  return {
    byName,
    resolve: (node: Json): Node => {
      const found = isNode(node) && node.$ref !== undefined ? byName.get(nameIn(node.$ref)) : node
      return isNode(found) ? found : {}
    },
    place: (name: string, node: Node): Json => {
      const text = JSON.stringify(node)
      for (let n = 1; ; n++) {
        const free = n === 1 ? name : `${name}${n}`
        const there = byName.get(free)
        if (there !== undefined ? JSON.stringify(there) !== text : reserved.has(free)) continue
        byName.set(free, node)
        return refTo(free)
      }
    },
  }
}

/**
 * Gives every object inside of a schema a name and a component of its own, made of where it stands:
 * `ChatCompletionChoice`. Generators make classes of components; objects inside of others they drop
 * or name by number.
 */
export const makeNaming = (definitions: Readonly<Record<string, Json>>) => {
  const components = makeComponents(new Set(Object.keys(definitions)))

  const members = (nodes: readonly Json[], name: string): readonly Json[] => {
    const isOnly = nodes.filter((node) => !isNull(node)).length === 1
    return nodes.map((node) => {
      if (!isNode(node)) return node
      const literal = isOnly ? undefined : [...literalsOf(node).values()][0]
      return inner(node, literal === undefined ? name : name + pascal(literal))
    })
  }

  const fields = ({ properties, required }: Node, name: string): Node =>
    Object.fromEntries(
      Object.entries(properties as Node)
        .filter(isSayable(required))
        .map(([key, property]) => [
          key,
          isNode(property) ? inner(withSpokenDefault(property), name + pascal(key)) : property,
        ]),
    )

  /** The node itself stays where it is; what is inside of it gets names. */
  const outer = (node: Node, name: string): Node => {
    const { properties, items, additionalProperties: more, anyOf } = node
    const named = withExtras({
      ...withConst(node),
      ...(isNode(properties) && { properties: fields(node, name) }),
      ...(isNode(items) && { items: inner(items, singular(name)) }),
      ...(isNode(more) && { additionalProperties: inner(more, `${name}Value`) }),
    })
    if (!Array.isArray(anyOf)) return named
    const all = members(withOneArray(anyOf), name)
    return unionOf(named, all, all.map(components.resolve))
  }

  const inner = (node: Node, name: string): Json => {
    const named = outer(node, name)
    return isNode(named.properties) ? components.place(name, named) : named
  }

  for (const [name, definition] of Object.entries(definitions))
    if (isNode(definition)) components.byName.set(name, outer(definition, name))
  return {
    /** The content of `#/components/schemas`, with what `name` adds. */
    components: (): Readonly<Record<string, Json>> => Object.fromEntries(components.byName),
    name: (schema: Json, name: string): Json => (isNode(schema) ? inner(schema, name) : schema),
  }
}
