import { expect, it } from "vitest"
import { problemsText } from "./check.ts"
import { splitFix } from "./refuse.ts"

it("a refused config has its verdict first, and lines of at most 100 columns", () => {
  const reasons = [
    "my.yaml:3:5 models[0].task: 'task' is missing\n    Fix: add it.",
    `my.yaml:4:9 models[0].tusk: unknown key 'tusk'\n    Fix: write 'task', or remove it. Known keys: ${"id, task, ".repeat(20)}.`,
    "the disk is full",
  ]
  const text = problemsText(reasons.map(splitFix))
  expect(text).toMatch(/^This config is not fine: 3 problems\.\n\nmy\.yaml:3:5 /)
  expect(text).toContain("'task' is missing\n    Fix: add it.\n")
  expect(text).toContain("\n\nthe disk is full\n")
  for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(100)
  expect(problemsText([splitFix("x")])).toMatch(/: 1 problem\./)
})
