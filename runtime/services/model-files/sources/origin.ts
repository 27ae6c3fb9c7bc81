/** One file on a server. */
export interface RemoteFile {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Below the root of what is kept. */
  readonly path: string
  /** From the pin, else from the index. */
  readonly sha256: string | undefined
}

/** Where exactly a source's bytes are, once its index was asked. */
export interface Origin {
  /** `plain`: the files are kept as they come. */
  readonly form: "zip" | "tgz" | "plain"
  readonly files: readonly RemoteFile[]
}
