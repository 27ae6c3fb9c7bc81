import type { FirstAccount } from "../../core/ports/identity.ts"

export interface BannerFacts {
  readonly name: string
  readonly version: string
  readonly baseUrl: string
  /** The credentials of the first boot; undefined when the file is gone. */
  readonly credentialsFile: string | undefined
  readonly account: FirstAccount["created"]
  /** The model in the examples. */
  readonly chatModel: string | undefined
  readonly hasDashboard: boolean
  /** True for a secret that the operator set, which is not printed. */
  wasGiven(secret: string): boolean
}

/** For the moment before the plugins have started: the start may still be refused. */
export const startingLine = ({
  name,
  version,
  baseUrl,
}: Pick<BannerFacts, "name" | "version" | "baseUrl">): string =>
  `\nRakit ${version} (${name}) is starting on ${baseUrl}\n`

const accountLines = ({ account, credentialsFile, wasGiven }: BannerFacts): readonly string[] => {
  const shown = (secret: string) => (wasGiven(secret) ? "(as you set it)" : secret)
  return account
    ? [
        "",
        "  The first account was made; this is shown once, and kept in:",
        `    ${credentialsFile}`,
        `    e-mail    ${account.email}`,
        `    password  ${shown(account.password)}`,
        `    API key   ${shown(account.apiKey)}`,
      ]
    : []
}

const keyLines = (credentialsFile: string | undefined): readonly string[] => [
  "",
  `  Put your API key into RAKIT_API_KEY for these${credentialsFile === undefined ? ":" : `; the first account's is in ${credentialsFile}`}`,
]

const curlExample = (url: string, key: string | undefined, model: string): readonly string[] => [
  "",
  "  curl",
  `    curl ${url}/v1/chat/completions -H "Authorization: Bearer ${key ?? "$RAKIT_API_KEY"}" -H "Content-Type: application/json" \\`,
  `      -d '{"model":"${model}","messages":[{"role":"user","content":"Why is the sky blue?"}],"stream":true}'`,
]

const clientExample = (url: string, key: string | undefined, model: string): readonly string[] => [
  "",
  "  openai client (JavaScript)",
  `    import OpenAI from "openai"`,
  `    const client = new OpenAI({ baseURL: "${url}/v1", apiKey: ${key === undefined ? "process.env.RAKIT_API_KEY" : `"${key}"`} })`,
  `    const stream = await client.chat.completions.create({ model: "${model}", stream: true, messages: [{ role: "user", content: "Hi" }] })`,
  `    for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "")`,
]

/**
 * Address (only now, as nothing refuses the start any more), first account and examples to copy.
 * The examples hold the key only when this boot made it.
 */
export const startedText = (facts: BannerFacts): string => {
  const key =
    facts.account && !facts.wasGiven(facts.account.apiKey) ? facts.account.apiKey : undefined
  const model = facts.chatModel
  return [
    `Rakit ${facts.version} (${facts.name}) listens on ${facts.baseUrl}`,
    ...accountLines(facts),
    ...(model && key === undefined ? keyLines(facts.credentialsFile) : []),
    ...(model
      ? [...curlExample(facts.baseUrl, key, model), ...clientExample(facts.baseUrl, key, model)]
      : []),
    ...(facts.hasDashboard ? ["", "  dashboard", `    ${facts.baseUrl}/dashboard`] : []),
    "",
    "",
  ].join("\n")
}
