import type { SchemaDocument, SchemaLocation } from "../document.ts"
import { isCount, isObject, isTexts, type JsonObject } from "../json-value.ts"
import { handled } from "../known-keywords.ts"
import { allOf, type EnforcedSchema } from "../reading.ts"
import { judgeValue } from "../validator/accepts.ts"
import { dependencies } from "../validator/accepts-object.ts"
import { matchesPattern } from "../validator/check.ts"
import type { Known } from "./known.ts"
import type { Negating, Violated } from "./negation.ts"

const anObject: EnforcedSchema = { type: "object" }

const withProperty = (name: string, rule: EnforcedSchema): EnforcedSchema => ({
  type: "object",
  properties: { [name]: rule },
  required: [name],
})

const without = (name: string): EnforcedSchema => ({
  type: "object",
  properties: { [name]: false },
})

/** Objects in which a property is missing, or is not what it should be. */
export const violatedObject: Violated = (negating, place, known) => [
  ...namedProperties(negating, place, known),
  ...otherProperties(negating, place, known),
  ...counts(negating, place, known),
  ...names(negating, place, known),
  ...dependent(negating, place, known),
]

const namedProperties: Violated = (negating, place, known) => {
  const { properties, required } = place.schema as JsonObject
  const needed = new Set(isTexts(required) ? required : [])
  const declared = isObject(properties) ? Object.keys(properties) : []
  return [...new Set([...declared, ...needed])].flatMap((name) => {
    if (known.names && !known.names.has(name)) return needed.has(name) ? [anObject] : []
    const broken =
      declared.includes(name) &&
      negating.of(negating.document.at(place, "properties", name), known.property(name))
    // a property that may be missing stands for both: it is missing, or it is not what it should be
    if (needed.has(name)) return [{ type: "object", properties: { [name]: broken } }]
    return broken === false ? [] : [withProperty(name, broken)]
  })
}

/** Some property that is not declared breaks the rule for all such. */
const otherProperties: Violated = (negating, place, known) => {
  const { properties, patternProperties, additionalProperties, unevaluatedProperties } =
    place.schema as JsonObject
  const patterns = Object.keys(isObject(patternProperties) ? patternProperties : {})
  const isDeclared = (name: string) => isObject(properties) && Object.hasOwn(properties, name)
  const rest = (name: string) =>
    !isDeclared(name) && patterns.every((pattern) => matchesPattern(pattern, name) === false)
  const rules: readonly (readonly [SchemaLocation, (name: string) => boolean])[] = [
    ...patterns.map(
      (pattern) =>
        [
          negating.document.at(place, "patternProperties", pattern),
          (name: string) => matchesPattern(pattern, name) === true,
        ] as const,
    ),
    ...(additionalProperties === undefined
      ? []
      : [[negating.document.at(place, "additionalProperties"), rest] as const]),
  ]
  const isOpen = unevaluatedProperties !== undefined && additionalProperties === undefined
  return [
    ...rules.flatMap(([rule, applies]) => someProperty(negating, rule, applies, known)),
    ...(isOpen && unevaluatedProperties !== true ? [negating.loosely(anObject)] : []),
  ]
}

const someProperty = (
  negating: Negating,
  rule: SchemaLocation,
  applies: (name: string) => boolean,
  known: Known,
): readonly EnforcedSchema[] => {
  if (rule.schema === true) return []
  if (!known.names) return [negating.loosely(anObject)]
  return [...known.names].filter(applies).flatMap((name) => {
    const broken = negating.of(rule, known.property(name))
    return broken === false ? [] : [withProperty(name, broken)]
  })
}

const counts: Violated = (negating, place, known) => {
  const { minProperties, maxProperties } = place.schema as JsonObject
  const options: EnforcedSchema[] = []
  if (isCount(minProperties) && minProperties > 0)
    options.push(
      minProperties === 1
        ? { type: "object", additionalProperties: false }
        : negating.loosely(anObject),
    )
  if (maxProperties === 0 && known.names)
    options.push(...[...known.names].map((name) => withProperty(name, true)))
  else if (maxProperties !== undefined) options.push(negating.loosely(anObject))
  return options
}

const names: Violated = (negating, place, known) => {
  if (!isObject(place.schema) || place.schema.propertyNames === undefined) return []
  if (place.schema.propertyNames === true) return []
  if (!known.names) return [negating.loosely(anObject)]
  const rule = negating.document.at(place, "propertyNames")
  return [...known.names]
    .filter((name) => judgeValue(negating.document, rule, name) === false)
    .map((name) => withProperty(name, true))
}

const dependent: Violated = (negating, place, known) =>
  dependencies(negating.document, place, place.schema as JsonObject).flatMap(
    ({ name, needs, rule }) => {
      if (known.names && !known.names.has(name)) return []
      const present = withProperty(name, true)
      return needs
        ? needs.map((other) => (other === name ? false : allOf([present, without(other)])))
        : [allOf([present, negating.of(rule!, known)])]
    },
  )

/** A schema that says something of one property only. */
export interface Tag {
  readonly place: SchemaLocation
  readonly name: string
  readonly rule: SchemaLocation
  readonly isRequired: boolean
  readonly isTyped: boolean
  /** The same for tags that are negated together. */
  readonly key: string
}

export const tagOf = (document: SchemaDocument, place: SchemaLocation): Tag | undefined => {
  if (!isObject(place.schema)) return undefined
  const { type, properties, required } = place.schema
  const said = Object.keys(place.schema).filter((keyword) => handled.has(keyword))
  if (said.some((keyword) => !["type", "properties", "required"].includes(keyword)))
    return undefined
  const [name, ...others] = Object.keys(isObject(properties) ? properties : {})
  const isRequired = isTexts(required) && required.length === 1 && required[0] === name
  if (name === undefined || others.length > 0 || (required !== undefined && !isRequired))
    return undefined
  if (type !== undefined && type !== "object") return undefined
  const isTyped = type === "object"
  const rule = document.at(place, "properties", name)
  return {
    place,
    name,
    rule,
    isRequired,
    isTyped,
    key: JSON.stringify([name, isRequired, isTyped]),
  }
}
