/**
 * Fixture for `test.extend` of which each file has one: opened for the first test that names it, closed after the last.
 */
export const perFile = <Opened extends { close(): Promise<unknown> }>(
  open: () => Promise<Opened>,
): [fixture: (_: object, use: (opened: Opened) => Promise<void>) => Promise<void>, options: { scope: 'file' }] => [
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures a fixture uses from it
  async ({}, use) => {
    const opened = await open()
    await use(opened)
    await opened.close()
  },
  { scope: 'file' },
]
