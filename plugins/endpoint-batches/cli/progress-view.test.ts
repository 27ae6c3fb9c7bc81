import { PassThrough } from "node:stream"
import { expect, it, vi } from "vitest"
import { makeProgressView } from "./progress-view.ts"
import {
  interruptedText,
  pathsOf,
  refusalText,
  reportJson,
  reportText,
  resumeCommand,
} from "./run-report.ts"

const makeOut = (isTTY: boolean, columns = 160) => {
  const stream = new PassThrough()
  let text = ""
  stream.on("data", (chunk) => {
    text += String(chunk)
  })
  const out = Object.assign(stream, { isTTY, columns, rows: 20 }) as unknown as NodeJS.WriteStream
  return { out, text: () => text }
}

const sums = (done: number, failed = 0) => ({
  lines: 4_000,
  earlier: 0,
  completed: done - failed,
  failed,
  inputTokens: done * 10,
  outputTokens: done * 2,
  costMicros: BigInt(done) * 2_500n,
})

const makeClock = () => {
  let nowMs = 0
  return {
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    pass: (ms: number) => (nowMs += ms),
  }
}

it("without a terminal it is a line every few seconds, and the last one", () => {
  const { out, text } = makeOut(false)
  const { clock, pass } = makeClock()
  const view = makeProgressView(out, clock)
  for (let done = 0; done <= 4_000; done += 10) {
    view.report(sums(done, done >= 3_990 ? 1 : 0))
    if (done === 2_000) view.write("a log line\n")
    if (done < 4_000) pass(50)
  }
  view.stop()
  expect(text().trimEnd().split("\n")).toEqual([
    "0 / 4,000 lines  Rp 0",
    "1,000 / 4,000 lines  200 lines/s  2,400 tokens/s  Rp 2.50  15 s left",
    "2,000 / 4,000 lines  200 lines/s  2,400 tokens/s  Rp 5.00  10 s left",
    "a log line",
    "3,000 / 4,000 lines  200 lines/s  2,400 tokens/s  Rp 7.50  5 s left",
    "4,000 / 4,000 lines  1 failed  200 lines/s  2,400 tokens/s  Rp 10.00",
  ])
})

it("on a terminal it is a bar, which makes way for log lines", () => {
  vi.useFakeTimers()
  try {
    const { out, text } = makeOut(true)
    const { clock, pass } = makeClock()
    const view = makeProgressView(out, clock)
    view.report(sums(0))
    pass(1_000)
    view.report(sums(1_000))
    vi.advanceTimersByTime(500)
    view.write("a log line\n")
    pass(1_000)
    view.report(sums(2_000))
    vi.advanceTimersByTime(500)
    view.stop()
    expect(text()).toContain(
      "██████░░░░░░░░░░░░░░░░░░  1,000 / 4,000 lines  1,000 lines/s  12,000 tokens/s  Rp 2.50  3 s left",
    )
    expect(text()).toContain("\na log line\n")
    expect(text()).toContain("████████████░░░░░░░░░░░░  2,000 / 4,000 lines")
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

it.each([
  [85, "██░░░░░░  12,345 / 50,000 lines  1,000 lines/s  16,500 tokens/s  Rp 107.05  38 s left"],
  [81, "12,345 / 50,000 lines  1,000 lines/s  16,500 tokens/s  Rp 107.05  38 s left"],
  [60, "12,345 / 50,000 lines  1,000 lines/s  Rp 107.05  38 s left"],
  [40, "█░░░░░  12,345 / 50,000 lines  38 s left"],
  [12, "12,345 / 50,"],
])("%i columns show what has room, the time left before the bar", (columns, line) => {
  vi.useFakeTimers()
  try {
    const { out, text } = makeOut(true, columns)
    const { clock, pass } = makeClock()
    const view = makeProgressView(out, clock)
    const at = (done: number) => ({
      ...sums(done),
      lines: 50_000,
      inputTokens: done * 16,
      outputTokens: done / 2,
      costMicros: 107_052_750n,
    })
    view.report(at(2_345))
    pass(10_000)
    view.report(at(12_345))
    vi.advanceTimersByTime(500)
    view.stop()
    const [shown] = text().split("\u001b[1G").at(-1)?.split("\u001b") ?? []
    expect(shown).toBe(line)
  } finally {
    vi.useRealTimers()
  }
})

it("names the files after the input, or beside the output", () => {
  expect(pathsOf("x/a.jsonl", {})).toEqual({
    input: "x/a.jsonl",
    output: "x/a.output.jsonl",
    errors: "x/a.errors.jsonl",
  })
  expect(pathsOf("a.txt", {})).toEqual({
    input: "a.txt",
    output: "a.txt.output.jsonl",
    errors: "a.txt.errors.jsonl",
  })
  expect(pathsOf("a.jsonl", { out: "y/b.output.jsonl" })).toMatchObject({
    output: "y/b.output.jsonl",
    errors: "y/b.errors.jsonl",
  })
  expect(pathsOf("a.jsonl", { out: "y/b", errors: "z" })).toMatchObject({
    output: "y/b",
    errors: "z",
  })
})

it("ends with a summary, for people or as JSON", () => {
  const report = {
    paths: pathsOf("a.jsonl", {}),
    sums: { ...sums(4_000, 3), earlier: 1_000 },
    seconds: 60,
  }
  expect(reportText(report).split("\n")).toEqual([
    "4,000 lines: 3,997 completed, 3 failed (1,000 of them in an earlier run)",
    "This run: 3,000 lines in 60 s, 50 lines/s, 800 tokens/s (40,000 in, 8,000 out)",
    "As lines of a customer's batch they would have cost Rp 10.00.",
    "output: a.output.jsonl",
    "errors: a.errors.jsonl",
    "",
  ])
  const one = { paths: pathsOf("a.jsonl", {}), sums: { ...sums(1), lines: 1 }, seconds: 2 }
  expect(reportText(one).split("\n").slice(0, 2)).toEqual([
    "1 line: 1 completed, 0 failed",
    "1 line in 2.0 s, 0.5 lines/s, 6.0 tokens/s (10 in, 2 out)",
  ])
  expect(JSON.parse(reportJson(report))).toMatchObject({
    object: "batch_run",
    lines: 4_000,
    failed: 3,
    errors: "a.errors.jsonl",
    cost_idr: 10,
    lines_per_second: 50,
    tokens_per_second: 800,
  })
})

it("says how far an interrupted run came, which command goes on, and what is wrong with a file", () => {
  expect(interruptedText(sums(1_200), "rakit x")).toBe(
    "Interrupted after 1,200 of 4,000 lines. Go on with: rakit x\n",
  )
  expect(interruptedText(undefined, "rakit x")).toBe("Interrupted before the first line\n")
  expect(resumeCommand("a b.jsonl", undefined, { resume: false, json: false })).toBe(
    "rakit batch run 'a b.jsonl' --resume",
  )
  expect(
    resumeCommand("a.jsonl", "my.yaml", {
      out: "o",
      errors: "e",
      endpoint: "/v1/x",
      concurrency: 2,
      resume: true,
      json: true,
    }),
  ).toBe(
    "rakit batch run a.jsonl my.yaml --out o --errors e --endpoint /v1/x --concurrency 2 --resume",
  )
  expect(
    refusalText({
      message: "No.",
      faults: [
        { line: 1_200, message: "url: is missing" },
        { line: null, message: "3 more" },
      ],
    }),
  ).toBe("No.\n  line 1,200: url: is missing\n  3 more")
})
