/** True for what Node's own calls throw: an error with a code such as ENOENT. */
export const isSystemError = (error: unknown): error is Error & { readonly code: string } =>
  error instanceof Error && "code" in error && typeof error.code === "string"

export const isMissing = (error: unknown): boolean =>
  isSystemError(error) && (error.code === "ENOENT" || error.code === "ENOTDIR")

export const isDiskFull = (error: unknown): boolean =>
  isSystemError(error) && (error.code === "ENOSPC" || error.code === "EDQUOT")
