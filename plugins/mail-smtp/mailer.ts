import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { type Mail, type Mailer, PortError, type Secrets } from "../../core/index.ts"
import { isAddress } from "./address.ts"
import type { OutboxRows } from "./outbox-rows.ts"

const maxCharacters = 256 * 1024
const maxSubject = 250

const refuse = (message: string) => new PortError({ port: "mailer", message })

/** Replaces line breaks and other control characters, so that the subject stays one line. */
const oneLine = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
    .slice(0, maxSubject)

const check = ({ to, subject, text, html }: Mail): Effect.Effect<Mail, PortError> => {
  if (!isAddress(to)) return Effect.fail(refuse("the recipient is not an e-mail address"))
  if (text.length + html.length > maxCharacters)
    return Effect.fail(refuse(`a mail may have ${maxCharacters} characters`))
  return Effect.succeed({ to, subject: oneLine(subject), text, html })
}

/** `onQueued` is called at once, before the transaction commits. */
export const makeMailer = (rows: OutboxRows, secrets: Secrets, onQueued: () => void): Mailer => ({
  send: (mail, tx) =>
    Effect.gen(function* () {
      const checked = yield* check(mail)
      yield* rows.insert(randomUUID(), secrets.encrypt(JSON.stringify(checked)), tx)
      onQueued()
    }),
})
