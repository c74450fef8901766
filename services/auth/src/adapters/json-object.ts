/** Parses a JSON object; throws an Error with `problem` for anything else. */
export function jsonObject(text: string, problem: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {}
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(problem)
  return value as Record<string, unknown>
}
