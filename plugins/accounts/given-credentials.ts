import { Redacted } from "effect"
import { parseEmail } from "./email.ts"
import type { Settings } from "./settings.ts"

/** What the operator wants for the first account; the rest is made. */
export interface GivenCredentials {
  readonly email: string | undefined
  readonly password: string | undefined
  readonly apiKey: string | undefined
}

/** An empty text is as if not set. The settings' schema has refused what can't be used. */
export const readGivenCredentials = (settings: Settings): GivenCredentials => ({
  email: parseEmail(settings.adminEmail),
  password: Redacted.value(settings.adminPassword) || undefined,
  apiKey: Redacted.value(settings.apiKey) || undefined,
})
