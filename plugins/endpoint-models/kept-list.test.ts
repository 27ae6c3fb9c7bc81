import { expect, it } from "vitest"
import { callPathFixture, fakeChatModel, fakeEmbedModel } from "../../testing/index.ts"
import { keepList } from "./kept-list.ts"

const opened = () => {
  const chat = fakeChatModel()
  let place = "a gpu"
  const loaded = Object.defineProperty({ ...chat.loaded }, "servedBy", { get: () => place })
  const { catalogue } = callPathFixture([{ ...chat, loaded }, fakeEmbedModel()])
  const move = () => {
    place = "the cpu"
  }
  return { catalogue, list: keepList(catalogue, 1), move }
}

it("keeps the list and its text while nothing changes", () => {
  const { list } = opened()
  const first = list()
  expect(JSON.parse(first.text)).toEqual(first.json)
  expect(list()).toBe(first)
})

it("makes it anew when a model moves, closes, is described otherwise or joins", () => {
  const { catalogue, list, move } = opened()
  const seen = [list()]
  const changes = (change: () => void) => {
    change()
    const now = list()
    expect(seen).not.toContain(now)
    expect(JSON.parse(now.text)).toEqual(now.json)
    expect(list()).toBe(now)
    seen.push(now)
    return now.json.data
  }
  expect(changes(move)).toMatchObject([{ served_by: "the cpu" }, { id: "svc-embed" }])
  expect(
    changes(() => catalogue.set("svc-embed", { state: "failed", reason: "lost" })).at(1),
  ).not.toHaveProperty("served_by")
  const fewer = { contextTokens: 7, modalities: ["text"], capabilities: [] }
  expect(changes(() => catalogue.describe("svc-lyt", fewer))).toMatchObject([
    { context_window: 7 },
    { id: "svc-embed" },
  ])
  expect(
    changes(() => catalogue.add({ ...catalogue.entries[0]!, id: "svc-more" })).map(({ id }) => id),
  ).toEqual(["svc-lyt", "svc-embed", "svc-more"])
})
