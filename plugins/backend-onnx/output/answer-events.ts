import type { ChatEvent, TokenLogprob } from "../../../core/ports/model.ts"
import type { Piece } from "../sampling/incremental-detokenizer.ts"
import { type AnswerForm, AnswerParser, type Parsed } from "./answer-parser.ts"

type TextEvent = Extract<ChatEvent, { readonly type: "text" }>
type Details = NonNullable<Piece["details"]>

/** The rest of an answer, with its end. */
export interface LastPiece extends Piece {
  readonly reason: "stop" | "length"
  readonly isWhole?: boolean
}

const decoder = new TextDecoder()

const wholeness = ({ isWhole }: LastPiece) => (isWhole === undefined ? {} : { isWhole })

const toLogprob = ({
  bytes,
  logprob,
}: {
  readonly bytes: Uint8Array
  readonly logprob: number
}): TokenLogprob => ({ token: decoder.decode(bytes), bytes: [...bytes], logprob })

const toLogprobs = (details: Details): NonNullable<TextEvent["logprobs"]> =>
  details.map((detail) => ({ ...toLogprob(detail), top: detail.top.map(toLogprob) }))

/** Turns the tokens of an answer into the events that the client sees. */
export interface AnswerEvents {
  token(piece: Piece): readonly ChatEvent[]
  /** Returns the last events, with the finish. */
  finish(end: LastPiece): readonly ChatEvent[]
  /** The number of tokens so far that belong to the reasoning. */
  readonly reasoningTokens: number
}

const textEvents = ({ text, details }: Piece): readonly ChatEvent[] =>
  text || details?.length
    ? [{ type: "text", text, ...(details && { logprobs: toLogprobs(details) }) }]
    : []

/** For answers without reasoning and calls: everything is text. */
const plainEvents: AnswerEvents = {
  token: textEvents,
  finish: (end) => [...textEvents(end), { type: "finish", reason: end.reason, ...wholeness(end) }],
  reasoningTokens: 0,
}

/** Finds the tokens that became visible text, as log-probabilities are reported of those only. */
class VisibleTokens {
  private readonly waiting: {
    readonly from: number
    readonly to: number
    readonly details: Details
  }[] = []
  private readonly shown: { readonly from: number; readonly to: number }[] = []
  private at = 0

  add({ text, details }: Piece): void {
    const from = this.at
    this.at += text.length
    if (details?.length) this.waiting.push({ from, to: this.at, details })
  }

  private isShown({ from, to }: { readonly from: number; readonly to: number }): boolean {
    return this.shown.some((range) =>
      from === to ? range.from <= from && from <= range.to : range.from < to && from < range.to,
    )
  }

  /**
   * Returns the details of tokens whose text is decided now, given what was parsed; `decided`:
   * length of the text that is decided.
   */
  take(parsed: readonly Parsed[], decided: number): Details {
    for (const { event, from, to } of parsed)
      if (event.type === "text") this.shown.push({ from, to })
    const out: Details[number][] = []
    while (this.waiting.length && this.waiting[0]!.to <= decided) {
      const first = this.waiting.shift()!
      if (this.isShown(first)) out.push(...first.details)
    }
    const oldest = this.waiting[0]?.from ?? decided
    while (this.shown.length && this.shown[0]!.to < oldest) this.shown.shift()
    return out
  }
}

/** Attaches log-probabilities to the last text event, or to an empty one. */
const withDetails = (parsed: readonly Parsed[], details: Details): readonly ChatEvent[] => {
  const events: ChatEvent[] = parsed.map(({ event }) => event)
  if (!details.length) return events
  const logprobs = toLogprobs(details)
  const last = events.findLastIndex(({ type }) => type === "text")
  if (last < 0) return [...events, { type: "text", text: "", logprobs }]
  events[last] = { ...(events[last] as TextEvent), logprobs }
  return events
}

class ParsedEvents implements AnswerEvents {
  reasoningTokens = 0
  private readonly parser: AnswerParser
  private readonly visible = new VisibleTokens()

  constructor(form: AnswerForm) {
    this.parser = new AnswerParser(form)
  }

  token(piece: Piece): readonly ChatEvent[] {
    const wasReasoning = this.parser.isReasoning
    const events = this.push(piece)
    // the tokens that open and close the reasoning belong to it
    if (wasReasoning || this.parser.isReasoning) this.reasoningTokens++
    return events
  }

  finish(end: LastPiece): readonly ChatEvent[] {
    const { reason } = end
    const before = this.push(end)
    const parsed = this.parser.end(reason === "length")
    const events = withDetails(parsed, this.visible.take(parsed, Number.POSITIVE_INFINITY))
    return [
      ...before,
      ...events,
      {
        type: "finish",
        reason: reason === "stop" && this.parser.callCount ? "tool_calls" : reason,
        ...wholeness(end),
      },
    ]
  }

  private push(piece: Piece): readonly ChatEvent[] {
    this.visible.add(piece)
    const parsed = this.parser.push(piece.text)
    return withDetails(parsed, this.visible.take(parsed, this.parser.decided))
  }
}

export const answerEvents = (form: AnswerForm): AnswerEvents =>
  form.reasoning === "none" && !form.calls ? plainEvents : new ParsedEvents(form)
