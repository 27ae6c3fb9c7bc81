/**
 * A defect inside a file; the opener adds the file's name. `remedy` says what the operator can do.
 */
export class Damaged extends Error {
  readonly remedy: string
  constructor(
    message: string,
    remedy = "Pull it again (`rakit models pull`); if that does not help, it was published like this: name another file",
  ) {
    super(message)
    this.remedy = remedy
  }
}

const otherModel = "Name a model that this backend's README lists"

/** The file is sound, but this backend can't run it. */
export class Unsupported extends Damaged {
  constructor(message: string, remedy = otherModel) {
    super(message, remedy)
  }
}

/**
 * A model file that can't be used. The message names the file, the reason and the remedy, for the
 * operator.
 */
export class ModelFileError extends Error {
  readonly file: string
  readonly reason: string
  constructor(file: string, reason: string, remedy?: string) {
    super(`${file}: ${reason}${remedy ? `. ${remedy}.` : ""}`)
    this.name = "ModelFileError"
    this.file = file
    this.reason = reason
  }
}

/** Runs `part` and adds the file's name to what it throws. `other`: what else to name. */
export const explaining = <A>(path: string, part: () => A, other = otherModel): A => {
  try {
    return part()
  } catch (cause) {
    if (!(cause instanceof Damaged)) throw cause
    const remedy = cause.remedy === otherModel ? other : cause.remedy
    throw new ModelFileError(path, cause.message, remedy)
  }
}
