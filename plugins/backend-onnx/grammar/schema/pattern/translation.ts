import { anyChar, type CharSet, contains, partition, wordChars } from "./char-set.ts"
import type { Languages, Term } from "./language.ts"
import { type PatternNode, refuse, singleChar } from "./parser.ts"

/**
 * What stands before a place: nothing, or a character, by the sets of characters that boundaries
 * and lookbehinds ask for (a bit each).
 */
type Before = number
const nothing: Before = -1

type Rest = (before: Before) => Term

const endless = Number.POSITIVE_INFINITY
/** The most copies of a repeated part that has assertions in it. */
const mostCopies = 40

const memoized = (rest: Rest): Rest => {
  const known = new Map<Before, Term>()
  return (before) => {
    const found = known.get(before) ?? rest(before)
    known.set(before, found)
    return found
  }
}

const inside = (node: PatternNode): readonly PatternNode[] =>
  "parts" in node ? node.parts : "of" in node ? [node.of] : []

const isAssertion = (node: PatternNode): boolean =>
  ["start", "end", "boundary", "ahead", "behind"].includes(node.kind) ||
  inside(node).some(isAssertion)

/** Puts parts without assertions together. */
const grouped = (parts: readonly PatternNode[]): readonly PatternNode[] => {
  const groups: PatternNode[] = []
  for (let i = 0; i < parts.length; i++) {
    const first = i
    while (i < parts.length && !isAssertion(parts[i]!)) i++
    if (i - first > 1 && i - first < parts.length)
      groups.push({ kind: "concat", parts: parts.slice(first, i) })
    else groups.push(...parts.slice(first, i))
    if (i < parts.length) groups.push(parts[i]!)
  }
  return groups
}

const canBeEmpty = (node: PatternNode): boolean => {
  if (node.kind === "set") return false
  if (node.kind === "or") return node.parts.some(canBeEmpty)
  if (node.kind === "concat") return node.parts.every(canBeEmpty)
  return node.kind !== "repeat" || node.least === 0 || canBeEmpty(node.of)
}

/** Returns the sets of characters that assertions ask for about the character before them. */
const askedFor = (node: PatternNode): readonly CharSet[] => {
  if (node.kind === "boundary") return [wordChars]
  if (node.kind === "behind")
    return [singleChar(node.of) ?? refuse("a lookbehind of more than one character")]
  return inside(node).flatMap(askedFor)
}

/** Returns the texts that hold a match of a pattern, as a search finds it. */
export const searchOf = (languages: Languages, node: PatternNode): Term => {
  const alternatives = node.kind === "or" ? node.parts : [node]
  const translation = new Translation(languages, node)
  return languages.or(alternatives.map((one) => translation.search(one)))
}

class Translation {
  private readonly languages: Languages
  private readonly asked: readonly CharSet[]
  /** Characters that assertions don't tell apart, with what they are before a place. */
  private readonly atoms: readonly { readonly set: CharSet; readonly before: Before }[]
  private readonly every: readonly Before[]

  constructor(languages: Languages, node: PatternNode) {
    this.languages = languages
    this.asked = [...new Map(askedFor(node).map((set) => [set.join(), set])).values()]
    this.atoms = partition([anyChar, ...this.asked]).map((set) => ({
      set,
      before: this.asked.reduce((bits, one, i) => bits | (contains(one, set[0]!) ? 1 << i : 0), 0),
    }))
    this.every = [nothing, ...new Set(this.atoms.map(({ before }) => before))]
  }

  search(node: PatternNode): Term {
    const { languages } = this
    const from = memoized((before) => this.follow(node, before, () => languages.anything))
    if (this.isSame(from)) return languages.concat(languages.anything, from(nothing))
    return languages.or([
      from(nothing),
      ...this.atoms.map(({ set, before }) =>
        languages.concat(languages.anything, languages.concat(languages.set(set), from(before))),
      ),
    ])
  }

  private isSame(rest: Rest): boolean {
    return this.every.every((before) => rest(before) === rest(nothing))
  }

  /** The texts that begin with the node and go on with the rest. */
  private follow(node: PatternNode, before: Before, rest: Rest): Term {
    const { languages } = this
    const isPlain = node.kind === "or" || node.kind === "concat"
    if (isPlain && !isAssertion(node) && this.isSame(rest))
      return languages.concat(this.plain(node), rest(before))
    switch (node.kind) {
      case "set":
        return languages.or(
          this.parts(node.set).map(([set, next]) =>
            languages.concat(languages.set(set), rest(next)),
          ),
        )
      case "or":
        return languages.or(node.parts.map((part) => this.follow(part, before, rest)))
      case "concat":
        return grouped(node.parts).reduceRight<Rest>(
          (next, part) => memoized((at) => this.follow(part, at, next)),
          rest,
        )(before)
      case "repeat":
        return isAssertion(node.of)
          ? this.followCopies(node, before, rest)
          : this.followRepeated(node, before, rest)
      case "start":
        return before === nothing ? rest(before) : languages.never
      case "end":
        return languages.and([languages.empty, rest(before)])
      case "reference":
        return refuse("a reference to a group")
      default:
        return this.followAssertion(node, before, rest)
    }
  }

  private followAssertion(
    node: PatternNode & { readonly kind: "boundary" | "ahead" | "behind" },
    before: Before,
    rest: Rest,
  ): Term {
    const { languages } = this
    if (node.kind === "ahead") {
      const next = this.follow(node.of, before, () => languages.anything)
      return languages.and([node.isNegated ? languages.not(next) : next, rest(before)])
    }
    if (node.kind === "behind")
      return this.isBefore(before, singleChar(node.of)!) === node.isNegated
        ? languages.never
        : rest(before)
    const word = languages.concat(languages.set(wordChars), languages.anything)
    const isOther = this.isBefore(before, wordChars) === node.isNegated
    return languages.and([isOther ? word : languages.not(word), rest(before)])
  }

  private isBefore(before: Before, set: CharSet): boolean {
    const i = this.asked.findIndex((one) => one.join() === set.join())
    return before !== nothing && (before & (1 << i)) !== 0
  }

  private parts(set: CharSet): readonly (readonly [CharSet, Before])[] {
    if (this.atoms.length === 1) return [[set, this.atoms[0]!.before]]
    return partition([set, ...this.asked])
      .filter((part) => contains(set, part[0]!))
      .map((part) => [part, this.atoms.find((atom) => contains(atom.set, part[0]!))!.before])
  }

  private plain(node: PatternNode): Term {
    const { languages } = this
    if (node.kind === "set") return languages.set(node.set)
    if (node.kind === "or") return languages.or(node.parts.map((part) => this.plain(part)))
    if (node.kind === "concat")
      return node.parts
        .map((part) => this.plain(part))
        .reduceRight((tail, part) => languages.concat(part, tail), languages.empty)
    return node.kind === "repeat"
      ? languages.repeat(this.plain(node.of), node.least, node.most)
      : refuse("a reference to a group")
  }

  /** A repeated part without assertions: only its last character matters to what follows. */
  private followRepeated(
    { of, least, most }: PatternNode & { readonly kind: "repeat" },
    before: Before,
    rest: Rest,
  ): Term {
    const { languages } = this
    const plain = this.plain(of)
    const next = memoized(rest)
    if (this.isSame(next))
      return languages.concat(languages.repeat(plain, least, most), next(before))
    if (canBeEmpty(of)) return refuse("a repeated part that may be empty, before a lookaround")
    if (most === 0) return next(before)
    const last = this.atoms.length === 1
    const repeated = last
      ? languages.concat(
          languages.repeat(plain, Math.max(least, 1), most),
          next(this.atoms[0]!.before),
        )
      : languages.concat(
          languages.repeat(plain, Math.max(least, 1) - 1, most - 1),
          this.follow(of, nothing, next),
        )
    return least === 0 ? languages.or([next(before), repeated]) : repeated
  }

  private followCopies(
    { of, least, most }: PatternNode & { readonly kind: "repeat" },
    before: Before,
    rest: Rest,
  ): Term {
    const { languages } = this
    if (least > mostCopies || (most > mostCopies && most < endless))
      refuse(`more than ${mostCopies} repetitions of a lookaround`)
    const loops = new Map<Before, Term>()
    const again: Rest = (at) => {
      const known = loops.get(at)
      if (known !== undefined) return known
      const loop = languages.loop()
      loops.set(at, loop)
      languages.define(loop, languages.or([rest(at), this.follow(of, at, again)]))
      return loop
    }
    let next: Rest = most === endless ? again : () => languages.never
    for (let done = (most === endless ? least : most + 1) - 1; done >= 0; done--) {
      const more = next
      next = memoized((at) => {
        const longer = done < most ? this.follow(of, at, more) : languages.never
        return done < least ? longer : languages.or([rest(at), longer])
      })
    }
    return next(before)
  }
}
