import { Schema } from "effect"

export const StorageDiskSettings = Schema.Struct({
  folder: Schema.optionalKey(
    Schema.NonEmptyString.annotate({
      description:
        "Where the blobs lie; relative to the data folder of the deployment. `blobs` unless told.",
    }),
  ),
})
export type StorageDiskSettings = typeof StorageDiskSettings.Type
