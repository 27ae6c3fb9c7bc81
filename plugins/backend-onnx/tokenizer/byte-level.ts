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

/** By character code; -1: it is not of the alphabet. */
const byteOf = new Int16Array(2 ** 9).fill(-1)
for (const [byte, character] of byteAlphabet.entries()) byteOf[character.charCodeAt(0)] = byte

export const toByteLevel = (text: string): string =>
  Array.from(Buffer.from(text), (byte) => byteAlphabet[byte]).join("")

/** Returns the bytes of a vocabulary entry; a character outside the alphabet stands for itself. */
export const fromByteLevel = (token: string): Buffer => {
  const bytes = Buffer.allocUnsafe(token.length)
  // a vocabulary has up to a quarter of a million entries, and all are read when a model opens
  for (let i = 0; i < token.length; i++) {
    const byte = byteOf[token.charCodeAt(i)] ?? -1
    if (byte < 0) return Buffer.from(token)
    bytes[i] = byte
  }
  return bytes
}
