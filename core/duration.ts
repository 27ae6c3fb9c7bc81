/** "12 s left", "3 min left", "1 h 20 min left" */
export const timeLeft = (seconds: number): string => {
  const minutes = Math.ceil(seconds / 60)
  if (seconds < 60) return `${Math.max(1, Math.ceil(seconds))} s left`
  if (minutes < 60) return `${minutes} min left`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min left`
}
