import type { ReadFailureCode } from "./kind.ts"

/** The file's own fault, in a sentence for the customer. */
export class ReadFailure extends Error {
  readonly code: ReadFailureCode

  constructor(code: ReadFailureCode, message: string) {
    super(message)
    this.code = code
  }
}
