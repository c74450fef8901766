/** Calling-code prefixes without `+`, and whether numbers with them get messages. */
export type Countries = ReadonlyMap<string, boolean>

/** Parses `+49,+1,!+1876`: Germany, North America without Jamaica. Prefixes, as one code may cover twenty countries. */
export function parseCountries(text: string): Countries {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
  return new Map(
    items.map((item) => {
      const [, not, prefix] = /^(!?)\+?([1-9][0-9]{0,14})$/.exec(item) ?? []
      if (!prefix) throw new Error('must be calling codes such as +49,+1, with ! before excluded ones')
      return [prefix, not === '']
    }),
  )
}

/** The longest matching prefix decides; an unmatched number is allowed only if the list has nothing but exclusions. */
export function isCountryAllowed(countries: Countries, phone: string): boolean {
  for (let length = phone.length; length > 0; length--) {
    const allowed = countries.get(phone.slice(0, length))
    if (allowed !== undefined) return allowed
  }
  return ![...countries.values()].includes(true)
}
