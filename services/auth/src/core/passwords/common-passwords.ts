import { readFileSync } from 'node:fs'

let listed: ReadonlySet<string> | undefined

/** Whether a password is one of the 10,000 most used, in whatever letter case and width its characters are typed. */
export function isCommonPassword(password: string): boolean {
  listed ??= readList()
  return listed.has(foldPassword(password))
}

/** Form in which passwords are compared with words; what is hashed is the password as it was typed. */
export const foldPassword = (text: string): string => text.normalize('NFKC').toLowerCase()

/** Read at the first password: an idle service does without the megabyte. */
function readList(): ReadonlySet<string> {
  const lines = readFileSync(new URL('common-passwords.txt', import.meta.url), 'utf8').split('\n')
  return new Set(lines.filter((line) => line !== '' && !line.startsWith('#')))
}
