import type { Json } from "../../core/json.ts"

type Random = () => number

const pick = <A>(from: readonly A[], random: Random): A => from[Math.floor(random() * from.length)]!

const ofText = (text: string): readonly Json[] => [
  ...["", `${text}a`, text.slice(1), text.toUpperCase(), `${text} `, "2024-02-29", "a", 1, null],
]
const ofNumber = (number: number): readonly Json[] => [
  ...[
    number + 1,
    number - 1,
    -number,
    0,
    1,
    Math.round(number),
    number + 0.5,
    String(number),
    null,
  ],
]

const replaced = (value: Json, random: Random): Json => {
  if (typeof value === "string") return pick(ofText(value), random)
  if (typeof value === "number") return pick(ofNumber(value), random)
  if (typeof value === "boolean") return pick<Json>([!value, null, "true"], random)
  return pick<Json>([true, 0, "", [], {}], random)
}

const alteredList = (list: readonly Json[], random: Random): Json => {
  const at = Math.floor(random() * (list.length + 1))
  const way = random()
  if (way < 0.2) return list.filter((_, i) => i !== at)
  if (way < 0.4 && list.length > 0) return [...list, pick(list, random)]
  if (way < 0.5) return pick<Json>([null, {}, "", []], random)
  return list.map((item, i) => (i === at ? altered(item, random) : item))
}

const alteredObject = (object: Readonly<Record<string, Json>>, random: Random): Json => {
  const parts = Object.entries(object)
  const at = Math.floor(random() * (parts.length + 1))
  const way = random()
  if (way < 0.2) return Object.fromEntries(parts.filter((_, i) => i !== at))
  if (way < 0.3) return { ...object, more: pick<Json>([1, "x", null, {}], random) }
  if (way < 0.4) return pick<Json>([null, [], "", {}], random)
  return Object.fromEntries(
    parts.map(([name, part], i) => [name, i === at ? altered(part, random) : part]),
  )
}

/** Changes a document somewhere by chance, so that it may or may not be valid. */
export const altered = (value: Json, random: Random): Json => {
  if (Array.isArray(value)) return alteredList(value, random)
  return typeof value === "object" && value !== null
    ? alteredObject(value as Readonly<Record<string, Json>>, random)
    : replaced(value, random)
}
