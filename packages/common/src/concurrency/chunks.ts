/** Yields the items in their order, `size` at a time. */
export function* batchesOf<Item>(items: readonly Item[], size: number): Generator<Item[], void> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}
