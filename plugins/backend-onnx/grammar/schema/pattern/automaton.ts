import { type CharSet, partition, union } from "./char-set.ts"
import type { Languages, Term } from "./language.ts"
import { refuse } from "./parser.ts"

const mostStates = 400

interface Automaton {
  /** For each state, the next one after each part of the alphabet; -1: no text goes on. */
  readonly moves: readonly (readonly number[])[]
  readonly isEnd: readonly boolean[]
  readonly alphabet: readonly CharSet[]
}

const setsIn = (languages: Languages, term: Term): readonly CharSet[] => {
  const seen = new Set([term])
  const sets: CharSet[] = []
  // a Set is walked in the order of insertion, what is added meanwhile too
  for (const one of seen) {
    const shape = languages.shape(one)
    if (shape.kind === "set") sets.push(shape.set)
    for (const part of languages.inside(one)) seen.add(part)
  }
  return sets
}

/** The automaton whose states are the derivatives. */
const automatonOf = (languages: Languages, term: Term): Automaton => {
  const alphabet = partition(setsIn(languages, term))
  const states = [term]
  const numbers = new Map([[term, 0]])
  const moves: number[][] = []
  for (const state of states)
    moves.push(
      alphabet.map((part) => {
        const next = languages.derivative(state, part[0]!)
        if (next === languages.never) return -1
        const known = numbers.get(next)
        if (known !== undefined) return known
        if (states.length >= mostStates) refuse("it is too complex to be written out")
        numbers.set(next, states.length)
        return states.push(next) - 1
      }),
    )
  return { moves, isEnd: states.map((state) => languages.isNullable(state)), alphabet }
}

/** Merges states with the same futures, and drops those without a way to an end. */
const minimal = ({ moves, isEnd, alphabet }: Automaton): Automaton => {
  const living = new Set([...isEnd.keys()].filter((state) => isEnd[state]!))
  for (let before = -1; before !== living.size; ) {
    before = living.size
    for (const [state, next] of moves.entries())
      if (next.some((one) => living.has(one))) living.add(state)
  }
  let groups: readonly number[] = isEnd.map((is, state) => (living.has(state) ? Number(is) : -1))
  for (let count = 0; ; ) {
    const keys = new Map<string, number>()
    const finer = groups.map((group, state) => {
      if (group < 0) return -1
      const key = `${group}:${moves[state]!.map((next) => (next < 0 ? -1 : groups[next]))}`
      if (!keys.has(key)) keys.set(key, keys.size)
      return keys.get(key)!
    })
    if (keys.size === count) {
      const first = Array.from({ length: count }, (_, group) => finer.indexOf(group))
      return {
        alphabet,
        isEnd: first.map((state) => isEnd[state]!),
        moves: first.map((state) => moves[state]!.map((next) => (next < 0 ? -1 : finer[next]!))),
      }
    }
    count = keys.size
    groups = finer
  }
}

/**
 * Writes a language without intersections and complements, by taking the states out of its
 * automaton one by one.
 */
export const plainOf = (languages: Languages, term: Term): Term => {
  const { moves, isEnd, alphabet } = minimal(automatonOf(languages, term))
  if (moves.length === 0) return languages.never
  const [end, begin] = [moves.length, moves.length + 1]
  const ways = new Ways(languages)
  ways.join(begin, 0, languages.empty)
  for (const [state, next] of moves.entries()) {
    for (const to of new Set(next.filter((one) => one >= 0)))
      ways.join(state, to, languages.set(union(alphabet.filter((_, part) => next[part] === to))))
    if (isEnd[state]) ways.join(state, end, languages.empty)
  }
  const left = new Set(moves.keys())
  while (left.size > 0) {
    const state = [...left].reduce((best, one) => (ways.cost(one) < ways.cost(best) ? one : best))
    left.delete(state)
    ways.without(state)
  }
  return ways.between(begin, end)
}

/** The ways from state to state, as languages. */
class Ways {
  private readonly languages: Languages
  private readonly out = new Map<number, Map<number, Term>>()
  private readonly into = new Map<number, Set<number>>()

  constructor(languages: Languages) {
    this.languages = languages
  }

  between(from: number, to: number): Term {
    return this.out.get(from)?.get(to) ?? this.languages.never
  }

  join(from: number, to: number, way: Term): void {
    const out = this.out.get(from) ?? new Map<number, Term>()
    out.set(to, this.languages.or([this.between(from, to), way]))
    this.out.set(from, out)
    this.into.set(to, (this.into.get(to) ?? new Set()).add(from))
  }

  /** How many ways there will be instead of a state. */
  cost(state: number): number {
    return (this.into.get(state)?.size ?? 0) * (this.out.get(state)?.size ?? 0)
  }

  without(state: number): void {
    const { languages } = this
    const again = languages.repeat(this.between(state, state), 0, Number.POSITIVE_INFINITY)
    const out = [...(this.out.get(state) ?? [])].filter(([to]) => to !== state)
    const into = [...(this.into.get(state) ?? [])].filter((from) => from !== state)
    for (const [to] of out) this.into.get(to)!.delete(state)
    this.out.delete(state)
    for (const from of into) {
      const first = this.between(from, state)
      this.out.get(from)!.delete(state)
      for (const [to, way] of out)
        this.join(from, to, languages.concat(first, languages.concat(again, way)))
    }
  }
}
