export function at(value: unknown, ...path: (string | number)[]): unknown {
  let found = value
  for (const step of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, step)) return undefined
    found = (found as Record<string | number, unknown>)[step]
  }
  return found
}

export const textAt = (value: unknown, ...path: (string | number)[]): string | undefined => {
  const found = at(value, ...path)
  return typeof found === 'string' && found.trim() !== '' ? found : undefined
}

/** A finite number >= 0, including one written as text. */
export const numberAt = (value: unknown, ...path: (string | number)[]): number | undefined => {
  const found = at(value, ...path)
  const number = typeof found === 'string' && found.trim() !== '' ? Number(found) : found
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : undefined
}

export const listAt = (value: unknown, ...path: (string | number)[]): unknown[] => {
  const found = at(value, ...path)
  return Array.isArray(found) ? found : []
}

export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
