import type { Grammar } from "./constraint.ts"

/** Bytes of a grammar from which on it may take more than a few milliseconds to compile. */
const largeBytes = 6_000
/** A product of counted repetitions from which on its masks may, too. */
const manyRepeats = 300
const largeCount = /"min(?:Items|Length|Properties)":\d{4}|\\\\p\{/i

/** The product of the counts of a pattern's repetitions: an upper bound of how it unfolds. */
export const repeatsIn = (text: string): number =>
  [...text.matchAll(/(?<!\\\\?x)\{(\d+)(?:,(\d*))?\}/g)].reduce(
    (product, [, least, most]) => product * Math.max(1, Number(most || least)),
    1,
  )

const isHeavy = (text: string): boolean =>
  text.length > largeBytes || largeCount.test(text) || repeatsIn(text) >= manyRepeats

export interface AnswerThread {
  readonly ended: boolean
  /** The number of answers that are open there. */
  readonly answers: number
}

/** Grammars that a thread is remembered to have compiled. */
const mostRemembered = 16

/**
 * Chooses the thread for an answer, so that nobody's masks wait for somebody else's grammar. One
 * thread has all grammars that compile in a few milliseconds. A heavy one, or a request's own, gets a thread in which no
 * answer is open, or the one that has compiled it already; where all are taken, it shares one with
 * other heavy ones.
 */
export class ThreadChoice<Thread extends AnswerThread> {
  private readonly start: () => Thread
  private readonly mostHeavy: number
  private light: Thread | undefined
  private heavy: { readonly thread: Thread; readonly grammars: Set<string> }[] = []

  constructor(start: () => Thread, mostHeavy: number) {
    this.start = start
    this.mostHeavy = mostHeavy
  }

  get threads(): readonly Thread[] {
    return [...(this.light ? [this.light] : []), ...this.heavy.map(({ thread }) => thread)]
  }

  for(grammar: Grammar): Thread {
    const isLark = grammar.kind === "lark"
    const text = isLark ? grammar.lark : JSON.stringify(grammar.schema)
    const isKnownHeavy = grammar.isHeavy || (isLark && grammar.isCustom)
    if (isKnownHeavy || isHeavy(text)) return this.heavyThread(text)
    if (this.light?.ended !== false) this.light = this.start()
    return this.light
  }

  private heavyThread(text: string): Thread {
    this.heavy = this.heavy.filter(({ thread }) => !thread.ended)
    const fewest = () =>
      this.heavy.reduce((best, one) => (one.thread.answers < best.thread.answers ? one : best))
    let chosen = this.heavy.find(({ grammars }) => grammars.has(text))
    chosen ??= this.heavy.find(({ thread }) => thread.answers === 0)
    if (!chosen && this.heavy.length < this.mostHeavy) {
      chosen = { thread: this.start(), grammars: new Set() }
      this.heavy.push(chosen)
    }
    chosen ??= fewest()
    chosen.grammars.delete(text)
    chosen.grammars.add(text)
    if (chosen.grammars.size > mostRemembered)
      chosen.grammars.delete(chosen.grammars.values().next().value!)
    return chosen.thread
  }
}
