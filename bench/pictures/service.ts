import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import OpenAI from "openai"

export interface Lora {
  readonly name: string
  readonly strength: number
}

export interface ServiceOptions {
  readonly url: string
  readonly key: string
  readonly images: string
  readonly embeddings: string
  readonly size: string
  readonly seed: number
  /** Pictures are kept in this folder, and not asked for again. */
  readonly folder: string
  readonly atOnce: number
}

// as many as one request takes
const imagesAtOnce = 8

const fileName = (prompt: string, lora: Lora | undefined): string =>
  [prompt.replaceAll(/[^a-z0-9]+/g, "-"), ...(lora ? [lora.name, lora.strength] : [])].join("-")

/** Results in the order of `items`, with so many calls at once. */
const eachOf = async <T, R>(items: readonly T[], atOnce: number, call: (item: T) => Promise<R>) => {
  const results: R[] = []
  const left = [...items.entries()]
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) results[next[0]] = await call(next[1])
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return results
}

/** Pictures and vectors by the API of a server. */
export class Service {
  private readonly client: OpenAI
  private readonly options: ServiceOptions

  constructor(options: ServiceOptions) {
    this.options = options
    this.client = new OpenAI({ baseURL: `${options.url}/v1`, apiKey: options.key, maxRetries: 12 })
    mkdirSync(options.folder, { recursive: true })
  }

  /** PNG files of prompts; the same seed for each. */
  pictures(prompts: readonly string[], lora?: Lora): Promise<Buffer[]> {
    return eachOf(prompts, this.options.atOnce, (prompt) => this.picture(prompt, lora))
  }

  private async picture(prompt: string, lora: Lora | undefined): Promise<Buffer> {
    const { folder, images, seed, size } = this.options
    const file = join(folder, `${fileName(prompt, lora)}.png`)
    if (existsSync(file)) return readFileSync(file)
    const fields = {
      model: images,
      prompt,
      size,
      seed,
      ...(lora && { lora: lora.name, lora_strength: lora.strength }),
    }
    const { data } = await this.client.images.generate(
      fields as OpenAI.ImageGenerateParamsNonStreaming,
    )
    const bytes = Buffer.from(data![0]!.b64_json!, "base64")
    writeFileSync(file, bytes)
    return bytes
  }

  private async vectors(input: readonly unknown[]): Promise<number[][]> {
    const model = this.options.embeddings
    const { data } = await this.client.embeddings.create({ model, input: input as string[] })
    return data.map(({ embedding }) => embedding)
  }

  /** Vectors of length 1 of texts. */
  async texts(texts: readonly string[]): Promise<number[][]> {
    return this.inParts(texts, 64)
  }

  /** Vectors of length 1 of pictures. */
  async images(files: readonly Buffer[]): Promise<number[][]> {
    const inputs = files.map((file) => ({ type: "image", image: file.toString("base64") }))
    return this.inParts(inputs, imagesAtOnce)
  }

  private async inParts(inputs: readonly unknown[], most: number): Promise<number[][]> {
    const parts = Array.from({ length: Math.ceil(inputs.length / most) }, (_, at) =>
      inputs.slice(at * most, (at + 1) * most),
    )
    return (await eachOf(parts, this.options.atOnce, (part) => this.vectors(part))).flat()
  }
}
