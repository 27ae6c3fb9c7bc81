import { Effect, Schema } from "effect"
import { expect, it } from "vitest"
import { makeS3Storage } from "./s3-storage.ts"
import { StorageS3Settings } from "./settings.ts"
import { openStore } from "./store.ts"

const storageWith = (more: Partial<(typeof StorageS3Settings)["Encoded"]>) =>
  makeS3Storage(
    openStore(
      Schema.decodeUnknownSync(StorageS3Settings)({
        endpoint: "http://store.internal:9000",
        bucket: "blobs",
        prefix: "one",
        accessKeyId: "key",
        secretAccessKey: "never-in-a-link",
        pathStyle: true,
        ...more,
      }),
    ),
  )
const headers = { mediaType: "text/plain", disposition: "attachment" }

it("links are off by default", () => {
  expect(storageWith({}).link).toBeUndefined()
})

it("a link is signed for the host that customers reach, for so long, without the secret", async () => {
  const linkAt = async (presignEndpoint: string) => {
    const { link } = storageWith({ presignSeconds: 90, presignEndpoint })
    return new URL((await Effect.runPromise(link!("files/a", headers)))!)
  }
  const inside = await linkAt("")
  expect([inside.origin, inside.pathname]).toEqual([
    "http://store.internal:9000",
    "/blobs/one/files/a%21",
  ])
  const outside = await linkAt("https://files.example")
  expect([outside.origin, outside.pathname]).toEqual([
    "https://files.example",
    "/blobs/one/files/a%21",
  ])
  const { searchParams } = outside
  expect([
    searchParams.get("X-Amz-Expires"),
    searchParams.get("response-content-type"),
    searchParams.get("response-content-disposition"),
  ]).toEqual(["90", "text/plain", "attachment"])
  expect(outside.href).not.toContain("never-in-a-link")
})

it("what is no key gets no link", async () => {
  const { link } = storageWith({ presignSeconds: 90 })
  expect(await Effect.runPromise(Effect.flip(link!("../a", headers)))).toMatchObject({
    _tag: "PortError",
  })
})
