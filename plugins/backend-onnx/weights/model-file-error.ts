/** A model file that can't be used. The message names the file and the reason, for the operator. */
export class ModelFileError extends Error {
  readonly file: string
  readonly reason: string
  constructor(file: string, reason: string) {
    super(`${file}: ${reason}`)
    this.name = "ModelFileError"
    this.file = file
    this.reason = reason
  }
}
