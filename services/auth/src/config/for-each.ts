/** One record out of one small record per key: variables and settings of which each kind or provider has its own. */
export function forEach<Key extends string, Made>(
  keys: readonly Key[],
  make: (key: Key) => Record<string, Made>,
): Record<string, Made> {
  return Object.assign({}, ...keys.map(make))
}
