/** Returns the time in Unix ms, by the browser's clock. */
export const nowMs = () => Date.now()
