/** Merges one small record per key: variables or settings that every kind or provider has. */
export function forEach<Key extends string, Made>(
  keys: readonly Key[],
  make: (key: Key) => Record<string, Made>,
): Record<string, Made> {
  return Object.assign({}, ...keys.map(make))
}
