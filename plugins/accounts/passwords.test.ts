import { Effect } from "effect"
import { expect, it } from "vitest"
import { hashPassword, isPassword, isUsablePassword } from "./passwords.ts"

it("hashes with argon2id, salted, and knows the password again", async () => {
  const [one, two] = await Effect.runPromise(Effect.all([hashPassword("correct horse"), hashPassword("correct horse")]))
  expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  expect(one).not.toBe(two)
  expect(await Effect.runPromise(isPassword(one, "correct horse"))).toBe(true)
  expect(await Effect.runPromise(isPassword(one, "Correct horse"))).toBe(false)
})

it("takes 8 to 200 characters", () => {
  expect(["x".repeat(7), "x".repeat(8), "x".repeat(200), "x".repeat(201)].map(isUsablePassword)).toEqual([false, true, true, false])
})
