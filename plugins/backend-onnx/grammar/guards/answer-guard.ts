import type { EmbeddedDocument } from "../constraint.ts"
import type { Guards } from "../schema/guards.ts"
import { type DocumentState, JsonTracker } from "./json-tracker.ts"
import { watchOf } from "./schema-watch.ts"

/** A document of an answer whose finished values are checked. */
interface GuardedDocument {
  readonly tracker: JsonTracker
  /** See `EmbeddedDocument`. */
  readonly before: string
  readonly trigger: EmbeddedDocument["trigger"]
}

/**
 * Where an answer stands. Moves: free -> fixed (at the trigger, or at a beginning), fixed -> inside a
 * document -> fixed (after it).
 */
export interface AnswerState {
  readonly isFree: boolean
  /** The last bytes outside of documents, one character each; the first where there are beginnings. */
  readonly tail: string
  readonly inside?: { readonly document: GuardedDocument; readonly state: DocumentState }
}

/** Follows the text of an answer with documents that are checked. */
export class GuardedAnswer {
  readonly start: AnswerState
  private readonly documents: readonly GuardedDocument[]
  private readonly trigger: string | number | undefined
  private readonly beginnings: readonly string[] | undefined
  private readonly longest: number

  /** Documents without guards are followed to their ends, as others may seem to begin in them. */
  constructor(
    documents: readonly (Omit<EmbeddedDocument, "schema"> & { readonly guards?: Guards })[],
  ) {
    this.documents = documents.map(({ guards, before, trigger }) => ({
      tracker: new JsonTracker(guards && watchOf(guards)),
      before: Buffer.from(before).toString("latin1"),
      trigger,
    }))
    const trigger = documents.find((one) => one.trigger !== undefined)?.trigger
    this.trigger = typeof trigger === "string" ? Buffer.from(trigger).toString("latin1") : trigger
    this.beginnings = documents.find((one) => one.beginnings)?.beginnings
    const whole = this.documents.find(({ before }) => before === "")
    this.start = {
      isFree: trigger !== undefined || this.beginnings !== undefined,
      tail: "",
      ...(whole && { inside: { document: whole, state: whole.tracker.start } }),
    }
    this.longest = Math.max(
      ...this.documents.map(({ before }) => before.length),
      ...(this.beginnings ?? []).map((beginning) => beginning.length),
      typeof this.trigger === "string" ? this.trigger.length : 0,
    )
  }

  /** Undefined: the token finishes something that is not accepted. */
  take(state: AnswerState, token: number, text: string): AnswerState | undefined {
    return state.isFree && token === this.trigger
      ? { isFree: false, tail: "" }
      : this.advance(state, text)
  }

  /** Begins another mask, or the next token. */
  renew(): void {
    for (const { tracker } of this.documents) tracker.renew()
  }

  /** The same for text, one character per byte. */
  advance(state: AnswerState, text: string): AnswerState | undefined {
    try {
      if (state.isFree) return this.advanceFree(state, text)
      return state.inside
        ? this.advanceInside(state, state.inside, text)
        : this.advanceOutside(state, text)
    } catch (cause) {
      if (!(cause instanceof SyntaxError)) throw cause
      // what is no JSON is no document: an answer must not fail at what only looks like one
      return { isFree: true, tail: " " }
    }
  }

  /** Whether the checks let the text end here; inside an answer its grammar decides. */
  mayEnd({ inside }: AnswerState): boolean {
    if (inside?.document.before !== "") return true
    return inside.document.tracker.mayEnd(inside.state)
  }

  /** Undefined where no guarded value is open, otherwise equal as long as it is. */
  guardedAt({ inside }: AnswerState): string | undefined {
    return inside?.document.tracker.guardedAt(inside.state)
  }

  /** Whether a document may begin within the next `most` bytes. */
  beginsWithin({ isFree, tail }: AnswerState, most: number): boolean {
    return !isFree && this.documents.some(({ before }) => missing(tail, before) < most)
  }

  private cut(text: string): string {
    return text.slice(Math.max(0, text.length - this.longest))
  }

  /** A document that is the whole answer goes on, unless the answer begins with the trigger. */
  private advanceFree(from: AnswerState, text: string): AnswerState | undefined {
    const { trigger, beginnings } = this
    const { inside } = from
    const seen = from.tail + text
    if (beginnings)
      return beginnings.some((beginning) => seen.startsWith(beginning))
        ? this.advance({ isFree: false, tail: "" }, seen)
        : { isFree: true, tail: seen.slice(0, this.longest) }
    const at = typeof trigger === "string" ? seen.indexOf(trigger) : -1
    if (at === 0 || (at > 0 && !inside)) {
      const rest = at + (trigger as string).length
      return this.advance({ isFree: false, tail: "" }, seen.slice(rest))
    }
    if (!inside) return { isFree: true, tail: this.cut(seen) }
    const { document, state } = inside
    const next = document.tracker.advance(state, text)
    const isFree = typeof trigger === "string" ? trigger.startsWith(seen) : text === ""
    return next && { isFree, tail: isFree ? seen : "", inside: { document, state: next } }
  }

  private advanceInside(
    from: AnswerState,
    { document, state }: NonNullable<AnswerState["inside"]>,
    text: string,
  ): AnswerState | undefined {
    const { tracker, before } = document
    if (before === "" || !/[\]}]/.test(text)) {
      const next = tracker.advance(state, text)
      return next && { ...from, inside: { document, state: next } }
    }
    let now: DocumentState | undefined = state
    for (let at = 0; at < text.length; at++) {
      now = tracker.advance(now, text[at]!)
      if (!now) return undefined
      if (now.mode === "done") return this.advance({ isFree: false, tail: "" }, text.slice(at + 1))
    }
    return { ...from, inside: { document, state: now } }
  }

  private advanceOutside(state: AnswerState, text: string): AnswerState | undefined {
    const seen = state.tail + text
    for (const document of this.documents) {
      const { before, tracker } = document
      const at = before === "" ? -1 : seen.indexOf(before)
      if (at >= 0)
        return this.advance(
          { isFree: false, tail: "", inside: { document, state: tracker.start } },
          seen.slice(at + before.length),
        )
    }
    return { ...state, tail: this.cut(seen) }
  }
}

/** Returns how many characters of `wanted` do not stand at the end of the text yet. */
const missing = (text: string, wanted: string): number => {
  for (let count = 0; count < wanted.length; count++)
    if (text.endsWith(wanted.slice(0, wanted.length - count))) return count
  return wanted.length === 0 ? Number.POSITIVE_INFINITY : wanted.length
}
