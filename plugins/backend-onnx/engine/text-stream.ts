import { type Scanned, StopScanner } from "./stop-scanner.ts"

/** Bytes of tokens to text: whole UTF-8 characters, without stop strings. Bytes that can't be UTF-8 become U+FFFD; a character that is cut at the very end is dropped. */
export class TextStream {
  // a byte order mark in the middle of a text is a character like others
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  private readonly scanner: StopScanner

  constructor(stops: readonly string[]) {
    this.scanner = new StopScanner(stops)
  }

  push(bytes: Uint8Array): Scanned {
    return this.scanner.push(this.decoder.decode(bytes, { stream: true }))
  }

  end(): string {
    return this.scanner.end()
  }
}
