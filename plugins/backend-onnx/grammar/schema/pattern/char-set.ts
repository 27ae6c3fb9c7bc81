/** Code points, as pairs of the first and last of a range; ascending, with gaps between. */
export type CharSet = readonly number[]

const highest = 0x10ffff
const surrogates: CharSet = [0xd800, 0xdfff]

export const anyChar: CharSet = [0, highest]

export const union = (sets: readonly CharSet[]): CharSet => {
  const ranges = sets.flatMap((set) =>
    Array.from({ length: set.length / 2 }, (_, i) => [set[2 * i]!, set[2 * i + 1]!] as const),
  )
  const merged: number[] = []
  for (const [first, last] of ranges.sort((a, b) => a[0] - b[0])) {
    if (merged.length > 0 && first <= merged.at(-1)! + 1)
      merged[merged.length - 1] = Math.max(merged.at(-1)!, last)
    else merged.push(first, last)
  }
  return merged
}

export const negated = (set: CharSet): CharSet => {
  const edges = [-1, ...set, highest + 1]
  const gaps: number[] = []
  for (let i = 0; i < edges.length; i += 2)
    if (edges[i]! + 1 < edges[i + 1]!) gaps.push(edges[i]! + 1, edges[i + 1]! - 1)
  return gaps
}

export const intersection = (a: CharSet, b: CharSet): CharSet =>
  negated(union([negated(a), negated(b)]))

export const contains = (set: CharSet, code: number): boolean =>
  set.findIndex((edge, i) => i % 2 === 0 && edge <= code && code <= set[i + 1]!) >= 0

/** Sets that share no character, such that each given set is a union of some of them. */
export const partition = (sets: readonly CharSet[]): readonly CharSet[] => {
  const starts = new Set([0])
  for (const set of sets)
    for (let i = 0; i < set.length; i += 2) {
      starts.add(set[i]!)
      if (set[i + 1]! < highest) starts.add(set[i + 1]! + 1)
    }
  const ordered = [...starts].sort((a, b) => a - b)
  const parts = new Map<string, number[]>()
  const next = sets.map(() => 0)
  for (const [i, first] of ordered.entries()) {
    const members = sets.map((set, n) => {
      while (next[n]! < set.length && set[next[n]! + 1]! < first) next[n]! += 2
      return next[n]! < set.length && set[next[n]!]! <= first ? 1 : 0
    })
    const key = members.join("")
    const last = (ordered[i + 1] ?? highest + 1) - 1
    const part = parts.get(key)
    if (part) part.push(first, last)
    else parts.set(key, [first, last])
  }
  return [...parts.values()].map((ranges) => union([ranges]))
}

const writeChar = (code: number): string =>
  /[0-9A-Za-z]/.test(String.fromCodePoint(code))
    ? String.fromCodePoint(code)
    : `\\x{${code.toString(16)}}`

const writeRanges = (set: CharSet): string => {
  // texts hold no halves of surrogate pairs, and the crate knows none
  const known = intersection(set, negated(surrogates))
  let text = ""
  for (let i = 0; i < known.length; i += 2) {
    const [first, last] = [known[i]!, known[i + 1]!]
    text += first === last ? writeChar(first) : `${writeChar(first)}-${writeChar(last)}`
  }
  return text
}

/** Writes the set for llguidance. */
export const writeSet = (set: CharSet): string => {
  if (set.length === 2 && set[0] === set[1]) return writeChar(set[0]!)
  const others = negated(set)
  if (others.length === 0) return "(?s:.)"
  const ranges = writeRanges(set)
  if (ranges === "") return `[^${writeChar(0)}-${writeChar(highest)}]`
  return others.length < set.length && writeRanges(others) !== ""
    ? `[^${writeRanges(others)}]`
    : `[${ranges}]`
}

// llguidance's own character classes differ from ECMAScript's, so these are written out
export const digits: CharSet = [0x30, 0x39]
export const wordChars: CharSet = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a]
export const spaces: CharSet = union([
  [0x9, 0xd],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  ...[0x20, 0xa0, 0x1680, 0x202f, 0x205f, 0x3000, 0xfeff].map((code) => [code, code]),
])
export const lineEnds: CharSet = [0xa, 0xa, 0xd, 0xd, 0x2028, 0x2029]

/** All characters but halves of pairs, in texts of units of one size. */
function* allChars(): Generator<readonly [first: number, chars: string]> {
  for (let first = 0; first <= highest; first += 0x800) {
    if (first === surrogates[0]) continue
    yield [first, String.fromCodePoint(...Array.from({ length: 0x800 }, (_, i) => first + i))]
  }
}

const properties = new Map<string, CharSet>()

/**
 * Returns `\p{..}` as ranges of this process's version of Unicode, not of the one that the crate
 * was built with; undefined: there is no such property.
 */
export const charsOfProperty = (property: string): CharSet | undefined => {
  const known = properties.get(property)
  if (known !== undefined) return known
  let runs: RegExp
  try {
    runs = new RegExp(`\\p${property}+`, "gu")
  } catch {
    return undefined
  }
  const ranges: number[] = []
  for (const [first, chars] of allChars())
    for (const { 0: run, index } of chars.matchAll(runs)) {
      const size = first > 0xffff ? 2 : 1
      const start = first + index / size
      ranges.push(start, start + run.length / size - 1)
    }
  if (properties.size >= 64) properties.delete(properties.keys().next().value!)
  const set = union([ranges])
  properties.set(property, set)
  return set
}
