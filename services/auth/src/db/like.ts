/** Builds a `like` pattern for texts that contain this one; `%`, `_` and `\` match literally. */
export const containing = (text: string): string => `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
