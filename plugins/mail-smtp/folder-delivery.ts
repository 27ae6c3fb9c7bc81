import { randomBytes } from "node:crypto"
import { mkdir, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import type { Log } from "../../core/index.ts"
import type { Address } from "./address.ts"
import { type Delivery, DeliveryFailed } from "./delivery.ts"
import { type Outgoing, toMessage } from "./message.ts"

/** Loaded with the first mail, as most servers start without one. */
const loadComposer = async () => {
  const { createTransport } = await import("nodemailer")
  return createTransport({ streamTransport: true, buffer: true, newline: "windows" })
}
let composer: ReturnType<typeof loadComposer> | undefined

/** File names sort by time, and a mail always has the same one. */
const nameOf = ({ id, createdMs }: Outgoing) =>
  `${new Date(createdMs).toISOString().replaceAll(/[-:]|\.\d+/g, "")}-${id}.eml`

const write = async (folder: string, outgoing: Outgoing, from: Address): Promise<string> => {
  composer ??= loadComposer()
  const { message } = await (await composer).sendMail(toMessage(outgoing, from))
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, nameOf(outgoing))
  const draft = `${file}.${randomBytes(6).toString("hex")}.tmp`
  try {
    await writeFile(draft, message as Buffer, { mode: 0o600, flush: true })
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  return file
}

/**
 * For development without an SMTP server: writes each mail to an .eml file, which mail programs
 * open.
 */
export const folderDelivery = (folder: string, from: Address, log: Log): Delivery => ({
  deliver: (outgoing) =>
    Effect.tryPromise({
      try: () => write(folder, outgoing, from),
      catch: (cause) =>
        new DeliveryFailed({
          reason: `the file could not be written (${(cause as NodeJS.ErrnoException).code ?? String(cause)})`,
          isPermanent: false,
        }),
    }).pipe(
      Effect.map((file) => {
        log.info(
          "mail.written_to_folder",
          "a mail was written to the outbox folder, as no SMTP server is set",
          {
            to: outgoing.mail.to,
            subject: outgoing.mail.subject,
            file,
          },
        )
        return "written"
      }),
    ),
})

/**
 * For production without an SMTP server: drops the mail. Its text is not logged, as it holds a
 * token.
 */
export const noDelivery = (log: Log): Delivery => ({
  deliver: ({ mail: { to, subject } }) =>
    Effect.sync(() => {
      log.warn("mail.no_server", "a mail can't be delivered: no SMTP server is set (SMTP_URL)", {
        to,
        subject,
      })
      return "dropped"
    }),
})
