import { isIP } from "node:net"
import { urlOf } from "../../../core/url.ts"
import { isPublicAddress } from "./public-address.ts"

const maxUrlLength = 2048

export const notPublic = "It leads to an address that is not on the public internet."

/** Returns `host:port`, with the default port of the scheme; IPv6 in brackets. */
export const hostPortOf = (url: URL): string =>
  `${url.hostname}:${url.port || (url.protocol === "https:" ? 443 : 80)}`

/** Normalizes the spelling: `LOCALHOST:80` is `localhost:80`. */
export const allowedHostPorts = (hosts: readonly string[]): ReadonlySet<string> =>
  new Set(
    hosts.flatMap((host) => {
      const url = urlOf(`http://${host}`)
      return url ? hostPortOf(url) : []
    }),
  )

/**
 * Names that never lead to the public internet (RFC 6761, 6762, 8375, and the names of clouds and
 * routers): refused without resolving them.
 */
const isLocalName = (host: string): boolean =>
  /(^|\.)(localhost|localdomain|local|internal|lan|home\.arpa)\.?$|^metadata\.goog\.?$/.test(host)

/** At least two labels: a single one is a name in a private network. */
const isPublicName = (host: string): boolean =>
  host.length <= 254 &&
  /^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.){1,126}[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.?$/.test(
    host,
  )

/**
 * URL parsers drop some of these silently and read others as a slash: the URL called would not be
 * the one shown.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression searches for them
const misleading = /[\s\x00-\x1f\x7f\\]/

const hostRefusal = (host: string): string | undefined => {
  // names are checked when they are resolved; the URL parser has normalized every notation of IPv4
  if (isIP(host)) return isPublicAddress(host) ? undefined : notPublic
  if (isLocalName(host)) return notPublic
  return isPublicName(host) ? undefined : "It must name a host of the public internet."
}

/** What a customer's URL may reach. */
export interface OutboundRules {
  /** Exact `host:port`s that may be private, and be called over http. */
  readonly hosts: ReadonlySet<string>
  /** Ports of public hosts beside 443 and 80. */
  readonly ports: ReadonlySet<string>
}

/**
 * Other ports are those of mail, databases and admin pages: a caller that can be pointed at them is
 * a port scanner, also on the public internet.
 */
const webPorts: ReadonlySet<string> = new Set(["", "443", "80"])

/** Returns why this URL must not be called, or undefined. Uses no network. */
export const refusalOf = (text: string, { hosts, ports }: OutboundRules): string | undefined => {
  if (misleading.test(text)) return "It must not hold blanks, control characters or backslashes."
  const isAbsolute = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]/i.test(text)
  const url = text.length <= maxUrlLength && isAbsolute ? urlOf(text) : undefined
  if (!url) return `It must be an absolute URL of at most ${maxUrlLength} characters.`
  if (/^[^/]*\/\/[^/?#]*@/.test(text)) return "It must not hold a user name or a password."
  if (url.port === "0") return "It must not have the port 0."
  if (hosts.has(hostPortOf(url)) && ["http:", "https:"].includes(url.protocol)) return undefined
  if (url.protocol !== "https:") return "It must be an https URL."
  if (!webPorts.has(url.port) && !ports.has(url.port))
    return `It must not have the port ${url.port}: ports 443 and 80 are called.`
  return hostRefusal(url.hostname.replace(/^\[|\]$/g, ""))
}
