import { type Scanned, type StopRange, StopScanner } from "./stop-scanner.ts"

/**
 * `heldBytes`: the number of bytes that are not returned yet: they wait for the rest of a
 * character, may begin a stop string, or follow one that was found.
 */
export interface StreamedText extends Scanned {
  readonly heldBytes: number
}

/**
 * Decodes the bytes of tokens to whole UTF-8 characters, up to the first stop string. Invalid bytes
 * become U+FFFD; a character that is incomplete at the very end is dropped.
 */
export class TextStream {
  // a byte order mark inside a text is an ordinary character
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  private readonly scanner: StopScanner
  private inDecoder = 0
  private inScanner = 0

  constructor(stops: readonly string[], range?: StopRange) {
    this.scanner = new StopScanner(stops, range)
  }

  push(bytes: Uint8Array): StreamedText {
    const decoded = this.decoder.decode(bytes, { stream: true })
    // a character has at most four bytes, so at most three wait; invalid bytes make the difference
    // negative
    this.inDecoder = Math.min(
      3,
      Math.max(0, this.inDecoder + bytes.length - Buffer.byteLength(decoded)),
    )
    this.inScanner += Buffer.byteLength(decoded)
    return this.counted(this.scanner.push(decoded))
  }

  end(): StreamedText {
    return this.counted(this.scanner.end())
  }

  private counted(scanned: Scanned): StreamedText {
    this.inScanner -= Buffer.byteLength(scanned.text)
    return { ...scanned, heldBytes: this.inDecoder + this.inScanner }
  }
}
