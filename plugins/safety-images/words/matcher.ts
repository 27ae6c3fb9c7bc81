import type { Term } from "./lists.ts"
import { letterOf, type Token, tokensOf } from "./tokens.ts"
import { Vocabulary } from "./vocabulary.ts"

/** A list of terms, and how it is looked for. */
export interface List<Name extends string> {
  readonly name: Name
  readonly terms: readonly Term[]
  /** `names`: also with small mistakes, without spaces and the other way round. */
  readonly kind?: "names"
}

export interface Hit<Name extends string> {
  readonly list: Name
  readonly term: Term
  /** The tokens that it covers: from the first to before the last. */
  readonly from: number
  readonly to: number
  /** Written with signs or letter by letter, as nobody writes a harmless word. */
  readonly disguised: boolean
}

export interface Found<Name extends string> {
  readonly tokens: readonly Token[]
  readonly hits: readonly Hit<Name>[]
}

interface Entry<Name extends string> {
  readonly list: Name
  readonly term: Term
  readonly ids: readonly number[]
}

/** Short words of English and Indonesian: next to each other they are no word in pieces. */
const shortWords = new Set(
  "a ad ah ai al am an and as at be by de di do ed eh el en ex for go ha he hi ho if in is it ke ki ku la le lo ma me mi mu my nu no of oh ok on or pi re sa si so the to tv ui un up us va we ya yo".split(
    " ",
  ),
)

/** The most pieces that a word in pieces is put together from, and the letters of each. */
const mostPieces = 4
const longestPiece = 4
/** The letters of a word that is found when it is written backwards. */
const leastReversed = 4
/** The letters of the beginning of a word that is found backwards, as the end of another. */
const leastReversedBeginning = 7
/** The letters of a word, no name, that is found with a letter wrong. */
const leastMistaken = 8

const lettersOf = ({ text, forms }: Token): string => forms[1] ?? text

const isWordInPieces = (pieces: readonly Token[]): boolean => {
  if (pieces.slice(1).every(({ glued }) => glued)) return true
  // an article, or a pronoun
  if (pieces.some(({ text }) => text === "a" || text === "i")) return false
  if (pieces.length > 2 && pieces.some(({ text }) => text.length > longestPiece)) return false
  if (pieces.every(({ text }) => shortWords.has(text))) return false
  const length = pieces.reduce((sum, piece) => sum + lettersOf(piece).length, 0)
  if (length > 5) return true
  return length > 3 && pieces.some(({ text }) => text.length < 3 && !shortWords.has(text))
}

/** Finds the terms of lists in texts, whatever tricks of spelling hide them. */
export class Matcher<Name extends string> {
  private readonly vocabulary = new Vocabulary()
  private readonly byFirst = new Map<number, Entry<Name>[]>()
  /** Terms of one word, or names without their spaces, which may come in pieces. */
  private readonly single = new Map<number, readonly Entry<Name>[]>()

  constructor(lists: readonly List<Name>[]) {
    for (const list of lists) for (const term of list.terms) this.add(list, term)
  }

  private add({ name, kind }: List<Name>, term: Term): void {
    const ids = term.words.map(({ word, reach }) => this.vocabulary.add(word, reach))
    this.addEntry({ list: name, term, ids })
    if (ids.length === 1) {
      if (term.weight === 1 && kind !== "names") this.addDisguises(name, term, term.words[0]!)
      return
    }
    if (term.weight < 1) return
    const joined = term.words.map(({ word }) => word).join("")
    if (joined.length > 6)
      this.addEntry({ list: name, term, ids: [this.vocabulary.add(joined, "whole")] })
    if (kind !== "names") return
    this.addEntry({ list: name, term, ids: [...ids].reverse() })
    const turned = [...term.words]
      .reverse()
      .map(({ word }) => word)
      .join("")
    if (turned.length > 6)
      this.addEntry({ list: name, term, ids: [this.vocabulary.add(turned, "whole")] })
    const near = term.words.map(({ word }) => this.vocabulary.addNear(word))
    this.addEntry({ list: name, term, ids: near })
  }

  /** A word backwards, and a long one with a letter wrong. */
  private addDisguises(list: Name, term: Term, { word, reach }: Term["words"][number]): void {
    if (word.length >= leastMistaken)
      this.addEntry({ list, term, ids: [this.vocabulary.addNear(word)] })
    if (word.length < leastReversed) return
    const reversed = [...word].reverse().join("")
    const isLongBeginning = reach === "start" && word.length >= leastReversedBeginning
    const reversedReach = isLongBeginning ? "part" : "whole"
    this.addEntry({ list, term, ids: [this.vocabulary.add(reversed, reversedReach)] })
  }

  private addEntry(entry: Entry<Name>): void {
    const [first, ...rest] = entry.ids
    const others = this.byFirst.get(first!)
    if (others === undefined) this.byFirst.set(first!, [entry])
    else others.push(entry)
    if (rest.length === 0) this.single.set(first!, [...(this.single.get(first!) ?? []), entry])
  }

  /** All places of all terms; time in proportion to the length of the text. */
  find(text: string): Found<Name> {
    const tokens = tokensOf(text)
    const ids = tokens.map((token) => this.vocabulary.idsOf(token))
    return {
      tokens,
      hits: [...this.inRows(tokens, ids), ...this.inPieces(tokens), ...this.inLetters(tokens)],
    }
  }

  private inRows(
    tokens: readonly Token[],
    ids: readonly ReadonlySet<number>[],
  ): readonly Hit<Name>[] {
    const hits: Hit<Name>[] = []
    for (const [from, found] of ids.entries())
      for (const id of found)
        for (const { list, term, ids: row } of this.byFirst.get(id) ?? []) {
          const to = endOf(row, tokens, ids, from)
          if (to === undefined) continue
          hits.push({ list, term, from, to, disguised: isDisguised(tokens[from]!, term) })
        }
    return hits
  }

  /** Words in pieces: `nu de`, `te-lan-jang`. */
  private inPieces(tokens: readonly Token[]): readonly Hit<Name>[] {
    const hits: Hit<Name>[] = []
    for (const [from, first] of tokens.entries()) {
      let state = this.vocabulary.step(this.vocabulary.first, lettersOf(first))
      for (let to = from + 1; to < Math.min(from + mostPieces, tokens.length); to++) {
        state = this.vocabulary.step(state, lettersOf(tokens[to]!))
        if (state === -1) break
        const ids = this.vocabulary.at(state)
        if (ids.length === 0) continue
        const pieces = tokens.slice(from, to + 1)
        if (isWordInPieces(pieces)) hits.push(...this.singles(ids, 1, from, to + 1))
        // a word of less weight has it still with a hyphen: compounds have one, too
        if (pieces.slice(1).every(({ glued }) => glued))
          hits.push(
            ...this.singles(ids, leastSpelled, from, to + 1)
              .filter(({ term }) => term.weight < 1)
              .map((hit) => ({ ...hit, disguised: false })),
          )
      }
    }
    return hits
  }

  /** Letters one by one: `n u d e`, also with others before and behind them. */
  private inLetters(tokens: readonly Token[]): readonly Hit<Name>[] {
    const hits: Hit<Name>[] = []
    const letters = tokens.map(letterOf)
    for (let from = 0; from < letters.length; from++) {
      let state = this.vocabulary.first
      for (let to = from; to < letters.length; to++) {
        state = letters[to] === undefined ? -1 : this.vocabulary.step(state, letters[to]!)
        if (state === -1) break
        if (to - from > 1)
          hits.push(...this.singles(this.vocabulary.at(state), leastSpelled, from, to + 1))
      }
    }
    return hits.filter((_, at) => !isWithinLonger(hits, at))
  }

  private singles(
    ids: readonly number[],
    least: number,
    from: number,
    to: number,
  ): readonly Hit<Name>[] {
    return ids.flatMap((id) =>
      (this.single.get(id) ?? []).flatMap(({ list, term }) =>
        term.weight < least ? [] : [{ list, term, from, to, disguised: true }],
      ),
    )
  }
}

/** The weight of terms that are looked for letter by letter. */
const leastSpelled = 0.5

/** Whether a token needs its digits and signs read as letters to be the term. */
const isDisguised = ({ text, forms }: Token, { words }: Term): boolean =>
  words.length === 1 && forms.length > 1 && !text.includes(words[0]!.word)

/** So many hits before and behind one are looked at; they are in the order of their places. */
const neighbours = 8

/** Whether a longer hit has some of its letters: `a n.a.k.e.d` has no `anak`. */
const isWithinLonger = (hits: readonly Hit<string>[], at: number): boolean => {
  const { from, to } = hits[at]!
  return hits
    .slice(Math.max(0, at - neighbours), at + neighbours + 1)
    .some((other) => other.from < to && other.to > from && other.to - other.from > to - from)
}

/** Where a row of words ends that begins here, or undefined; an initial may stand between two. */
const endOf = (
  wanted: readonly number[],
  tokens: readonly Token[],
  ids: readonly ReadonlySet<number>[],
  from: number,
): number | undefined => {
  let at = from + 1
  for (const id of wanted.slice(1)) {
    if (!ids[at]?.has(id) && tokens[at]?.text.length === 1) at++
    if (!ids[at]?.has(id)) return undefined
    at++
  }
  return at
}
