import { bytesOfToken, type GrammarVocabulary, isAllowed, sizeOf } from "../grammar-vocabulary.ts"
import type { AnswerState, GuardedAnswer } from "./answer-guard.ts"
import type { Frame } from "./json-tracker.ts"

/** The text of a token between two strings of a document, up to where one begins. */
const outsideText = /^[\s\d+\-.eEtrufalsn,:[\]{}]*(?:"|$)/
/** What can finish a value there: a delimiter, the last letter of a literal, a whole string. */
const finishing = /[,\]}\s]|[el]$|".*"/s
const pieces = /[^",\]}]*[",\]}]|[^",\]}]+$/g
const notSpace = /[^ \n\r\t]/
const closers = /[\]}]/g

/** Tokens that may finish a value, as ways through a tree of their pieces. */
interface Candidates {
  readonly ids: number[]
  readonly nodes: number[]
  /** The containers that the token may close, and one more where it may finish a name in another. */
  readonly closes: number[]
}

const noCandidates = (): Candidates => ({ ids: [], nodes: [], closes: [] })

/** The tokens of a vocabulary that can finish a value; only these are tried. */
export class GuardedTokens {
  private readonly vocabulary: GrammarVocabulary
  private readonly inText = noCandidates()
  private readonly outside = noCandidates()
  /** The tree: of each piece its text, and the piece before it (-1: none). */
  private readonly texts: string[] = []
  private readonly parents: number[] = []
  private readonly states: (AnswerState | undefined)[] = []
  /** The run in which the state of a piece was computed. */
  private readonly runs: number[] = []
  private run = 0
  /** Bytes of the longest token that closes a container. */
  private longestCloser = 0

  constructor(vocabulary: GrammarVocabulary) {
    this.vocabulary = vocabulary
    const known = new Map<string, number>()
    for (let id = 0; id < sizeOf(vocabulary); id++) {
      const text = this.textOf(id)
      const isOutside = outsideText.test(text) && finishing.test(text)
      if (!isOutside && !text.includes('"')) continue
      const node = this.enter(text, known)
      const closed = text.match(closers)?.length ?? 0
      const isNaming = text.indexOf('"') !== text.lastIndexOf('"')
      const closes = closed + (isNaming ? 1 : 0)
      if (closed > 0) this.longestCloser = Math.max(this.longestCloser, text.length)
      for (const [group, isIn] of [
        [this.inText, text.includes('"')],
        [this.outside, isOutside],
      ] as const)
        if (isIn) {
          group.ids.push(id)
          group.nodes.push(node)
          group.closes.push(closes)
        }
    }
  }

  /** The bytes of a token, as one character each. */
  textOf(token: number): string {
    const bytes = bytesOfToken(this.vocabulary, token)
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")
  }

  /** Takes the tokens out of the mask that finish what is not accepted. */
  narrow(mask: Uint32Array, answer: GuardedAnswer, from: AnswerState): void {
    answer.renew()
    if (!answer.mayEnd(from)) for (const token of this.vocabulary.endTokens) forbid(mask, token)
    const { inside } = from
    if (!inside) {
      if (!answer.beginsWithin(from, this.longestCloser)) return
      for (const group of [this.inText, this.outside])
        this.tryCandidates(mask, group, 1, answer, from)
      return
    }
    this.narrowInside(mask, answer, from, inside)
    const { mode } = inside.state
    if (mode !== "text" && mode !== "nameText" && this.isSpace(mask)) mask.fill(0)
  }

  private narrowInside(
    mask: Uint32Array,
    answer: GuardedAnswer,
    from: AnswerState,
    { state, document }: NonNullable<AnswerState["inside"]>,
  ): void {
    if (document.tracker.choicesAt(state)) {
      this.tryAll(mask, answer, from)
      return
    }
    const { mode, frame } = state
    const isText = mode === "text" || mode === "nameText"
    const isChecked = mode === "nameText" ? frame?.watch : document.tracker.watchOf(state)
    const needed = isChecked ? 0 : closersTo(frame)
    this.tryCandidates(mask, isText ? this.inText : this.outside, needed, answer, from)
  }

  /** Whether only spaces may follow: behind them nothing is allowed that is not before them. */
  private isSpace(mask: Uint32Array): boolean {
    for (let word = 0; word < mask.length; word++)
      for (let bits = mask[word]!; bits !== 0; bits &= bits - 1) {
        const id = word * 32 + (31 - Math.clz32(bits & -bits))
        if (id >= sizeOf(this.vocabulary)) break
        const text = this.textOf(id)
        if (text === "" || notSpace.test(text)) return false
      }
    return true
  }

  private tryCandidates(
    mask: Uint32Array,
    { ids, nodes, closes }: Candidates,
    needed: number,
    answer: GuardedAnswer,
    from: AnswerState,
  ): void {
    this.run++
    for (let i = 0; i < ids.length; i++) {
      if (!isAllowed(mask, ids[i]!) || closes[i]! < needed) continue
      if (!this.stateAt(nodes[i]!, answer, from)) forbid(mask, ids[i]!)
    }
  }

  /** For masks with few tokens. */
  private tryAll(mask: Uint32Array, answer: GuardedAnswer, from: AnswerState): void {
    for (let word = 0; word < mask.length; word++)
      for (let bits = mask[word]!; bits !== 0; bits &= bits - 1) {
        const id = word * 32 + (31 - Math.clz32(bits & -bits))
        const text = id < sizeOf(this.vocabulary) ? this.textOf(id) : ""
        if (text !== "" && !answer.advance(from, text)) forbid(mask, id)
      }
  }

  private stateAt(node: number, answer: GuardedAnswer, from: AnswerState): AnswerState | undefined {
    if (this.runs[node] === this.run) return this.states[node]
    const parent = this.parents[node]!
    const before = parent < 0 ? from : this.stateAt(parent, answer, from)
    const state = before && answer.advance(before, this.texts[node]!)
    this.runs[node] = this.run
    this.states[node] = state
    return state
  }

  /** Returns the last piece of a text. */
  private enter(text: string, known: Map<string, number>): number {
    let node = -1
    for (const piece of text.match(pieces) ?? []) {
      const key = `${node} ${piece}`
      let next = known.get(key)
      if (next === undefined) {
        next = this.texts.push(piece) - 1
        this.parents.push(node)
        this.runs.push(0)
        this.states.push(undefined)
        known.set(key, next)
      }
      node = next
    }
    return node
  }
}

const forbid = (mask: Uint32Array, token: number): void => {
  mask[token >> 5]! &= ~(1 << (token & 31))
}

/**
 * The number of containers to be closed until something is checked; a name in the last of them is,
 * too.
 */
const closersTo = (frame: Frame | undefined): number => {
  let count = 0
  for (let open = frame; open; open = open.parent) {
    if (open.watch?.checksParts) return count
    count++
    if (open.watch) return count
  }
  return count
}
