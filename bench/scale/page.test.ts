import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { readCosts } from "./costs.ts"
import { scalePage } from "./page.ts"
import { scalePicture } from "./picture.ts"

const file = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8")

test("docs/scale.md and its picture are what the measured costs give (npm run docs)", () => {
  expect(file("../../docs/scale.md")).toBe(scalePage(readCosts()))
  expect(file("../../docs/scale.svg")).toBe(scalePicture(readCosts()))
})

test("another measurement makes another page and picture", () => {
  const costs = readCosts()
  const { chat } = costs.kinds
  const slower = {
    ...costs,
    kinds: { ...costs.kinds, chat: { ...chat, rakitCpuUs: chat.rakitCpuUs * 3 } },
  }
  expect(scalePage(slower)).not.toBe(scalePage(costs))
  expect(scalePicture(slower)).not.toBe(scalePicture(costs))
})
