/** Yields the server-sent events of a reply as objects; skips comments and `[DONE]`. */
export async function* eventsOf(body) {
  let text = ""
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    text += piece
    const blocks = text.split("\n\n")
    text = blocks.pop()
    for (const block of blocks)
      if (block.startsWith("data: {")) yield JSON.parse(block.slice("data: ".length))
  }
}
