import { seededRandom } from "../../sampling/random.ts"
import { type Automaton, AutomatonConstraints } from "./automaton.ts"
import { openFakeModel } from "./fake-model.ts"

// two end tokens, a control token, all letters, and longer tokens that cross every boundary
export const [endOfTurn, endOfText] = [0, 1]
export const letters = ["a", "b", "c", "<", ">", '"']
const tokens = [
  "",
  "",
  "",
  ...letters,
  "ab",
  "ba",
  "b>",
  "<a",
  "abc",
  'c"',
  ">c",
  "a>b",
  "<a>",
  '""',
]
export const endTokens = [endOfTurn, endOfText]
// the table of logits is longer than the vocabulary
export const vocabulary = 70

/** A model with random logits, raised for some tokens. */
export const openLetters = (
  more: {
    readonly speculation?: boolean
    readonly spread?: number
    readonly like?: Readonly<Record<number, number>>
    readonly isReady?: () => boolean
    readonly onStep?: () => void
  } = {},
) => {
  const { spread = 6, like = {}, isReady, onStep, ...rest } = more
  const constraints = new AutomatonConstraints(tokens, new Set(endTokens), isReady)
  const logits = (token: number, at: number) => {
    onStep?.()
    const random = seededRandom(token * 1_000 + at)
    const values = Array.from({ length: vocabulary }, () => (random() - 0.5) * spread)
    for (const [id, more] of Object.entries(like)) values[Number(id)]! += more
    return values
  }
  return {
    ...openFakeModel({ tokens, endTokens, constraints, logits, ...rest }),
    watched: constraints.watched,
  }
}

/** "a", any number of times "ba", and then `"`. */
export const abas: Automaton = {
  moves: [
    [0, "a", 1],
    [1, "b", 0],
    [1, '"', 2],
  ],
  accepting: [2],
}
const grammar = AutomatonConstraints.grammar(abas)
export const abasRule = { grammar, closeOnLength: false }
/** Any letters. */
export const anything: Automaton = {
  moves: letters.map((letter) => [0, letter, 0] as const),
  accepting: [0],
}
