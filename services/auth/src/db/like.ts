/** A `like` pattern for texts that hold this one; `%`, `_` and the escape itself stand for themselves. */
export const containing = (text: string): string => `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
