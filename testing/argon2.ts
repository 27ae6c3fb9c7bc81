import { createRequire } from "node:module"

const real = createRequire(import.meta.url)("@node-rs/argon2") as typeof import("@node-rs/argon2")

let isCheap = true

/** For the tests of the passwords themselves. Answers how to go back. */
export const atFullCost = (): (() => void) => {
  isCheap = false
  return () => {
    isCheap = true
  }
}

let held: { readonly password: string; readonly until: Promise<void> } | undefined

/** The check of this password ends no sooner than that. Answers how to go back. */
export const holdPassword = (password: string, until: Promise<void>): (() => void) => {
  held = { password, until }
  return () => {
    held = undefined
  }
}

/**
 * What the tests get in place of argon2: the same at a hundredth of its cost. They sign in hundreds of times, at 20 ms and more of work each.
 * A hash of full cost, which is nobody's, is compared at low cost too: it fits no password at either.
 */
export const hash: typeof real.hash = (password, options, signal) =>
  real.hash(password, isCheap ? { ...options, memoryCost: 64, timeCost: 1 } : options, signal)

export const verify: typeof real.verify = async (hashed, password, options, signal) => {
  if (password === held?.password) await held.until
  return real.verify(
    isCheap ? String(hashed).replace("$m=19456,t=2,", "$m=64,t=1,") : hashed,
    password,
    options,
    signal,
  )
}
