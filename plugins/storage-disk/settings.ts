import { Schema } from "effect"

export const StorageDiskSettings = Schema.Struct({
  folder: Schema.optionalKey(
    Schema.NonEmptyString.annotate({
      description:
        "The folder of the blobs; relative to the data folder of the deployment. `blobs` by default.",
    }),
  ),
})
export type StorageDiskSettings = typeof StorageDiskSettings.Type
