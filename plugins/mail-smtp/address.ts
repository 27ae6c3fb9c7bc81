export interface Address {
  readonly name: string
  readonly address: string
}

/**
 * Visible ASCII without characters that mean something in a header or a command (RFC 5322, section
 * 3.2.3), so that no header can be injected.
 */
const form =
  /^[!#-'*+\-./0-9=?A-Z^_`a-z{|}~]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$/
const maxCharacters = 254
const controls = /[\p{Cc}\p{Zl}\p{Zp}]/u

export const isAddress = (text: unknown): text is string =>
  typeof text === "string" && text.length <= maxCharacters && form.test(text)

/** Parses `Name <address>` or `address`; undefined when it is neither. */
export const parseSender = (text: string): Address | undefined => {
  const [, name, inside] = /^([^<>]*)<([^<>]*)>$/.exec(text) ?? []
  const [label, address] =
    inside === undefined
      ? ["", text.trim()]
      : [(name ?? "").trim().replace(/^"(.*)"$/, "$1"), inside.trim()]
  return label.length <= 200 && !controls.test(label) && isAddress(address)
    ? { name: label, address }
    : undefined
}
