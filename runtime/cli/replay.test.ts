import { expect, it } from "vitest"
import { compared } from "./replay.ts"

const then = { request: "r", model: "m", config: "c", version: "1", cpu: "x", answer: "a" }

it.each([
  ["the same answer", {}, 0, []],
  ["another answer", { answer: "b" }, 1, []],
  ["the same answer elsewhere", { cpu: "y", version: "2" }, 0, ["version", "cpu"]],
  ["another entry and answer", { config: "d", answer: "b" }, 1, ["config"]],
  ["another request", { request: "q", answer: "b" }, 2, ["request"]],
  ["other files of the model", { model: "n" }, 2, ["model"]],
  ["a model whose answers can't be repeated", { model: null }, 2, ["model"]],
])("%s", (_, change, code, differences) => {
  expect(compared(then, { ...then, ...change })).toMatchObject({ code, differences })
})
