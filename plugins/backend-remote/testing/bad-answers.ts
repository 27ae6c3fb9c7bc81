import { type BadWay, end, estimated, failed, hello, usage, well } from "./bad-way.ts"
import { chunk, say, stream, usageOf } from "./scripted-upstream.ts"

const call = (index: number, more: object) => chunk({ tool_calls: [{ index, ...more }] })

/** Ways of answers whose content, or whose usage, is wrong. */
export const badAnswers: readonly BadWay[] = [
  {
    name: "usage that is too small",
    scripts: [stream(say("a"), say("b"), say("c"), say("d"), end, usageOf(5, 1), "[DONE]")],
    // four pieces came, and the last may have none of its own
    sees: { text: "abcd", finish: "stop", charged: [5, 3] },
  },
  {
    name: "usage beyond what was asked for",
    scripts: [stream(...hello, end, usageOf(5, 1_000_000), "[DONE]")],
    sees: { ...well, charged: [5, 64] },
  },
  {
    name: "negative usage",
    scripts: [stream(...hello, end, usageOf(-5, -2), "[DONE]")],
    sees: { ...well, charged: [estimated, 2] },
  },
  {
    name: "usage in words",
    scripts: [stream(...hello, end, usageOf("five", "two"), "[DONE]")],
    sees: { ...well, charged: [estimated, 2] },
  },
  {
    name: "no usage",
    scripts: [stream(...hello, end, "[DONE]")],
    sees: { ...well, charged: [estimated, 2] },
  },
  {
    name: "two finishes",
    scripts: [stream(...hello, end, chunk({}, "length"), usage, "[DONE]")],
    sees: well,
  },
  {
    name: "text after the finish",
    scripts: [stream(...hello, end, say(" and more"), usage, "[DONE]")],
    sees: well,
  },
  {
    name: "the name of another model",
    scripts: [stream(...hello, chunk({}, "stop", { model: "other" }), usage, "[DONE]")],
    sees: well,
  },
  {
    name: "chunks without choices",
    scripts: [stream({ ...chunk({}), choices: [] }, ...hello, end, usage, "[DONE]")],
    sees: well,
  },
  {
    name: "a choice that nobody asked for",
    scripts: [
      stream({ ...say("Hello"), choices: [{ index: 5, delta: { content: "x" } }] }, end, "[DONE]"),
    ],
    sees: { ...failed, asked: 3 },
  },
  {
    name: "pieces of tool calls out of order",
    scripts: [
      stream(
        call(1, { id: "b", function: { arguments: '{"zone":' } }),
        call(0, { id: "a", function: { name: "now", arguments: "{}" } }),
        call(1, { function: { name: "now", arguments: "1}" } }),
        chunk({}, "tool_calls"),
        usage,
        "[DONE]",
      ),
    ],
    sees: { finish: "tool_calls", charged: [5, 2], asked: 1 },
  },
  {
    name: "arguments of a call that are not JSON",
    scripts: [
      stream(
        call(0, { id: "a", function: { name: "now", arguments: '{"zone": UTC' } }),
        chunk({}, "tool_calls"),
        usage,
        "[DONE]",
      ),
    ],
    sees: { ...failed, asked: 1 },
  },
  {
    name: "a call of a tool that it was not given",
    scripts: [
      stream(
        call(0, { id: "a", function: { name: "rm", arguments: "{}" } }),
        chunk({}, "tool_calls"),
        "[DONE]",
      ),
    ],
    sees: { ...failed, asked: 1 },
  },
]
