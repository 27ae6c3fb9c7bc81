import { Schema } from "effect"
import { expect, test } from "vitest"
import { defineEndpoint, fileField } from "../../../core/ports/endpoint.ts"
import { Echo, thing } from "../testing/fixture.ts"
import { describeApi } from "./document.ts"

interface Content {
  readonly content?: Readonly<Record<string, unknown>>
}
interface Operation {
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> }
}

test("bytes: a form with its fields, a download with its type and its part", () => {
  const form = Schema.Struct({ file: fileField, purpose: Schema.String }).annotate({
    identifier: "Form",
  })
  const { paths, components } = describeApi({ name: "a", version: "1" }, [
    defineEndpoint({
      ...thing,
      id: "forms",
      method: "POST",
      body: "multipart" as const,
      form,
      path: "/v1/forms",
    }),
    defineEndpoint({
      ...thing,
      id: "bytes",
      path: "/v1/bytes/content",
      mediaTypes: ["application/zip", "text/plain"],
    }),
    defineEndpoint({ ...thing, id: "page", path: "/page", mediaTypes: ["text/html"] }),
    defineEndpoint({
      ...thing,
      id: "csv",
      path: "/v1/csv",
      reply: Echo,
      mediaTypes: ["text/csv; charset=utf-8"],
    }),
  ]) as unknown as Document
  const bytes = { type: "string", format: "binary" }
  expect(paths["/v1/forms"]!.post!.requestBody?.content).toEqual({
    "multipart/form-data": { schema: { $ref: "#/components/schemas/Form" } },
  })
  expect(components.schemas.Form).toMatchObject({ properties: { file: bytes } })
  const { 200: whole, 206: part, 304: known } = paths["/v1/bytes/content"]!.get!.responses
  expect([whole?.content, part?.content, known?.content]).toEqual([
    { "application/zip": { schema: bytes }, "text/plain": { schema: bytes } },
    { "application/zip": { schema: bytes }, "text/plain": { schema: bytes } },
    undefined,
  ])
  const page = paths["/page"]!.get!.responses
  expect(Object.keys(page)).toEqual(expect.arrayContaining(["200", "304", "412"]))
  expect(page).not.toHaveProperty("206")
  expect(paths["/v1/csv"]!.get!.responses["200"]!.content).toMatchObject({
    "application/json": { schema: { $ref: "#/components/schemas/EchoRequest" } },
    "text/csv": { schema: { type: "string" } },
  })
  expect(paths["/v1/csv"]!.get!.responses).not.toHaveProperty("206")
})
