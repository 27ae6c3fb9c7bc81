import type { ChatEvent } from "../../../core/ports/model.ts"
import type { CallSyntax } from "../chat-format/call-syntax.ts"
import { thinkClose, thinkOpen } from "../chat-format/template-style.ts"
import { afterArguments, groupHead, type Head, nextHead } from "./call-match.ts"
import { begun, literal, ObjectEnd, skipSpace } from "./text-match.ts"

export interface AnswerForm {
  /** `begun`: the prompt opened the reasoning; `possible`: the answer may open it. */
  readonly reasoning: "none" | "begun" | "possible"
  /** Absent: nothing is parsed as a call. */
  readonly calls?: {
    readonly syntax: CallSyntax
    readonly tools: ReadonlySet<string>
    /** The answer consists of calls only. */
    readonly only: boolean
  }
  callId(): string
}

/** `from` and `to`: the range of the model's text that became the event. */
export interface Parsed {
  readonly event: Exclude<ChatEvent, { readonly type: "finish" }>
  readonly from: number
  readonly to: number
}

type State = "start" | "reasoning" | "gap" | "text" | "head" | "arguments" | "after" | "next"

const firstStates = {
  none: "text",
  begun: "reasoning",
  possible: "start",
} as const satisfies Record<AnswerForm["reasoning"], State>

/**
 * Parses the model's text, which comes in pieces, into text, reasoning and tool calls. The result
 * does not depend on how the text is cut into pieces.
 *
 * start (may open the reasoning) -> reasoning -> gap | start -> text
 * gap (white space behind reasoning or calls, which is dropped) -> text
 * text -> head (a call may begin here) -> text (it was not a call) | arguments -> after -> next (a
 * separator: one more call) -> arguments | text; after -> gap (calls closed) | text (malformed)
 */
export class AnswerParser {
  private readonly form: AnswerForm
  private state: State
  /** Text whose kind is not decided yet. */
  private pending = ""
  /** A lone high surrogate at the end of the last piece. */
  private half = ""
  private consumed = 0
  private calls = 0
  private object = new ObjectEnd()
  /** Only white space came so far: calls without a trigger may begin here. */
  private isAtStart = true
  /** Only white space came so far in the reasoning. */
  private isReasoningBlank = true
  private out: Parsed[] = []

  constructor(form: AnswerForm) {
    this.form = form
    this.state = firstStates[form.reasoning]
  }

  /** Length of the text that is decided: reported, or dropped as markup. */
  get decided(): number {
    return this.consumed
  }

  get isReasoning(): boolean {
    return this.state === "reasoning"
  }

  get callCount(): number {
    return this.calls
  }

  push(piece: string): readonly Parsed[] {
    const text = this.half + piece
    const whole = /[\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length
    this.half = text.slice(whole)
    this.pending += text.slice(0, whole)
    return this.run()
  }

  /** Ends the text. Unfinished markup is dropped when the answer was cut, otherwise it is text. */
  end(isCut: boolean): readonly Parsed[] {
    this.pending += this.half
    this.half = ""
    const before = this.run()
    if (this.state === "start") this.state = "text"
    return [...before, ...this.run(), ...this.flush(isCut)]
  }

  private run(): readonly Parsed[] {
    this.out = []
    while (this.pending && this.step());
    return this.out
  }

  private flush(isCut: boolean): readonly Parsed[] {
    this.out = []
    const { state, form } = this
    const all = this.pending.length
    const isMarkup =
      (state === "head" && isCut && this.hasTrigger()) ||
      (state === "next" && isCut) ||
      state === "after" ||
      state === "gap"
    if (isMarkup || (state === "text" && isCut && form.calls?.only)) this.drop(all)
    else this.say(all, state === "reasoning" ? "reasoning" : "text")
    return this.out
  }

  /**
   * Whether pending text may begin a call; Llama's calls begin with a brace, so white space alone
   * does not.
   */
  private hasTrigger(): boolean {
    return (
      this.form.calls?.syntax.trigger !== undefined ||
      this.form.calls?.only === true ||
      this.pending.trim() !== ""
    )
  }

  private take(length: number): string {
    const text = this.pending.slice(0, length)
    this.pending = this.pending.slice(length)
    this.consumed += length
    return text
  }

  private drop(length: number): void {
    this.take(length)
  }

  private emit(event: Parsed["event"], length: number): void {
    this.out.push({ event, from: this.consumed - length, to: this.consumed })
  }

  private say(length: number, type: "text" | "reasoning" = "text"): void {
    if (length > 0) this.emit({ type, text: this.take(length) }, length)
  }

  /** Decides some pending text, if possible. Returns whether it did. */
  private step(): boolean {
    switch (this.state) {
      case "start":
        return this.start()
      case "reasoning":
        return this.reason()
      case "gap":
        return this.gap()
      case "text":
        return this.text()
      case "arguments":
        return this.callArguments()
      case "after":
        return this.after()
      default:
        return this.head()
    }
  }

  private start(): boolean {
    const opened = literal(this.pending, 0, thinkOpen)
    if (opened === "more") return false
    if (typeof opened === "number") this.drop(opened)
    this.state = opened === "no" ? "text" : "reasoning"
    return true
  }

  private reason(): boolean {
    if (this.isReasoningBlank) this.drop(skipSpace(this.pending, 0))
    if (!this.pending) return false
    const close = this.pending.indexOf(thinkClose)
    const end = close < 0 ? this.pending.length - begun(this.pending, thinkClose) : close
    const length = this.pending.slice(0, end).trimEnd().length
    if (length) this.isReasoningBlank = false
    this.say(length, "reasoning")
    if (close < 0) return false
    this.drop(end - length + thinkClose.length)
    this.state = "gap"
    return true
  }

  private gap(): boolean {
    this.drop(skipSpace(this.pending, 0))
    if (this.pending) this.state = "text"
    return this.pending !== ""
  }

  private text(): boolean {
    const { calls } = this.form
    if (!calls) {
      this.say(this.pending.length)
      return false
    }
    const { trigger } = calls.syntax
    if (trigger === undefined) return this.textOrCallsOnly()
    const found = this.pending.indexOf(trigger)
    const end = found < 0 ? this.pending.length - begun(this.pending, trigger) : found
    this.say(this.pending.slice(0, end).trimEnd().length)
    if (found >= 0) this.state = "head"
    return found >= 0
  }

  private textOrCallsOnly(): boolean {
    if (this.isAtStart) {
      this.state = "head"
      return true
    }
    this.say(this.pending.length)
    return false
  }

  private head(): boolean {
    const { syntax, tools } = this.form.calls!
    const head = (this.state === "head" ? groupHead : nextHead)(this.pending, syntax, tools)
    if (head === "more") return false
    if (head === "no") this.refuse(syntax)
    else this.begin(head)
    return true
  }

  /** Treats the trigger as text; a call may still begin behind it. */
  private refuse({ trigger }: CallSyntax): void {
    if (this.state === "head" && trigger !== undefined)
      this.say(skipSpace(this.pending, 0) + trigger.length)
    this.state = "text"
    this.isAtStart = false
  }

  private begin({ name, at }: Head): void {
    this.drop(at)
    this.isAtStart = false
    this.object = new ObjectEnd()
    this.emit(
      { type: "toolCall", index: this.calls++, id: this.form.callId(), name, argumentsDelta: "" },
      0,
    )
    this.state = "arguments"
  }

  private callArguments(): boolean {
    const end = this.object.find(this.pending)
    const length = end < 0 ? this.pending.length : end
    this.emit(
      { type: "toolCall", index: this.calls - 1, argumentsDelta: this.take(length) },
      length,
    )
    if (end >= 0) this.state = "after"
    return end >= 0
  }

  private after(): boolean {
    const found = afterArguments(this.pending, this.form.calls!.syntax)
    if (found === "more") return false
    if (found === "no") this.state = "text"
    else {
      this.drop(found.at)
      this.state = found.separated ? "next" : "gap"
    }
    return true
  }
}
