import { expect, test } from "vitest"
import { makeLog } from "./log.ts"

const capture = () => {
  const lines: string[] = []
  return { lines, destination: { write: (line: string) => void lines.push(line) } }
}

test("one JSON object a line, with the fields of its parents", () => {
  const { lines, destination } = capture()
  const log = makeLog({ level: "info", destination })
  log.with({ plugin: "billing" }).info("ledger.settled", "settled", { calls: 3, cost_micros: 12n })
  log.debug("test.hidden", "not at this level")
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0]!)).toMatchObject({
    level: "info",
    event: "ledger.settled",
    msg: "settled",
    plugin: "billing",
    calls: 3,
    cost_micros: "12",
    time: expect.stringMatching(/^\d{4}-.*Z$/),
  })
})

test("secrets never reach a line", () => {
  const { lines, destination } = capture()
  const log = makeLog({ level: "debug", destination })
  const key = "svc_live_0123456789abcdefghijABCDEFGHIJxy"
  log.warn("test.refused", `refused ${key}`, {
    authorization: `Bearer ${key}`,
    headers: { Authorization: "Basic abc123", cookie: "session=1", "user-agent": "curl" },
    apiKey: "k-1",
    note: "the header was 'Bearer abc.def'",
    url: "postgres://rakit:hunter2@db:5432/rakit",
    error: new Error("connect to redis://u:hunter3@cache failed"),
    input_tokens: 5,
    nested: [{ password: "p" }],
  })
  const line = lines.join("")
  for (const secret of [
    "0123456789",
    "abc123",
    "session=1",
    "k-1",
    "abc.def",
    "hunter2",
    "hunter3",
    '"p"',
  ])
    expect(line).not.toContain(secret)
  expect(line).toContain("curl")
  expect(line).toContain('"input_tokens":5')
  expect(line).toContain("rakit:[redacted]@db")
})

test("fields that can't be written don't throw", () => {
  const { lines, destination } = capture()
  const loop: Record<string, unknown> = {}
  loop.self = loop
  makeLog({ level: "info", destination }).info("test.loop", "loop", { loop })
  expect(JSON.parse(lines[0]!)).toMatchObject({ msg: "loop" })
})

test("pretty lines are for people", () => {
  const { lines, destination } = capture()
  makeLog({ level: "info", pretty: true, destination }).info("test.listening", "listening", {
    url: "http://localhost:8080",
    note: "two words",
  })
  expect(lines[0]).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} INFO {2}listening {2}url=http:\/\/localhost:8080 {2}note="two words"\n$/,
  )
})
