import type { Constraints, Grammar } from "../../grammar/constraint.ts"
import { GrammarFailed } from "../../sampling/token-mask.ts"
import type { PacedConstraint } from "../constrained-decoding.ts"

/** A finite automaton over letters: states are numbers, 0 is the initial state. */
export interface Automaton {
  readonly moves: readonly (readonly [from: number, letter: string, to: number])[]
  readonly accepting: readonly number[]
}

/** The state after a text; undefined where no transition matches. */
export const walk = ({ moves }: Automaton, text: string, from = 0): number | undefined => {
  let state: number | undefined = from
  for (const letter of text) state = moves.find(([at, by]) => at === state && by === letter)?.[2]
  return state
}

const accepts = (automaton: Automaton, state: number | undefined): boolean =>
  state !== undefined && automaton.accepting.includes(state)

export const matches = (automaton: Automaton, text: string): boolean =>
  accepts(automaton, walk(automaton, text))

/** The shortest path to an accepting state, in tokens. */
const shortest = (
  automaton: Automaton,
  tokens: readonly string[],
  from: number,
  most: number,
): readonly number[] | undefined => {
  const ways = new Map<number, readonly number[]>([[from, []]])
  for (const [state, way] of ways) {
    if (accepts(automaton, state)) return way.length <= most ? way : undefined
    for (const [id, text] of tokens.entries()) {
      const to = text ? walk(automaton, text, state) : undefined
      if (to !== undefined && !ways.has(to)) ways.set(to, [...way, id])
    }
  }
  return undefined
}

/** The calls that a constraint received. */
export interface Watched {
  open: number
  opened: number
  /** Calls after its release. */
  misused: number
  readonly accepted: number[]
}

/**
 * Automata as constraints: a grammar's `lark` holds one as JSON. Throws where a caller breaks the
 * contract of `Constraint`.
 */
export class AutomatonConstraints implements Constraints {
  readonly watched: Watched = { open: 0, opened: 0, misused: 0, accepted: [] }
  private readonly tokens: readonly string[]
  private readonly endTokens: ReadonlySet<number>
  private readonly isReady: () => boolean

  constructor(
    tokens: readonly string[],
    endTokens: ReadonlySet<number>,
    isReady: () => boolean = () => true,
  ) {
    this.tokens = tokens
    this.endTokens = endTokens
    this.isReady = isReady
  }

  /** `failsAfter`: fails after this many accepted tokens. `guarded`: the letter that guards. */
  static grammar(automaton: Automaton, failsAfter?: number, guarded?: string): Grammar {
    return { kind: "lark", lark: JSON.stringify({ automaton, failsAfter, guarded }) }
  }

  open(grammar: Grammar): PacedConstraint {
    const {
      automaton,
      failsAfter = Number.POSITIVE_INFINITY,
      guarded,
    } = JSON.parse(grammar.kind === "lark" ? grammar.lark : "") as {
      readonly automaton: Automaton
      readonly failsAfter?: number
      readonly guarded?: string
    }
    const { tokens, endTokens, watched, isReady } = this
    let [state, isReleased]: [number, boolean] = [0, false]
    let found: readonly number[] | undefined
    const way: { readonly token: number; readonly before: number }[] = []
    watched.open++
    watched.opened++
    const check = () => {
      if (isReleased) {
        watched.misused++
        throw new Error("used after its release")
      }
      if (way.length >= failsAfter) throw new GrammarFailed("lost")
    }
    return {
      isReady,
      mask: () => {
        check()
        const mask = new Uint32Array(Math.ceil(tokens.length / 32))
        for (const [id, text] of tokens.entries())
          if (
            text
              ? walk(automaton, text, state) !== undefined
              : endTokens.has(id) && accepts(automaton, state)
          )
            mask[id >> 5]! |= 1 << (id & 31)
        return mask
      },
      accept: (token) => {
        check()
        const to = tokens[token] ? walk(automaton, tokens[token], state) : undefined
        if (to === undefined) throw new Error(`token ${token} is not allowed`)
        way.push({ token, before: state })
        state = to
        watched.accepted.push(token)
      },
      rollback: (count) => {
        check()
        if (count < 1 || count > way.length) throw new Error(`${count} tokens can't be taken back`)
        state = way.splice(-count)[0]!.before
      },
      guardedTokens: () => {
        check()
        if (guarded === undefined) return undefined
        const last = way.findLastIndex(({ token }) => tokens[token]!.includes(guarded))
        return way.length - 1 - last
      },
      isComplete: () => {
        check()
        return accepts(automaton, state)
      },
      seekClosing: (most) => {
        check()
        found = shortest(automaton, tokens, state, most)
      },
      closing: () => {
        check()
        return found
      },
      release: () => {
        if (isReleased) throw new Error("released twice")
        isReleased = true
        watched.open--
      },
    }
  }
}
