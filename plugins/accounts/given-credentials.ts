import { Effect, Redacted } from "effect"
import { PluginError } from "../../core/index.ts"
import { isUsableKey, usableKeyRule } from "./api-key.ts"
import { parseEmail } from "./email.ts"
import { isUsablePassword, usablePasswordRule } from "./passwords.ts"
import type { Settings } from "./settings.ts"

/** What the operator wants for the first account; the rest is made. */
export interface GivenCredentials {
  readonly email: string | undefined
  readonly password: string | undefined
  readonly apiKey: string | undefined
}

const unusable = (variable: string, setting: string, rule: string) =>
  new PluginError({ plugin: "accounts", message: `${variable} (setting ${setting}) can't be used: it must be ${rule}. Correct it, or unset it.` })

/** Messages name the variable and the rule, never the value. */
export const readGivenCredentials = (settings: Settings): Effect.Effect<GivenCredentials, PluginError> =>
  Effect.gen(function* () {
    const password = Redacted.value(settings.adminPassword)
    const apiKey = Redacted.value(settings.apiKey)
    const email = parseEmail(settings.adminEmail)
    if (settings.adminEmail !== "" && email === undefined) return yield* unusable("RAKIT_ADMIN_EMAIL", "adminEmail", "an e-mail address")
    if (password !== "" && !isUsablePassword(password)) return yield* unusable("RAKIT_ADMIN_PASSWORD", "adminPassword", usablePasswordRule)
    if (apiKey !== "" && !isUsableKey(apiKey)) return yield* unusable("RAKIT_API_KEY", "apiKey", usableKeyRule)
    return { email, password: password || undefined, apiKey: apiKey || undefined }
  })
