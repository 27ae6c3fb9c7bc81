import { Damaged, ModelFileError } from "./model-file-error.ts"
import type { TensorEntry, TensorSource } from "./tensor-file.ts"

/** The tensors of several files, which it closes. */
export class ShardedTensors implements TensorSource {
  readonly path: string
  private readonly sources: readonly TensorSource[]
  private readonly owners = new Map<string, TensorSource>()

  constructor(path: string, sources: readonly TensorSource[]) {
    this.path = path
    this.sources = sources
    for (const source of sources)
      for (const name of source.names()) {
        if (this.owners.has(name))
          throw new ModelFileError(
            source.path,
            `it has the tensor '${name}', which another file has too`,
          )
        this.owners.set(name, source)
      }
  }

  names(): Iterable<string> {
    return this.owners.keys()
  }

  has(name: string): boolean {
    return this.owners.has(name)
  }

  private ownerOf(name: string): TensorSource {
    const file = this.owners.get(name)
    if (!file) throw new Damaged(`the tensor '${name}' is missing`)
    return file
  }

  tensor(name: string): TensorEntry {
    return this.ownerOf(name).tensor(name)
  }

  rows(entry: TensorEntry, first: number, count: number): Buffer {
    return this.ownerOf(entry.name).rows(entry, first, count)
  }

  close(): void {
    for (const source of this.sources) source.close()
  }
}
