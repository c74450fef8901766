/** Formats a number with its significant digits: 1,234,567, 12.3, 1.23, 0.00123. */
export function figureText(value: number): string {
  const size = Math.abs(value)
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString('en')
  if (size >= 10) return value.toFixed(1)
  return size >= 0.1 ? value.toFixed(2) : String(Number(value.toPrecision(3)))
}
