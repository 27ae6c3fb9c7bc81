import type { Token } from "./tokens.ts"
import { Trie } from "./trie.ts"

/** How a term of a list is written: `porn` a word, `porn*` its beginning, `*porn*` a part of it. */
export type Reach = "whole" | "start" | "part"

/** What ends at a node of the trie. */
interface Ending {
  readonly whole: number[]
  readonly start: number[]
  readonly part: number[]
}

/** Endings that a listed word may have: plurals, and the possessive of Indonesian. */
const endings = new Set(["", "s", "z", "nya"])
const longestEnding = 3
const mark = 63 // the code of `?`

/** The letters of a word without repeats, and how often each is there. */
const runsOf = (word: string): readonly [letters: string, runs: readonly number[]] => {
  let letters = ""
  const runs: number[] = []
  for (const letter of word) {
    if (letters.endsWith(letter)) runs[runs.length - 1]!++
    else {
      letters += letter
      runs.push(1)
    }
  }
  return [letters, runs]
}

const hasRepeats = /(.)\1/
const hasLookalike = /[il]/
/** One letter for two that look alike, and that a 1 or a | may be. */
const oneForm = (word: string): string => word.replaceAll("l", "i")

/** The letters at the beginning of a name that have no mistakes: few words begin so. */
const sureLetters = 3

/** A word, and the same without one of its later letters. */
const nearKeys = (word: string): readonly string[] => {
  const keys = [word]
  for (let at = sureLetters; at < word.length; at++)
    keys.push(word.slice(0, at) + word.slice(at + 1))
  return keys
}

// names of fewer letters are too near to other words
const leastOfName = 5
const mostOfName = 16

const addTo = <A>(map: Map<string, A[]>, key: string, value: A): void => {
  const values = map.get(key)
  if (values === undefined) map.set(key, [value])
  else values.push(value)
}

/**
 * The words of all lists, by number, each found by the spellings that stand for it. A look-up takes
 * time in proportion to the length of what is looked up.
 */
export class Vocabulary {
  private readonly ids = new Map<string, number>()
  private readonly trie = new Trie()
  private readonly ends = new Map<number, Ending>()
  private readonly folded = new Map<string, number[]>()
  private readonly squeezed = new Map<string, { id: number; runs: readonly number[] }[]>()
  private readonly near = new Map<string, number[]>()
  private readonly nearBeginnings = new Set<string>()

  /** The number of a word, which is the same each time. */
  add(word: string, reach: Reach): number {
    const key = `${reach} ${word}`
    const known = this.ids.get(key)
    if (known !== undefined) return known
    const id = this.ids.size
    this.ids.set(key, id)
    const node = this.trie.add(word)
    const end = this.ends.get(node) ?? { whole: [], start: [], part: [] }
    this.ends.set(node, end)
    end[reach].push(id)
    if (hasLookalike.test(word)) addTo(this.folded, oneForm(word), id)
    const [letters, runs] = runsOf(word)
    addTo(this.squeezed, letters, { id, runs })
    return id
  }

  /**
   * The number of a word that is also found with a later letter missing, added, or another; the
   * plain one where it is too short for that.
   */
  addNear(word: string): number {
    if (word.length < leastOfName) return this.add(word, "whole")
    const key = `near ${word}`
    const known = this.ids.get(key)
    if (known !== undefined) return known
    const id = this.ids.size
    this.ids.set(key, id)
    this.nearBeginnings.add(word.slice(0, sureLetters))
    for (const form of nearKeys(word)) addTo(this.near, form, id)
    return id
  }

  /** Numbers of the words that a token may stand for. */
  idsOf({ forms, masked }: Token): ReadonlySet<number> {
    const found = new Set<number>()
    for (const form of forms) this.collect(form, found)
    if (masked !== undefined) this.collectMasked(masked, 0, 0, found)
    return found
  }

  private collect(form: string, found: Set<number>): void {
    for (let from = 0; from < form.length; from++) this.walk(form, from, found)
    if (hasLookalike.test(form))
      for (const id of this.folded.get(oneForm(form)) ?? []) found.add(id)
    if (hasRepeats.test(form)) this.collectRepeated(form, found)
    if (form.length >= leastOfName - 1 && form.length <= mostOfName) this.collectNear(form, found)
  }

  private collectNear(form: string, found: Set<number>): void {
    if (!this.nearBeginnings.has(form.slice(0, sureLetters))) return
    for (const key of nearKeys(form)) for (const id of this.near.get(key) ?? []) found.add(id)
  }

  private collectRepeated(form: string, found: Set<number>): void {
    const [letters, runs] = runsOf(form)
    for (const ending of endings) {
      if (!letters.endsWith(ending)) continue
      const stem = letters.slice(0, letters.length - ending.length)
      for (const { id, runs: least } of this.squeezed.get(stem) ?? [])
        if (least.every((count, at) => runs[at]! >= count)) found.add(id)
    }
  }

  private walk(form: string, from: number, found: Set<number>): void {
    let node = 0
    for (let at = from; at < form.length; at++) {
      node = this.trie.step(node, form.charCodeAt(at))
      if (node === -1) return
      const end = this.ends.get(node)
      if (end === undefined) continue
      for (const id of end.part) found.add(id)
      if (from > 0) continue
      for (const id of end.start) found.add(id)
      if (form.length - at <= longestEnding + 1 && endings.has(form.slice(at + 1)))
        for (const id of end.whole) found.add(id)
    }
  }

  private collectMasked(form: string, at: number, node: number, found: Set<number>): void {
    if (at === form.length) {
      const { whole = [], start = [], part = [] } = this.ends.get(node) ?? {}
      for (const id of [...whole, ...start, ...part]) found.add(id)
      return
    }
    const code = form.charCodeAt(at)
    const next = code === mark ? this.trie.children(node) : [this.trie.step(node, code)]
    for (const child of next) if (child !== -1) this.collectMasked(form, at + 1, child, found)
  }

  /**
   * Reads a word letter by letter: `step` returns the state behind a letter (-1: no word begins
   * so), `at` the numbers of the words that end there.
   */
  readonly first = 0
  step(state: number, letters: string): number {
    let node = state
    for (let at = 0; at < letters.length && node !== -1; at++)
      node = this.trie.step(node, letters.charCodeAt(at))
    return node
  }
  at(state: number): readonly number[] {
    const { whole = [], start = [], part = [] } = this.ends.get(state) ?? {}
    return [...whole, ...start, ...part]
  }
}
