import type { Json } from "../../../core/json.ts"
import type { Random } from "./random.ts"

const nested = (depth: number, open: string, close: string) =>
  open.repeat(depth) + close.repeat(depth)

const oddStrings: readonly string[] = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\udc00x",
  "\u202egnp.exe",
  "\u2066x\u2069",
  "\ufeff",
  "\u0085",
  "../../etc/passwd",
  "'; DROP TABLE files; --",
  "%00",
  "${jndi:x}",
  "{{7*7}}",
  "<script>alert(1)</script>",
  "e\u0301".repeat(500),
  "\u{1f469}\u200d\u{1f469}\u200d\u{1f467}".repeat(50),
  "x".repeat(300),
  "x".repeat(70_000),
  "null",
  "true",
  "0",
  "1e400",
  "9".repeat(40),
  "http://127.0.0.1:1/",
  "https://user:pw@example.com/",
  "https://[::ffff:127.0.0.1]/",
  "javascript:alert(1)",
  "data:image/png;base64,AA==",
  "2026-11-22T00:00:00Z",
]

const oddNumbers: readonly number[] = [
  0,
  -0,
  -1,
  1,
  0.1,
  -0.5,
  1e-7,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  -(2 ** 53),
  1e21,
  1e308,
  -1e308,
  5e-324,
]

const oddTrees: readonly (() => Json)[] = [
  () => null,
  () => [],
  () => ({}),
  () => [null],
  () => [[[[[[]]]]]],
  () => ({ "": "" }),
  () => ({ __proto__x: 1, constructor: { prototype: {} } }),
  () => JSON.parse('{"__proto__":{"admin":true}}'),
  () => JSON.parse(nested(100, "[", "]")),
  () => JSON.parse(`${'{"a":'.repeat(100)}1${"}".repeat(100)}`),
  () => Array.from({ length: 3_000 }, (_, i) => i),
  () => Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`k${i}`, i])),
  () => true,
  () => false,
]

export const oddString = (random: Random): string => random.pick(oddStrings)

export const oddValue = (random: Random): Json => {
  const kind = random.int(0, 2)
  if (kind === 0) return oddString(random)
  return kind === 1 ? random.pick(oddNumbers) : random.pick(oddTrees)()
}

type Place = readonly (string | number)[]

const placesIn = (value: Json, at: Place = []): readonly Place[] => {
  if (typeof value !== "object" || value === null) return [at]
  return [at, ...Object.entries(value).flatMap(([key, child]) => placesIn(child, [...at, key]))]
}

const changed = (
  value: Json,
  [key, ...rest]: Place,
  change: (old: Json) => Json | undefined,
): Json | undefined => {
  if (key === undefined || typeof value !== "object" || value === null) return change(value)
  const child = (value as Record<string, Json>)[key]
  const made = changed(child as Json, rest, change)
  if (Array.isArray(value))
    return value.flatMap((one, i) => (i === Number(key) ? (made ?? []) : [one]))
  const { [key]: _, ...others } = value as Record<string, Json>
  return made === undefined ? others : { ...others, [key]: made }
}

/** The value without one of its parts, for each part. */
export const smallerValues = (value: Json): readonly Json[] =>
  placesIn(value)
    .filter((place) => place.length > 0)
    .flatMap((place) => changed(value, place, () => undefined) ?? [])

/** One place of the value replaced, removed, doubled, or with a field more. */
export const mutated = (value: Json, random: Random): Json => {
  const places = placesIn(value)
  const place = random.pick(places)
  const kind = random.int(0, 4)
  const change = (old: Json): Json | undefined => {
    if (kind === 0) return undefined
    if (kind === 1) return { ...(old as object), [oddString(random)]: oddValue(random) } as Json
    if (kind === 2) return [old, old]
    return oddValue(random)
  }
  return changed(value, place, change) ?? null
}

/** Texts that are no JSON, or JSON that only some parsers take. */
export const oddJsonText = (text: string, random: Random): Buffer => {
  const texts: readonly (() => string | Buffer)[] = [
    () => "",
    () => text.slice(0, random.int(0, text.length)),
    () => `${text}${text}`,
    () => `\ufeff${text}`,
    () => Buffer.from(text, "utf16le"),
    () => Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xff, 0xfe, 0x22, 0x7d])]),
    () => text.replace(/:\s*"[^"]*"/, ":NaN"),
    () => text.replace(/:\s*"[^"]*"/, ":1e999"),
    () => text.replace(/:\s*"[^"]*"/, ':"\\ud800"'),
    () => text.replace(/:\s*"[^"]*"/, ':"\\u0000"'),
    () => text.replace(/^\{/, '{"model":1,"model":2,"name":null,'),
    () => text.replaceAll('"', "'"),
    () => text.replace(/\}$/, ",}"),
    () => nested(20_000, "[", "]"),
    () => `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`,
    () => "null",
    () => "[]",
    () => '"text"',
    () => `{"z":{${Array.from({ length: 20_000 }, (_, i) => `"${i}":0`).join(",")}}}`,
    () => Buffer.from(Array.from({ length: 200 }, () => random.int(0, 255))),
  ]
  return Buffer.from(random.pick(texts)() as string)
}
