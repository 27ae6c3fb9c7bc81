/**
 * GPT-2's byte-level alphabet: a printable character for each byte, so that a vocabulary is text
 * (https://github.com/openai/gpt-2/blob/master/src/encoder.py, bytes_to_unicode).
 */
const makeAlphabet = (): readonly string[] => {
  const printable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
  let next = 256
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(printable(byte) ? byte : next++),
  )
}

export const byteAlphabet = makeAlphabet()
const byteOf = new Map(byteAlphabet.map((character, byte) => [character, byte]))

export const toByteLevel = (text: string): string =>
  Array.from(Buffer.from(text), (byte) => byteAlphabet[byte]).join("")

/** Returns the bytes of a vocabulary entry; a character outside the alphabet stands for itself. */
export const fromByteLevel = (token: string): Buffer => {
  const bytes = Array.from(token, (character) => byteOf.get(character))
  return bytes.every((byte) => byte !== undefined)
    ? Buffer.from(bytes as number[])
    : Buffer.from(token)
}
