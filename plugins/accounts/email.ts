/**
 * Catches typing errors; verification finds out whether mail arrives. At most 254 characters (RFC
 * 5321, section 4.5.3.1), all ASCII: look-alikes and several spellings of one address would make
 * two accounts of one, and few servers deliver such mail.
 */
const form =
  /^[a-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/

/**
 * Returns the address as it is stored and compared: trimmed, in lower case. Undefined when it is no
 * address.
 */
export const parseEmail = (text: string): string | undefined => {
  if (text.length > 1_000) return undefined
  const email = text.trim().toLowerCase()
  return email.length <= 254 && form.test(email) ? email : undefined
}
