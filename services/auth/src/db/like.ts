const escaped = (text: string) => text.replaceAll(/[\\%_]/g, String.raw`\$&`)

/** Builds a `like` pattern for texts that contain this one; `%`, `_` and `\` match literally. */
export const containing = (text: string): string => `%${escaped(text)}%`

/** The same for texts that begin with this one. */
export const beginningWith = (text: string): string => `${escaped(text)}%`
