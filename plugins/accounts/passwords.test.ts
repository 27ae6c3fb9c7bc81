import { hash } from "@node-rs/argon2"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { atFullCost } from "../../testing/argon2.ts"
import { hashPassword, isPassword, isUsablePassword, nobodysHash } from "./passwords.ts"

let back: () => void
beforeAll(() => {
  back = atFullCost()
})
afterAll(() => back())

it("hashes with argon2id, salted, and knows the password again", async () => {
  const [one, two] = await Effect.runPromise(
    Effect.all([hashPassword("correct horse"), hashPassword("correct horse")]),
  )
  expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  expect(one).not.toBe(two)
  expect(await Effect.runPromise(isPassword(one, "correct horse"))).toBe(true)
  expect(await Effect.runPromise(isPassword(one, "Correct horse"))).toBe(false)
})

it("takes 8 to 200 characters", () => {
  expect(
    ["x".repeat(7), "x".repeat(8), "x".repeat(200), "x".repeat(201)].map(isUsablePassword),
  ).toEqual([false, true, true, false])
})

it("counts characters as people do", () => {
  expect([7, 8, 200, 201].map((n) => isUsablePassword("🔑".repeat(n)))).toEqual([
    false,
    true,
    true,
    false,
  ])
})

it("nobody's hash is of the same cost, and of no password", async () => {
  const cost = (phc: string) => phc.split("$").slice(0, 4).join("$")
  expect(cost(nobodysHash)).toBe(cost(await Effect.runPromise(hashPassword("correct horse"))))
  for (const text of ["", "correct horse", nobodysHash])
    expect(await Effect.runPromise(isPassword(nobodysHash, text))).toBe(false)
})

it("lets 200 wait, and refuses more", async () => {
  const cheap = await hash("x", { memoryCost: 8, timeCost: 1 })
  const all = await Promise.all(
    Array.from({ length: 205 }, () =>
      Effect.runPromise(
        Effect.match(isPassword(cheap, "x"), {
          onSuccess: () => "done",
          onFailure: ({ why }) => why ?? "failed",
        }),
      ),
    ),
  )
  expect(all.filter((how) => how === "done")).toHaveLength(200)
  expect(all.filter((how) => how === "busy")).toHaveLength(5)
  expect(await Effect.runPromise(isPassword(cheap, "x"))).toBe(true)
})
