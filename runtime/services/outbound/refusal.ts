import { isIP } from "node:net"
import { isPublicAddress } from "./public-address.ts"

const maxUrlLength = 2048

export const closed = "It leads to an address that is not on the public internet."

/** `host:port` as a list of exact ones has it; IPv6 in brackets. */
export const endOf = (url: URL): string =>
  `${url.hostname}:${url.port || (url.protocol === "https:" ? 443 : 80)}`

/** The same host has one spelling: `LOCALHOST:80` is `localhost:80`. */
export const allowedEnds = (hosts: readonly string[]): ReadonlySet<string> =>
  new Set(
    hosts.flatMap((host) =>
      URL.canParse(`http://${host}`) ? endOf(new URL(`http://${host}`)) : [],
    ),
  )

/** Names that never lead to the public internet (RFC 6761, 6762, 8375, and what clouds and routers call their own): refused before anybody resolves them. */
const isLocalName = (host: string): boolean =>
  /(^|\.)(localhost|localdomain|local|internal|lan|home\.arpa)\.?$|^metadata\.goog\.?$/.test(host)

/** Labels with dots between them; a single one is a name of somebody's own network. */
const isPublicName = (host: string): boolean =>
  host.length <= 254 &&
  /^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.){1,126}[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.?$/.test(
    host,
  )

/** A parser of URLs drops some of these without a word, and reads others as a slash: what the customer sees would not be what is called. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const misleading = /[\s\x00-\x1f\x7f\\]/

const hostRefusal = (host: string): string | undefined => {
  // names are looked at when they are resolved; a URL has already turned every notation of IPv4 into the plain one
  if (isIP(host)) return isPublicAddress(host) ? undefined : closed
  if (isLocalName(host)) return closed
  return isPublicName(host) ? undefined : "It must name a host of the public internet."
}

/** Why this URL is not called, or undefined: all that can be said without asking the network. */
export const refusalOf = (text: string, allowed: ReadonlySet<string>): string | undefined => {
  if (misleading.test(text)) return "It must not hold blanks, control characters or backslashes."
  if (
    text.length > maxUrlLength ||
    !/^[a-z][a-z0-9+.-]*:\/\/[^/?#]/i.test(text) ||
    !URL.canParse(text)
  )
    return `It must be an absolute URL of at most ${maxUrlLength} characters.`
  const url = new URL(text)
  if (/^[^/]*\/\/[^/?#]*@/.test(text)) return "It must not hold a user name or a password."
  if (url.port === "0") return "It must not have the port 0."
  if (allowed.has(endOf(url)) && ["http:", "https:"].includes(url.protocol)) return undefined
  if (url.protocol !== "https:") return "It must be an https URL."
  return hostRefusal(url.hostname.replace(/^\[|\]$/g, ""))
}
