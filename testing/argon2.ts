import { createRequire } from "node:module"

const real = createRequire(import.meta.url)("@node-rs/argon2") as typeof import("@node-rs/argon2")

let isCheap = true

/**
 * Uses the real argon2, for the tests of passwords themselves. Returns a function that restores the
 * cheap one.
 */
export const atFullCost = (): (() => void) => {
  isCheap = false
  return () => {
    isCheap = true
  }
}

let delayed: { readonly password: string; readonly until: Promise<void> } | undefined

/**
 * Delays the check of this password until the promise resolves. Returns a function that ends the
 * delay.
 */
export const holdPassword = (password: string, until: Promise<void>): (() => void) => {
  delayed = { password, until }
  return () => {
    delayed = undefined
  }
}

/**
 * Replaces argon2 in tests by the same at a hundredth of its cost: they sign in hundreds of times,
 * at 20 ms of work each.
 * The hash of full cost that stands for unknown users is compared at low cost, too: it matches no
 * password at either.
 */
export const hash: typeof real.hash = (password, options, signal) =>
  real.hash(password, isCheap ? { ...options, memoryCost: 64, timeCost: 1 } : options, signal)

export const verify: typeof real.verify = async (hashed, password, options, signal) => {
  if (password === delayed?.password) await delayed.until
  return real.verify(
    isCheap ? String(hashed).replace("$m=19456,t=2,", "$m=64,t=1,") : hashed,
    password,
    options,
    signal,
  )
}
