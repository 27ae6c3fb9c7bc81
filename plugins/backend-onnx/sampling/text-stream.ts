import { type Scanned, type StopRange, StopScanner } from "./stop-scanner.ts"

/** `heldBytes`: how many bytes at the end are not out: they wait for the rest of a character, or may begin a stop string, or are behind one that was found. */
export interface StreamedText extends Scanned {
  readonly heldBytes: number
}

/** Bytes of tokens to text: whole UTF-8 characters, without stop strings. Bytes that can't be UTF-8 become U+FFFD; a character that is cut at the very end is dropped. */
export class TextStream {
  // a byte order mark in the middle of a text is a character like others
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  private readonly scanner: StopScanner
  private inDecoder = 0
  private inScanner = 0

  constructor(stops: readonly string[], range?: StopRange) {
    this.scanner = new StopScanner(stops, range)
  }

  push(bytes: Uint8Array): StreamedText {
    const decoded = this.decoder.decode(bytes, { stream: true })
    // a character has at most four bytes, so at most three wait; bytes that are no UTF-8 make the difference negative
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
