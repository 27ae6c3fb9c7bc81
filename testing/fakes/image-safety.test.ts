import { Effect } from "effect"
import { imageSafetyContract } from "../contracts/image-safety.ts"
import { plainImage } from "../images.ts"
import { fakeImageSafety } from "./image-safety.ts"

imageSafetyContract(
  "in memory",
  Effect.promise(async () => {
    const [harmless, refused] = await Promise.all(
      ["white", "red"].map((colour) => plainImage(8, 8, colour).png().toBuffer()),
    )
    return {
      safety: fakeImageSafety({ word: "forbidden", picture: refused! }),
      harmless: { prompt: "a lighthouse", picture: harmless! },
      refused: { prompt: { text: "a forbidden thing", category: "words" }, picture: refused! },
    }
  }),
)
