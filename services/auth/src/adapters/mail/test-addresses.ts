import { parseEmail } from './email-address.ts'

const FORM = 'must be address:code pairs separated by commas, each address once and without *, codes of 6 to 10 digits'

/** Parses `address:code,address:code`; addresses become as they are stored. */
export function parseTestAddresses(text: string): ReadonlyMap<string, string> {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter(Boolean)
  const codes = new Map(
    pairs.map((pair): [string, string] => {
      const [, address, code] = /^(.+?)\s*[:=]\s*([0-9]{6,10})$/.exec(pair) ?? []
      try {
        return [parseEmail(address?.includes('*') ? '' : (address ?? '')), code as string]
      } catch {
        throw new Error(FORM)
      }
    }),
  )
  if (codes.size < pairs.length) throw new Error(FORM)
  return codes
}
