import { parseEmail } from './email-address.ts'

const FORM = 'must be address:code pairs separated by commas, codes of 4 to 10 digits'

/** Parses `address:code,address:code`; addresses become as they are stored. */
export function parseTestAddresses(text: string): ReadonlyMap<string, string> {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter(Boolean)
  return new Map(
    pairs.map((pair) => {
      const [, address, code] = /^(.+?)\s*[:=]\s*([0-9]{4,10})$/.exec(pair) ?? []
      try {
        return [parseEmail(address ?? ''), code as string]
      } catch {
        throw new Error(FORM)
      }
    }),
  )
}
