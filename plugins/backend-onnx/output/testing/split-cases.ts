import { besideDocument, syntaxes } from "../../chat-format/call-syntax.ts"
import { seededRandom } from "../../sampling/random.ts"
import type { AnswerForm } from "../answer-parser.ts"
import { AnswerParser } from "../answer-parser.ts"
import { type WholeAnswer, wholeAnswer } from "./whole-answer.ts"

/** One text, how it is read, and where it is cut into pieces. */
export interface SplitCase {
  readonly form: AnswerForm
  readonly formName: string
  readonly text: string
  readonly cuts: readonly number[]
  readonly isCut: boolean
}

const tools = new Set(["weather", "a", "get_time-2"])
const callForms = [
  ...Object.entries(syntaxes).flatMap(([name, syntax]) =>
    [false, true].map(
      (only) => [`${name}${only ? ", calls only" : ""}`, { syntax, tools, only }] as const,
    ),
  ),
  [
    "llama beside a document",
    { syntax: besideDocument(syntaxes.llama), tools, only: false },
  ] as const,
  ["no calls", undefined] as const,
]

/** Every way of reading an answer, by name. */
export const answerForms: Readonly<Record<string, AnswerForm>> = Object.fromEntries(
  callForms.flatMap(([name, calls]) =>
    (["none", "begun", "possible"] as const).map((reasoning) => [
      `${name}; reasoning ${reasoning}`,
      { reasoning, ...(calls && { calls }), callId: () => "call_1" } satisfies AnswerForm,
    ]),
  ),
)

const markup = [
  "<think>",
  "</think>",
  "<tool_call>",
  "</tool_call>",
  "[TOOL_CALLS]",
  "<|python_tag|>",
  "[",
  "]",
  "}",
  ", ",
  "; ",
  "\n",
  " ",
  "\t",
  "\u00a0",
]
const words = [
  "Hello",
  "<",
  "</",
  "<tool",
  "tool_call>",
  "\u{1f600}",
  "\ud83d",
  "\ude00",
  "é",
  "\u0000",
  '"',
  "\\",
  "{",
  '{"name"',
  '"arguments": ',
  ":",
  "weather",
]
const objects = [
  '{"city": "Jakarta"}',
  "{}",
  '{"a":1}',
  '{ "city": "J\\"}{" }',
  '{"x":[{"y":"]"}, 2]}',
  '{"s":"<tool_call>\u{1f600}"}',
  '{"s":"\\u00e9\\\\"}',
  '{"broken":',
  "{]",
  "{{}",
]

const groups = [
  ["<tool_call>\n", "\n</tool_call>", "\n</tool_call>\n<tool_call>\n"],
  ["<tool_call>[", "]</tool_call>", ", "],
  ["", "", "; "],
  ["<|python_tag|>", "", ";"],
  ["[TOOL_CALLS] [", "]", ","],
]
const groupOf: Readonly<Record<string, readonly string[]>> = {
  hermes: groups[0]!,
  list: groups[1]!,
  llama: groups[3]!,
  mistral: groups[4]!,
}

/**
 * Mostly well-formed answers with random defects: purely random text never gets past the first
 * brace.
 */
const randomText = (
  formName: string,
  pick: <T>(items: readonly T[]) => T,
  chance: (of: number) => boolean,
): string => {
  const gap = () =>
    chance(0.01)
      ? " ".repeat(pick([150, 1_200]))
      : chance(0.25)
        ? pick(["", " ", "\n", " \n\t"])
        : " "
  const item = () => {
    const parts = [
      "{",
      '"name"',
      ":",
      chance(0.8) ? '"weather"' : pick(['"a"', '"get_time-2"', '"other"', '"we\\"']),
      ",",
      formName.startsWith("llama") !== chance(0.1) ? '"parameters"' : '"arguments"',
      ":",
      pick(objects),
      "}",
    ]
    return parts.map((part) => (chance(0.01) ? pick(words) : part)).join(chance(0.5) ? gap() : "")
  }
  const group = () => {
    const [open, close, between] =
      (chance(0.8) && groupOf[formName.split(/[ ,]/)[0]!]) || pick(groups)
    return open! + Array.from({ length: pick([1, 1, 1, 2, 3]) }, item).join(between) + close!
  }
  const part = () => (chance(0.5) ? group() : chance(0.5) ? pick(markup) : pick(words))
  const answer = Array.from({ length: pick([0, 1, 1, 2, 3, 5, 8]) }, part).join("")
  const thought = chance(0.4)
    ? pick(["<think>\n", "", "  <think>"]) +
      pick(["Hm.", "", "\n", "a</thin"]) +
      pick(["\n</think>\n\n", "</think>", ""])
    : ""
  const text = thought + answer
  return chance(0.3) ? text.slice(0, Math.floor(text.length * pick([0.3, 0.6, 0.9]))) : text
}

export const randomCase = (seed: number): SplitCase => {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!
  const chance = (of: number) => random() < of
  const formName = pick(Object.keys(answerForms))
  const text = randomText(formName, pick, chance)
  const density = pick([1, 0.5, 0.1])
  const cuts = Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => at + 1).filter(() =>
    chance(density),
  )
  return { form: answerForms[formName]!, formName, text, cuts, isCut: chance(0.4) }
}

/** The events of the parser that reads in pieces, joined. */
export const inPieces = ({ form, text, cuts, isCut }: Omit<SplitCase, "formName">): WholeAnswer => {
  const parser = new AnswerParser(form)
  const answer = { reasoning: "", text: "", calls: [] as { name: string; arguments: string }[] }
  const ends = [...cuts, text.length]
  const parsed = [
    ...ends.flatMap((end, index) => parser.push(text.slice(index ? ends[index - 1] : 0, end))),
    ...parser.end(isCut),
  ]
  for (const { event } of parsed) {
    if (event.type !== "toolCall") answer[event.type] += event.text
    else if (event.name !== undefined)
      answer.calls.push({ name: event.name, arguments: event.argumentsDelta })
    else answer.calls[event.index]!.arguments += event.argumentsDelta
  }
  return answer
}

/**
 * Returns the results of parsing in pieces, in one piece and by the reference parser, where they
 * differ.
 */
export const difference = (
  split: SplitCase,
):
  | { readonly pieces: WholeAnswer; readonly once: WholeAnswer; readonly reference: WholeAnswer }
  | undefined => {
  const pieces = inPieces(split)
  const once = inPieces({ ...split, cuts: [] })
  const reference = wholeAnswer(split.form, split.text, split.isCut)
  const [first, ...others] = [pieces, once, reference].map((answer) => JSON.stringify(answer))
  return others.every((other) => other === first) ? undefined : { pieces, once, reference }
}

/** Shrinks a failing case: leaves out characters and cuts one by one for as long as it fails. */
export const shrunk = (split: SplitCase): SplitCase => {
  const withoutCharacter = (at: number): SplitCase => ({
    ...split,
    text: split.text.slice(0, at) + split.text.slice(at + 1),
    cuts: [...new Set(split.cuts.map((cut) => (cut > at ? cut - 1 : cut)))].filter(
      (cut) => cut > 0 && cut < split.text.length - 1,
    ),
  })
  const smaller = [
    ...Array.from({ length: split.text.length }, (_, at) => () => withoutCharacter(at)),
    ...split.cuts.map((_, index) => () => ({
      ...split,
      cuts: split.cuts.filter((_, other) => other !== index),
    })),
  ]
  for (const make of smaller) {
    const candidate = make()
    if (difference(candidate)) return shrunk(candidate)
  }
  return split
}
