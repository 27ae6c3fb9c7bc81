import { urlOf } from "../../core/url.ts"
export interface SmtpServer {
  readonly host: string
  readonly port: number
  /** TLS from the first byte. */
  readonly secure: boolean
  /** Sends nothing without STARTTLS. */
  readonly requireTLS: boolean
  readonly rejectUnauthorized: boolean
  readonly auth?: { readonly user: string; readonly pass: string }
}

const ports: Readonly<Record<string, number>> = { "smtp:": 587, "smtps:": 465 }
const flags = new Set(["requireTLS", "rejectUnauthorized"])

const flag = (url: URL, name: string, fallback: boolean): boolean | undefined => {
  const text = url.searchParams.get(name)
  if (text === null) return fallback
  return text === "true" || text === "false" ? text === "true" : undefined
}

/** A loopback connection can't be intercepted, and local servers have self-signed certificates. */
const isLoopback = (host: string) =>
  host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host)

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Returns undefined when the URL names no server, or has a part that would be ignored. */
export const parseSmtpUrl = (text: string): SmtpServer | undefined => {
  const url = text.length <= 2_000 ? urlOf(text) : undefined
  if (!url) return undefined
  const port = url.port === "" ? ports[url.protocol] : Number(url.port)
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1")
  const [user, pass] = [decode(url.username), decode(url.password)]
  // who is on the path can take STARTTLS from the server's reply, and read the password
  const isExposed = url.protocol === "smtp:" && user !== "" && !isLoopback(host)
  const requireTLS = flag(url, "requireTLS", isExposed)
  const rejectUnauthorized = flag(url, "rejectUnauthorized", !isLoopback(host))
  if (
    ports[url.protocol] === undefined ||
    !port ||
    !/^[\w.:-]+$/.test(host) ||
    !["", "/"].includes(url.pathname) ||
    url.hash !== ""
  )
    return undefined
  if (
    user === undefined ||
    pass === undefined ||
    requireTLS === undefined ||
    rejectUnauthorized === undefined
  )
    return undefined
  if ([...url.searchParams.keys()].some((name) => !flags.has(name))) return undefined
  return {
    host,
    port,
    secure: url.protocol === "smtps:",
    requireTLS,
    rejectUnauthorized,
    ...(user !== "" && { auth: { user, pass } }),
  }
}
