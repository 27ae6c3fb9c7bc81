import { expect, test } from "vitest"
import type { Grammar } from "./constraint.ts"
import { ThreadChoice } from "./thread-choice.ts"

const choice = (mostHeavy = 2) => {
  const started: { name: number; ended: boolean; answers: number }[] = []
  const threads = new ThreadChoice(() => {
    const thread = { name: started.length, ended: false, answers: 0 }
    started.push(thread)
    return thread
  }, mostHeavy)
  /** Opens an answer, and returns its thread. */
  const open = (grammar: Grammar) => {
    const thread = threads.for(grammar)
    thread.answers++
    return thread
  }
  return { open, started, threads }
}

const schema = (given: object): Grammar => ({ kind: "schema", schema: given })
const light = (name: string) => schema({ type: "object", properties: { [name]: {} } })
const heavy = (name: string) => schema({ enum: [name.padEnd(10_000, "x")] })

test("light grammars share one thread, and a heavy one is never compiled there", () => {
  const { open } = choice()
  const honest = [open(light("a")), open(light("b"))]
  const hostile = [
    heavy("a"),
    schema({ type: "string", pattern: "^(([a-z]{1,100}){1,100}){1,100}$" }),
    schema({ type: "string", pattern: "^(\\p{L}{1,20} ?)*$" }),
    schema({ type: "array", minItems: 100_000 }),
    schema({ type: "string", minLength: 10_000 }),
    { kind: "lark", lark: 'start: start start | "a"', isCustom: true } as const,
    { ...light("c"), isHeavy: true },
  ].map(open)
  expect(honest[0]).toBe(honest[1])
  for (const thread of hostile) expect(thread).not.toBe(honest[0])
})

test("a heavy grammar gets a thread where nobody is writing, and what is compiled is used again", () => {
  const { open, started } = choice()
  const first = open(heavy("a"))
  const second = open(heavy("b"))
  expect(second).not.toBe(first)
  expect(open(heavy("a"))).toBe(first)
  second.answers = 0
  expect(open(heavy("c"))).toBe(second)
  expect(open(heavy("d"))).toBe(second)
  expect(started).toHaveLength(2)
})

test("a thread that has ended is replaced", () => {
  const { open, threads } = choice()
  const gone = [open(light("a")), open(heavy("a"))]
  for (const thread of gone) thread.ended = true
  expect(gone).not.toContain(open(light("a")))
  expect(gone).not.toContain(open(heavy("a")))
  expect(threads.threads).toHaveLength(2)
})
