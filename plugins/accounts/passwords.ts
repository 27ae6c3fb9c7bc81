import { hash, verify } from "@node-rs/argon2"
import { Effect } from "effect"
import { PortError } from "../../core/index.ts"

export const isUsablePassword = (text: string): boolean => text.length >= 8 && text.length <= 200

export const usablePasswordRule = "8 to 200 characters"

/** argon2id (the library's default kind) with OWASP's least cost: 19 MiB, 2 passes, 1 lane; about 20 ms. https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

const failed = (cause: unknown) => new PortError({ port: "passwords", message: "argon2 failed", cause })

/** A PHC string: `$argon2id$v=19$m=19456,t=2,p=1$...`. */
export const hashPassword = (password: string): Effect.Effect<string, PortError> => Effect.tryPromise({ try: (signal) => hash(password, cost, signal), catch: failed })

export const isPassword = (passwordHash: string, password: string): Effect.Effect<boolean, PortError> =>
  Effect.tryPromise({ try: (signal) => verify(passwordHash, password, undefined, signal), catch: failed })
