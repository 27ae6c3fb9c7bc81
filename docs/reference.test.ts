import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { errorsPage, eventsIn, eventsPage, loggedEvents } from "./reference.ts"
import { troubleshootingPage } from "./troubleshooting-page.ts"

const page = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8")

test("docs/events.md, docs/errors.md and docs/troubleshooting.md are what the sources say (npm run docs)", () => {
  expect(page("./events.md")).toBe(eventsPage())
  expect(page("./errors.md")).toBe(errorsPage())
  expect(page("./troubleshooting.md")).toBe(troubleshootingPage())
})

test("an event is logged at one place only, and is named <noun>.<what_happened>", () => {
  const names = loggedEvents().map(({ event }) => event)
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  expect(names.filter((name) => !/^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*$/.test(name))).toEqual([])
  expect(names.length).toBeGreaterThan(70)
})

test("events are found however the call is written", () => {
  const text = `
    log.warn("mail.given_up", "a mail was given up", { id })
    deps.log.error(
      "batch.line_failed",
      \`a line of \${batch.id} failed\`,
    )
    log[isQuiet ? "debug" : "info"]("request.finished", "request", {})
    log.info("file.swept", what, { count })
    repeat(log, { event: "mail.sweep_failed", message: "old mails could not be swept", everyMs }, work)`
  expect(eventsIn("a.ts", text).map((e) => `${e.level} ${e.event}: ${e.sentence}`)).toEqual([
    "warn mail.given_up: a mail was given up",
    "error batch.line_failed: a line of <batch.id> failed",
    "info or debug request.finished: request",
    "info file.swept: <what>",
    "warn mail.sweep_failed: old mails could not be swept",
  ])
})
