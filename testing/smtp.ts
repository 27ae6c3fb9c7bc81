import type { AddressInfo } from "node:net"
import PostalMime, { type Email } from "postal-mime"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"

export interface Received {
  readonly to: readonly string[]
  readonly raw: string
  readonly mail: Email
}

export const smtpError = (responseCode: number, message: string): Error =>
  Object.assign(new Error(message), { responseCode })

/** A real SMTP server on a port of its own, or on `port`. */
export const openSmtp = async (options: SMTPServerOptions = {}, port = 0) => {
  const received: Received[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onData: (stream, session, done) => {
      const pieces: Buffer[] = []
      stream.on("data", (piece: Buffer) => pieces.push(piece))
      stream.on("end", async () => {
        const raw = Buffer.concat(pieces)
        received.push({
          to: session.envelope.rcptTo.map((one) => one.address),
          raw: raw.toString("latin1"),
          mail: await PostalMime.parse(raw),
        })
        done()
      })
    },
    ...options,
  })
  server.on("error", () => {})
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  const address = server.server.address() as AddressInfo
  return {
    received,
    port: address.port,
    url: `smtp://127.0.0.1:${address.port}`,
    close: () => new Promise<void>((resolve) => server.close(resolve)),
  }
}
