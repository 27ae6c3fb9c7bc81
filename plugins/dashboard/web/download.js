/** Saves the reply of an API call as a file. */
export const saveReply = async (reply, name) => {
  const address = URL.createObjectURL(await reply.blob())
  const link = Object.assign(document.createElement("a"), { href: address, download: name })
  document.body.append(link)
  link.click()
  link.remove()
  URL.revokeObjectURL(address)
}
