import { Effect, Semaphore } from "effect"
import { isLongerThan, PortError } from "../../core/index.ts"

const isShorterThan = (text: string, characters: number): boolean =>
  !isLongerThan(text, characters - 1)

export const isUsablePassword = (text: string): boolean =>
  !isShorterThan(text, 8) && !isLongerThan(text, 200)

export const usablePasswordRule = "8 to 200 characters"

/**
 * argon2id (the default of the library) with the minimum cost of OWASP: 19 MiB, 2 passes, 1 lane;
 * about 20 ms. https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html
 */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** A hash of the same cost that no password matches: unknown e-mails take as long as known ones. */
export const nobodysHash =
  "$argon2id$v=19$m=19456,t=2,p=1$cmFraXQtbm9ib2R5LXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

/** Each takes a thread of Node's small pool, which file and DNS operations need, too. */
const maxAtOnce = 2
const maxWaiting = 200
const turns = Semaphore.makeUnsafe(maxAtOnce)
let waiting = 0

const inTurn = <A>(work: Effect.Effect<A, PortError>): Effect.Effect<A, PortError> =>
  Effect.suspend(() => {
    if (waiting >= maxWaiting)
      return Effect.fail(
        new PortError({
          port: "passwords",
          message: "too many passwords wait to be hashed",
          why: "busy",
        }),
      )
    waiting += 1
    return turns
      .withPermits(1)(work)
      .pipe(
        Effect.ensuring(
          Effect.sync(() => {
            waiting -= 1
          }),
        ),
      )
  })

/** Loaded with the first password: calls by keys have none. */
const argon2 = () => import("@node-rs/argon2")

const failed = (cause: unknown) =>
  new PortError({ port: "passwords", message: "argon2 failed", cause })

/** Returns a PHC string: `$argon2id$v=19$m=19456,t=2,p=1$...`. */
export const hashPassword = (password: string): Effect.Effect<string, PortError> =>
  inTurn(
    Effect.tryPromise({
      try: async (signal) => (await argon2()).hash(password, cost, signal),
      catch: failed,
    }),
  )

export const isPassword = (
  passwordHash: string,
  password: string,
): Effect.Effect<boolean, PortError> =>
  inTurn(
    Effect.tryPromise({
      try: async (signal) => (await argon2()).verify(passwordHash, password, undefined, signal),
      catch: failed,
    }),
  )
