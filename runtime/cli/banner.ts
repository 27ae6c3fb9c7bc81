import type { FirstAccount } from "../../core/ports/identity.ts"

export interface BannerFacts {
  readonly name: string
  readonly version: string
  readonly baseUrl: string
  /** The credentials of the first boot; undefined when the file is gone. */
  readonly credentialsFile: string | undefined
  readonly account: FirstAccount["created"]
  /** The model of the example. */
  readonly chatModel: string | undefined
  readonly hasDashboard: boolean
  /** True for a secret that the operator set, which is not printed. */
  wasGiven(secret: string): boolean
}

type Named = Pick<BannerFacts, "name" | "version" | "baseUrl">

/** For the moment before the plugins have started: the start may still be refused. */
export const startingLine = ({ name, version, baseUrl }: Named): string =>
  `\nRakit ${version} (${name}) is starting on ${baseUrl}\n`

/** For the moment when nothing refuses the start any more; models may still be pulled and opened. */
export const listeningLine = ({ name, version, baseUrl }: Named): string =>
  `Rakit ${version} (${name}) listens on ${baseUrl}\n`

const signInLine = ({ account, credentialsFile, wasGiven }: BannerFacts): string | undefined => {
  if (account)
    return `${account.email}, password ${wasGiven(account.password) ? "as you set it" : account.password}`
  return credentialsFile && `the first account's e-mail and password are in ${credentialsFile}`
}

const keyLine = ({ account, credentialsFile, wasGiven }: BannerFacts): string | undefined => {
  if (!account) return credentialsFile && `the first account's is in ${credentialsFile}`
  const key = wasGiven(account.apiKey) ? "as you set it" : account.apiKey
  return credentialsFile === undefined
    ? key
    : `${key}  (this is shown once; kept in ${credentialsFile})`
}

/** The example has the key only when this boot made it. */
const tryLine = ({ account, baseUrl, chatModel, wasGiven }: BannerFacts): string | undefined => {
  if (!chatModel) return undefined
  const key = account && !wasGiven(account.apiKey) ? account.apiKey : "$RAKIT_API_KEY"
  return `curl ${baseUrl}/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d '{"model":"${chatModel}","messages":[{"role":"user","content":"Why is the sky blue?"}],"stream":true}'`
}

/** Up to five lines: where the API and the dashboard are, sign-in, key, and a call to copy. */
export const readyText = (facts: BannerFacts): string => {
  const { baseUrl, hasDashboard } = facts
  const lines = {
    API: `${baseUrl}/v1`,
    Dashboard: hasDashboard ? `${baseUrl}/dashboard` : undefined,
    "Sign in": hasDashboard ? signInLine(facts) : undefined,
    "API key": keyLine(facts),
    Try: tryLine(facts),
  }
  const shown = Object.entries(lines).filter(([, text]) => text !== undefined)
  return `\n${shown.map(([label, text]) => `  ${label.padEnd(9)}  ${text}\n`).join("")}\n`
}
