import { randomUUID } from "node:crypto"
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3"
import { etagOf } from "./list.ts"
import { pauseMs, wait } from "./retry-budget.ts"
import { statusOf } from "./s3-errors.ts"
import type { Store } from "./store.ts"

/** What must hold of the object there, or the put fails with 412. */
export type PutCondition = { readonly ifNoneMatch: "*" } | { readonly ifMatch: string }

const marker = "rakit-put"

/** 10,000 parts are allowed: parts grow, so that there is room for 5 TB. */
export const partBytesOf = (part: number): number => 2 ** 23 * 2 ** Math.floor((part - 1) / 1_250)

/** One put, from its first byte to the published object. */
export class Upload {
  readonly #store: Store
  readonly #target: { readonly Bucket: string; readonly Key: string }
  readonly #condition: { readonly IfNoneMatch?: string; readonly IfMatch?: string }
  /** Tells this put's object from that of another put. */
  readonly #id = randomUUID()
  #uploadId: string | undefined
  readonly #parts: { readonly ETag: string | undefined; readonly PartNumber: number }[] = []

  constructor(store: Store, key: string, condition?: PutCondition) {
    this.#store = store
    this.#target = { Bucket: store.bucket, Key: store.keys.of(key) }
    if (condition === undefined) this.#condition = {}
    else if ("ifMatch" in condition) this.#condition = { IfMatch: `"${condition.ifMatch}"` }
    else this.#condition = { IfNoneMatch: condition.ifNoneMatch }
  }

  get #creation() {
    return { ...this.#target, ...this.#store.writing, Metadata: { [marker]: this.#id } }
  }

  get isInParts(): boolean {
    return this.#uploadId !== undefined
  }

  get nextPart(): number {
    return this.#parts.length + 1
  }

  async begin(): Promise<void> {
    const { UploadId } = await this.#store.client.send(
      new CreateMultipartUploadCommand(this.#creation),
    )
    this.#uploadId = UploadId
  }

  async sendPart(part: Uint8Array, signal: AbortSignal): Promise<void> {
    const PartNumber = this.nextPart
    const { ETag } = await this.#store.client.send(
      new UploadPartCommand({
        ...this.#target,
        UploadId: this.#uploadId,
        PartNumber,
        Body: part,
      }),
      { abortSignal: signal },
    )
    this.#parts.push({ ETag, PartNumber })
  }

  /** Publishes the parts. Returns the etag. */
  async complete(): Promise<string> {
    const command = new CompleteMultipartUploadCommand({
      ...this.#target,
      ...this.#condition,
      UploadId: this.#uploadId,
      MultipartUpload: { Parts: [...this.#parts] },
    })
    return this.#publish(async () => (await this.#store.client.send(command)).ETag)
  }

  /** Publishes a body that is one part. Returns the etag. */
  async sendWhole(body: Uint8Array, signal: AbortSignal): Promise<string> {
    const command = new PutObjectCommand({ ...this.#creation, ...this.#condition, Body: body })
    return this.#publish(
      async () => (await this.#store.client.send(command, { abortSignal: signal })).ETag,
    )
  }

  /** Leaves no part behind. Idempotent. */
  async abort(): Promise<void> {
    if (this.#uploadId === undefined) return
    await this.#store.client
      .send(new AbortMultipartUploadCommand({ ...this.#target, UploadId: this.#uploadId }))
      .catch((cause) => {
        if (statusOf(cause) !== 404) throw cause
      })
  }

  /**
   * When an answer is lost, the try after it finds an upload that is gone, or a condition that no
   * longer holds: the object says whose it is. 409 asks for another try: other requests are in the
   * way, on this object or, where objects are files, on its folder.
   */
  async #publish(send: () => Promise<string | undefined>): Promise<string> {
    for (let tries = 1; ; tries++) {
      try {
        return etagOf(await send())
      } catch (cause) {
        const status = statusOf(cause) ?? 0
        if (![404, 409, 412].includes(status)) throw cause
        const own = await this.#ownObject()
        if (own !== undefined) return own
        const { settings, budget } = this.#store
        if (status !== 409 || tries >= settings.attempts * 2 || !budget.take()) throw cause
        await wait(pauseMs(tries))
      }
    }
  }

  async #ownObject(): Promise<string | undefined> {
    try {
      const { Metadata, ETag } = await this.#store.client.send(new HeadObjectCommand(this.#target))
      return Metadata?.[marker] === this.#id ? etagOf(ETag) : undefined
    } catch {
      return undefined
    }
  }
}
