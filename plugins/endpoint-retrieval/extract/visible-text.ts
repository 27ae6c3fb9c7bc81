const visible = /(?![\p{Default_Ignorable_Code_Point}\u2800])[\p{L}\p{N}\p{P}\p{S}\p{Co}\p{Cn}]/u

/**
 * False for a text of white space, marks, joiners and control characters alone. What a font or a
 * newer Unicode may show (private and unassigned characters) counts as visible.
 */
export const isVisible = (text: string): boolean => visible.test(text)
