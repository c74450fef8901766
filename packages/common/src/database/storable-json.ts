/** Deepest nesting: JSON.stringify and jsonb fail at a few thousand levels. */
export const MAX_DEPTH = 100

/** Whether PostgreSQL can store the value: no NUL, no lone surrogate, not too deep. */
export function isStorable(json: unknown): boolean {
  const open = [{ value: json, depth: 0 }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, depth } = next
    if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed())) return false
    if (typeof value !== 'object' || value === null) continue
    if (depth >= MAX_DEPTH) return false
    for (const [key, member] of Object.entries(value)) {
      open.push({ value: key, depth }, { value: member, depth: depth + 1 })
    }
  }
  return true
}
