import { PassThrough } from "node:stream"
import { describe, expect, it, vi } from "vitest"
import { makePullProgress } from "./progress.ts"

const makeOut = (isTTY: boolean) => {
  const stream = new PassThrough()
  let text = ""
  stream.on("data", (chunk) => {
    text += String(chunk)
  })
  const out = Object.assign(stream, {
    isTTY,
    columns: 100,
    rows: 20,
  }) as unknown as NodeJS.WriteStream
  return { out, text: () => text }
}

/** A terminal of one screen that knows what cli-progress uses: its lines as a person sees them. */
const screen = (text: string): readonly string[] => {
  const rows: string[] = [""]
  let [x, y] = [0, 0]
  const move: Readonly<Record<string, (count: number, mode: string) => void>> = {
    A: (count) => (y = Math.max(0, y - count)),
    B: (count) => (y += count),
    G: (count) => (x = count - 1),
    K: (_, mode) => (rows[y] = mode === "2" ? "" : (rows[y] ?? "").slice(0, x)),
    J: () => rows.splice(y + 1, rows.length, (rows[y] ?? "").slice(0, x)),
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is read here
  for (const [token, mode = "", name = ""] of text.matchAll(/\u001b\[\??(\d*)([A-Za-z])|[\s\S]/g)) {
    if (name) move[name]?.(Number(mode || 1), mode)
    else if (token === "\n") [x, y] = [0, y + 1]
    else if (token === "\r") x = 0
    else {
      rows[y] = `${(rows[y] ?? "").padEnd(x).slice(0, x)}${token}${(rows[y] ?? "").slice(x + 1)}`
      x += 1
    }
  }
  return [...rows].map((row) => (row ?? "").trimEnd()).filter((row) => row !== "")
}

const step = (model: string, doneBytes: number, totalBytes = 100e6) => ({
  model,
  source: model === "svc-emb" ? "pypi:e==1" : "pypi:m==1",
  doneBytes,
  totalBytes,
})

describe("without a terminal", () => {
  it("writes a line at the start, at every 10 % and at the end, for several models", () => {
    const { out, text } = makeOut(false)
    let nowMs = 0
    const view = makePullProgress(out, { nowMs: () => nowMs })
    for (let percent = 0; percent <= 100; percent += 1) {
      view.report(step("svc-lyt", percent * 1e6))
      view.report(step("svc-emb", percent * 5e5, 50e6))
      if (percent === 42) view.write("a log line\n")
      nowMs += 100
    }
    view.report(step("svc-lyt", 100e6))
    const lines = text().trimEnd().split("\n")
    expect(lines.filter((line) => line.startsWith("svc-lyt"))).toEqual([
      "svc-lyt  0.0 / 100.0 MB  0 %  from pypi:m==1",
      "svc-lyt  10.0 / 100.0 MB  10 %  10.0 MB/s  9 s left",
      ...[2, 3, 4, 5, 6, 7, 8, 9].map(
        (tenth) => `svc-lyt  ${tenth}0.0 / 100.0 MB  ${tenth}0 %  10.0 MB/s  ${10 - tenth} s left`,
      ),
      "svc-lyt  100.0 / 100.0 MB  100 %  10.0 MB/s",
    ])
    expect(lines.filter((line) => line.startsWith("svc-emb"))).toHaveLength(11)
    expect(lines).toContain("a log line")
  })

  it("counts only what came now, begins again for the next source, and lives without a size", () => {
    const { out, text } = makeOut(false)
    let nowMs = 0
    const view = makePullProgress(out, { nowMs: () => nowMs })
    view.report(step("m", 50e6))
    nowMs = 1000
    view.report(step("m", 60e6))
    const unsized = { model: "m", source: "https://b/m", totalBytes: undefined }
    view.report({ ...unsized, doneBytes: 1e6 })
    nowMs = 12_000
    view.report({ ...unsized, doneBytes: 7.2e9 })
    view.done("m")
    view.done("m")
    expect(text().trimEnd().split("\n")).toEqual([
      "m  50.0 / 100.0 MB  50 %  from pypi:m==1",
      "m  60.0 / 100.0 MB  60 %  10.0 MB/s  4 s left",
      "m  1.0 MB  from https://b/m",
      "m  7.2 GB  654.5 MB/s",
      "m  7.2 GB  654.5 MB/s",
    ])
  })

  it("is one pull for all models that share a file, with all their names", () => {
    const { out, text } = makeOut(false)
    const view = makePullProgress(out, { nowMs: () => 0 })
    for (const done of [0, 0.5e6, 50e6, 100e6])
      for (const model of ["svc-prme", "svc-omni", "svc-lyt"]) view.report(step(model, done))
    for (const model of ["svc-prme", "svc-omni", "svc-lyt"]) view.done(model)
    expect(text().trimEnd().split("\n")).toEqual([
      "svc-prme  0.0 / 100.0 MB  0 %  from pypi:m==1",
      "svc-prme, svc-omni, svc-lyt  50.0 / 100.0 MB  50 %",
      "svc-prme, svc-omni, svc-lyt  100.0 / 100.0 MB  100 %",
    ])
  })

  it("parts models that shared a file when one turns to another source; a failed pull ends once", () => {
    const { out, text } = makeOut(false)
    const view = makePullProgress(out, { nowMs: () => 0 })
    view.report(step("a", 10e6))
    view.report(step("b", 10e6))
    view.report({ model: "a", source: "https://b/a", doneBytes: 0, totalBytes: 5e6 })
    view.report(step("b", 20e6))
    view.report(step("c", 20e6))
    for (const model of ["b", "c", "a"]) view.done(model)
    expect(text().trimEnd().split("\n")).toEqual([
      "a  10.0 / 100.0 MB  10 %  from pypi:m==1",
      "a  0.0 / 5.0 MB  0 %  from https://b/a",
      "b  20.0 / 100.0 MB  20 %",
      "b, c  20.0 / 100.0 MB  20 %",
      "a  0.0 / 5.0 MB  0 %",
    ])
  })

  it("says hours and minutes", () => {
    const { out, text } = makeOut(false)
    let nowMs = 0
    const view = makePullProgress(out, { nowMs: () => nowMs })
    view.report(step("m", 0, 10_000e6))
    nowMs = 1000
    view.report(step("m", 1_000e6, 10_000e6))
    nowMs = 600_000
    view.report(step("m", 2_000e6, 10_000e6))
    expect(text()).toContain("9 s left")
    expect(text()).toContain("1 h 20 min left")
  })
})

describe("on a terminal", () => {
  it("draws one bar for a file that two models share", () => {
    vi.useFakeTimers()
    try {
      const { out, text } = makeOut(true)
      const view = makePullProgress(out, { nowMs: () => Date.now() })
      for (let percent = 0; percent <= 50; percent += 1) {
        vi.advanceTimersByTime(100)
        for (const model of ["svc-omni", "svc-lyt"]) view.report(step(model, percent * 1e6))
      }
      vi.advanceTimersByTime(200)
      expect(screen(text())).toEqual([expect.stringMatching(/^svc-omni, svc-lyt {2}█{12}░{12} /)])
      view.stop()
    } finally {
      vi.useRealTimers()
    }
  })

  it("draws a bar per model, keeps log lines whole between them, and ends with plain lines", () => {
    vi.useFakeTimers()
    try {
      const { out, text } = makeOut(true)
      const view = makePullProgress(out, { nowMs: () => Date.now() })
      view.report(step("svc-lyt", 0))
      view.report(step("svc-emb", 0, 50e6))
      for (let percent = 1; percent <= 50; percent += 1) {
        vi.advanceTimersByTime(100)
        view.report(step("svc-lyt", percent * 1e6))
        if (percent % 20 === 0) view.write(`log line at ${percent}\nand its second line\n`)
      }
      vi.advanceTimersByTime(200)
      const middle = screen(text())
      expect(middle).toHaveLength(6)
      expect(middle.slice(0, 4)).toEqual([
        "log line at 20",
        "and its second line",
        "log line at 40",
        "and its second line",
      ])
      expect(middle[4]).toMatch(
        /^svc-lyt {2}█{12}░{12} {2}50\.0 \/ 100\.0 MB {2}50 % {2}10\.0 MB\/s {2}5 s left$/,
      )
      expect(middle[5]).toMatch(/^svc-emb {2}░{24} {2}0\.0 \/ 50\.0 MB {2}0 %$/)
      view.report(step("svc-lyt", 100e6))
      view.done("svc-emb")
      view.write("after\n")
      expect(vi.getTimerCount()).toBe(0)
      expect(screen(text()).slice(4)).toEqual([
        expect.stringMatching(/^svc-lyt {2}█{24} .*100 %/),
        expect.stringMatching(/^svc-emb/),
        "after",
      ])
    } finally {
      vi.useRealTimers()
    }
  })
})
